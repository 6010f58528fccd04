//! One execution overtakes another, and calls that do not fit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use pointstamp_store::{Checkpoint, Cloud, Error, Fate, Label, Local, Location, SectionRef, Store};

use crate::computation::{Run, start_again};

fn is_overtaken<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Overtaken { .. }))
}

#[test]
fn a_later_execution_overtakes_an_earlier_one() {
    let store: Arc<dyn Store> = Arc::new(Cloud::default().client());
    let mut first = Run::start(&store, 1).unwrap();
    first.advance().unwrap();
    let mut second = Run::start(&store, 1).unwrap();
    assert_eq!(second.step, 1);
    // The first does not know it yet; it removes nothing that the second needs.
    assert!(is_overtaken(&first.execution.confirm()));
    for _ in 0..5 {
        second.advance().unwrap();
        second.execution.prune().unwrap();
    }
    assert!(is_overtaken(&first.advance()));
    assert!(is_overtaken(&first.execution.begin()));
    assert!(is_overtaken(&first.execution.prune()));
    assert_eq!(second.advance().unwrap(), 7);
    assert_eq!(start_again(&store), 7);
}

#[test]
fn a_number_that_was_pruned_meanwhile_is_no_success() {
    let store: Arc<dyn Store> = Arc::new(Cloud::default().client());
    let mut first = Run::start(&store, 1).unwrap();
    first.advance().unwrap();
    let next = first.execution.base().unwrap().number + 1;
    let mut second = Run::start(&store, 1).unwrap();
    for _ in 0..5 {
        second.advance().unwrap();
        second.execution.prune().unwrap();
    }
    let name = format!("log/{next}");
    assert!(
        store.get(&name).unwrap_err().is_missing(),
        "the first can create it"
    );
    assert!(is_overtaken(&first.advance()));
    assert!(store.get(&name).is_ok(), "it did");
    // It is never read, and goes.
    assert_eq!(Run::start(&store, 1).unwrap().step, 6);
    assert_eq!(start_again(&store), 6);
    assert!(store.get(&name).unwrap_err().is_missing());
}

#[test]
fn a_manifest_without_an_answer_is_asked_for_until_it_has_one() {
    for (fate, deliver) in [
        (Fate::Lost, false),
        (Fate::Unanswered, false),
        (Fate::Late, false),
        (Fate::Late, true),
    ] {
        let cloud = Cloud::default();
        let bad = Arc::new(AtomicU8::new(0));
        let weather = bad.clone();
        let store: Arc<dyn Store> = Arc::new(cloud.weather(move |call| {
            if call == "creation" && weather.load(Ordering::Relaxed) > 0 {
                weather.fetch_sub(1, Ordering::Relaxed);
                fate
            } else {
                Fate::Answered
            }
        }));
        let mut run = Run::start(&store, 2).unwrap();
        run.advance().unwrap();
        bad.store(2, Ordering::Relaxed);
        assert!(matches!(run.advance(), Err(Error::Store(_))));
        assert!(run.execution.is_pending());
        assert!(matches!(run.execution.begin(), Err(Error::Misuse(_))));
        assert!(matches!(run.execution.abandon(), Err(Error::Misuse(_))));
        run.execution.prune().unwrap();
        assert!(matches!(run.execution.settle(), Err(Error::Store(_))));
        if deliver {
            cloud.deliver(0);
        }
        assert_eq!(run.advance().unwrap(), 2);
        while cloud.late() > 0 {
            cloud.deliver(0);
        }
        assert_eq!(run.advance().unwrap(), 3);
        assert_eq!(start_again(&store), 3);
    }
}

fn label() -> Label {
    Label {
        operator: "a".to_owned(),
        part: "state".to_owned(),
        codec: "test".to_owned(),
        version: 1,
        groups: None,
    }
}

fn is_misuse<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Misuse(_)))
}

#[test]
fn calls_that_do_not_fit_are_refused() {
    let cloud = Cloud::default();
    let location = Location::new(Arc::new(cloud.client()));
    let mut execution = location.open(0, None).unwrap().execution;
    assert!(
        is_misuse(&execution.commit(Checkpoint::default(), &[])),
        "none was begun"
    );
    assert!(is_misuse(&execution.settle()));
    let first = execution.begin().unwrap();
    assert!(is_misuse(&execution.begin()), "one is under way");
    assert!(
        is_misuse(&execution.commit(Checkpoint::default(), &[])),
        "a checkpoint without packs"
    );

    let pack = |attempt: pointstamp_store::Attempt, worker| {
        let mut writer = attempt.writer(location.store(), worker).unwrap();
        let section = writer.put(label(), b"1").unwrap();
        (writer.finish().unwrap(), section)
    };
    let (packed, section) = pack(first, 0);
    let twice = [packed.clone(), packed.clone()];
    assert!(is_misuse(&execution.commit(Checkpoint::default(), &twice)));
    execution.abandon().unwrap();
    let second = execution.begin().unwrap();
    assert!(
        is_misuse(&execution.commit(Checkpoint::default(), &[packed])),
        "a pack of another attempt"
    );
    let mut writer = second.writer(location.store(), 0).unwrap();
    writer.refer(label(), &section);
    let packed = writer.finish().unwrap();
    assert!(
        is_misuse(&execution.commit(Checkpoint::default(), &[packed])),
        "a reference to what was given up"
    );

    let mut writer = second.writer(location.store(), 1).unwrap();
    drop(writer.section(label()));
    assert!(
        is_misuse(&writer.finish()),
        "a section that was not finished"
    );
    let (packed, _) = pack(second, 2);
    let made = execution.commit(Checkpoint::default(), &[packed]).unwrap();
    assert_eq!((made.number, made.packs.len()), (2, 1));
    assert_eq!(
        execution.prune().unwrap(),
        4 - 1,
        "a fence and two packs that were given up"
    );
    assert!(cloud.objects().keys().eq(["head", "log/2", "packs/1.2.2"]));
}

#[test]
fn a_reference_to_another_section_is_refused() {
    let location = Location::new(Arc::new(Cloud::default().client()));
    let mut execution = location.open(1, None).unwrap().execution;
    let attempt = execution.begin().unwrap();
    let mut writer = attempt.writer(location.store(), 0).unwrap();
    let section = writer.put(label(), b"1").unwrap();
    writer.refer(label(), &section);
    let packed = writer.finish().unwrap();
    execution.commit(Checkpoint::default(), &[packed]).unwrap();
    let reader = location.read(None).unwrap().unwrap();
    assert_eq!(reader.sections().unwrap().len(), 2);
    for wrong in [
        SectionRef {
            index: 1,
            ..section.clone()
        },
        SectionRef {
            index: 2,
            ..section.clone()
        },
        SectionRef {
            sum: !section.sum,
            ..section.clone()
        },
        SectionRef {
            len: 2,
            ..section.clone()
        },
        SectionRef {
            pack: "packs/1.1.7".to_owned(),
            ..section.clone()
        },
    ] {
        assert!(
            matches!(reader.read(&wrong), Err(Error::Damaged { .. })),
            "{wrong:?}"
        );
    }
    assert_eq!(reader.read(&section).unwrap(), "1");
}

#[test]
fn a_pack_that_is_mostly_not_needed_is_written_again_and_goes() {
    let cloud = Cloud::default();
    let location = Location::new(Arc::new(cloud.client()));
    let mut execution = location.open(1, None).unwrap().execution;
    let attempt = execution.begin().unwrap();
    let mut writer = attempt.writer(location.store(), 0).unwrap();
    let mut sections = Vec::new();
    let random = |seed| {
        let mut bytes = vec![0; 1000];
        fastrand::Rng::with_seed(seed).fill(&mut bytes);
        bytes
    };
    for seed in 0..4 {
        sections.push(writer.put(label(), &random(seed)).unwrap());
    }
    let packed = writer.finish().unwrap();
    execution.commit(Checkpoint::default(), &[packed]).unwrap();

    // One section goes with each checkpoint; the last is needed for ever.
    let mut rewritten = 0;
    for left in [3, 2, 1, 1, 1] {
        let base = location.read(None).unwrap().unwrap();
        let attempt = execution.begin().unwrap();
        let mut writer = attempt.writer(location.store(), 0).unwrap();
        sections.drain(..sections.len() - left);
        for section in &mut sections {
            if base.manifest().rewrites(&section.pack) {
                let pack = base.pack(&section.pack).unwrap();
                *section = writer.copy(label(), &pack, section).unwrap();
                rewritten += 1;
            } else {
                writer.refer(label(), section);
            }
        }
        let packed = writer.finish().unwrap();
        execution.commit(Checkpoint::default(), &[packed]).unwrap();
        execution.prune().unwrap();
    }
    assert_eq!(rewritten, 1);
    let packs: Vec<String> = cloud
        .objects()
        .into_keys()
        .filter(|name| name.starts_with("packs"))
        .collect();
    assert_eq!(packs, ["packs/1.5.0", "packs/1.6.0"]);
    let reader = location.read(None).unwrap().unwrap();
    assert_eq!(reader.read(&sections[0]).unwrap(), random(3));
}

#[test]
fn the_newest_entry_names_contents_and_not_names_only() {
    let cloud = Cloud::default();
    let location = Location::new(Arc::new(cloud.client()));
    let mut execution = location.open(2, None).unwrap().execution;
    // A pack of the same name, lineage and length.
    let attempt = execution.begin().unwrap();
    let pack = |bytes: &[u8]| {
        let mut writer = attempt.writer(location.store(), 0).unwrap();
        writer.put(label(), bytes).unwrap();
        writer.finish().unwrap()
    };
    let (first, _) = (pack(b"one"), pack(b"two"));
    execution.commit(Checkpoint::default(), &[first]).unwrap();
    let damage = location.verify().unwrap().damage;
    assert_eq!(damage[0].object(), Some("packs/1.1.0"));
    pack(b"one");
    assert!(location.verify().unwrap().damage.is_empty());

    // An entry of the same number.
    let attempt = execution.begin().unwrap();
    let mut writer = attempt.writer(location.store(), 0).unwrap();
    writer.put(label(), b"1").unwrap();
    execution
        .commit(Checkpoint::default(), &[writer.finish().unwrap()])
        .unwrap();
    execution.prune().unwrap();
    assert!(location.verify().unwrap().damage.is_empty());
    let entry = String::from_utf8(cloud.objects()["log/2"].to_vec()).unwrap();
    let (json, _) = entry.rsplit_once("\ncrc32c").unwrap();
    let other = json.replace("\"made_by\": \"\"", "\"made_by\": \"me\"");
    assert_ne!(json, other);
    let sum = crc32c::crc32c(other.as_bytes());
    cloud.set("log/2", Some(format!("{other}\ncrc32c {sum:08x}\n").into()));
    let damage = location.verify().unwrap().damage;
    assert_eq!(damage[0].object(), Some("log/2"));
    assert!(damage[0].to_string().contains("log/3"), "{}", damage[0]);
}

#[test]
fn programs_that_use_one_folder_at_once_take_turns() {
    let folder = tempfile::tempdir().unwrap();
    let work = || {
        let mut answered = 0;
        for _ in 0..12 {
            let store: Arc<dyn Store> = Arc::new(Local::new(folder.path()));
            let mut run = match Run::start(&store, 2) {
                Ok(run) => run,
                Err(Error::Overtaken { .. }) => continue,
                Err(other) => panic!("{other}"),
            };
            for _ in 0..3 {
                match run.advance() {
                    Ok(step) => answered = step,
                    Err(Error::Overtaken { .. } | Error::Missing { .. } | Error::Store(_)) => break,
                    Err(other) => panic!("{other}"),
                }
                let _ = run.execution.prune();
            }
        }
        answered
    };
    let answered = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .max()
    });
    let store: Arc<dyn Store> = Arc::new(Local::new(folder.path()));
    let there = start_again(&store);
    assert!(answered.unwrap() <= there && there > 0);
}

#[test]
fn a_location_that_is_removed_under_way_is_an_error_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("state");
    let store: Arc<dyn Store> = Arc::new(Local::new(&place));
    let mut run = Run::start(&store, 2).unwrap();
    run.advance().unwrap();
    std::fs::remove_dir_all(&place).unwrap();
    assert!(matches!(
        run.advance(),
        Err(Error::Store(_) | Error::Missing { .. })
    ));
    assert!(!place.exists());

    let cloud = Cloud::default();
    let store: Arc<dyn Store> = Arc::new(cloud.client());
    let mut run = Run::start(&store, 2).unwrap();
    run.advance().unwrap();
    let location = Location::new(store.clone());
    let attempt = run.execution.begin().unwrap();
    let mut writer = attempt.writer(location.store(), 0).unwrap();
    writer.put(label(), b"1").unwrap();
    let packed = writer.finish().unwrap();
    for name in cloud.objects().keys() {
        cloud.set(name, None);
    }
    let error = run
        .execution
        .commit(Checkpoint::default(), &[packed])
        .unwrap_err();
    assert_eq!(error.object(), Some("log/2"), "{error}");
}

#[test]
fn attempts_and_packs_cross_processes() {
    let location = Location::new(Arc::new(Cloud::default().client()));
    let mut execution = location.open(1, None).unwrap().execution;
    let attempt = execution.begin().unwrap();
    let sent = postcard::to_stdvec(&attempt).unwrap();
    let attempt: pointstamp_store::Attempt = postcard::from_bytes(&sent).unwrap();
    let mut writer = attempt.writer(location.store(), 3).unwrap();
    writer.put(label(), b"1").unwrap();
    let packed = writer.finish().unwrap();
    let sent = postcard::to_stdvec(&packed).unwrap();
    let back: pointstamp_store::Packed = postcard::from_bytes(&sent).unwrap();
    assert_eq!(back, packed);
    let manifest = execution.commit(Checkpoint::default(), &[back]).unwrap();
    let json = serde_json::to_string(manifest).unwrap();
    assert_eq!(
        &serde_json::from_str::<pointstamp_store::Manifest>(&json).unwrap(),
        manifest
    );
}
