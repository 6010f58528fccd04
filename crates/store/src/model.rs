//! A model of several executions at one location, in random interleavings at every call of the store, with calls that are late or are not
//! answered, and pauses and ends at any call.
//!
//! Each checkpoint adds one link to a chain: a random number, and that of the checkpoint before it. A target shows
//! the links, each with the position of its checkpoint, in one transaction, as sinks do. The invariants:
//!
//! - the shown links are one chain: each link that is shown follows the one shown before it;
//! - a link that was not shown because the position is past it was shown before;
//! - at every start everything that was shown is in the resumed checkpoint, or is the newest there;
//! - the resumed checkpoint can be read, whatever was removed;
//! - once all have ended and the last start has pruned, only named objects are left.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use proptest::test_runner::RngSeed;
use shuttle::rand::Rng;
use shuttle::scheduler::RandomScheduler;

use crate::checkpoint::Checkpoint;
use crate::error::Error;
use crate::execution::Execution;
use crate::pack::{Label, PackWriter};
use crate::planted::{Flaw, plant};
use crate::reader::Reader;
use crate::simulated::{Cloud, Fate};
use crate::{Location, SectionRef};

/// The rows that a target shows, and its position.
#[derive(Debug, Default)]
struct Target {
    position: u64,
    shown: Vec<u64>,
}

impl Target {
    /// Shows the last link of a chain that a checkpoint covers.
    fn show(&mut self, number: u64, chain: &[u64]) {
        let link = *chain.last().expect("a chain has a link");
        if number <= self.position {
            assert!(
                self.shown.contains(&link),
                "VIOLATED: checkpoint {number} would never be shown"
            );
            return;
        }
        self.position = number;
        self.shown.push(link);
        assert_eq!(
            self.shown, chain,
            "VIOLATED: what is shown is not the chain of checkpoint {number}"
        );
    }
}

fn chance(of: u32) -> bool {
    shuttle::rand::thread_rng().gen_range(0..of) == 0
}

fn label(part: &str) -> Label {
    Label {
        operator: "chain".to_owned(),
        part: part.to_owned(),
        codec: "words".to_owned(),
        version: 1,
        groups: None,
    }
}

/// The links of a checkpoint, and their sections.
fn chain(reader: &Reader) -> Result<(Vec<u64>, Vec<SectionRef>), Error> {
    let (mut links, mut sections) = (Vec::new(), Vec::new());
    for found in reader.sections()? {
        let bytes = reader.read(&found.section)?;
        links.push(u64::from_le_bytes(
            bytes[..].try_into().expect("a link has 8 bytes"),
        ));
        sections.push(found.section);
    }
    Ok((links, sections))
}

/// Checks the error of an execution. A failure by an unconfirmed call is expected and ends the execution;
/// lost or wrong data violates the invariants.
fn check(error: &Error) {
    match error {
        Error::Store(_) | Error::Overtaken { .. } => {}
        other => panic!("VIOLATED: {other}"),
    }
}

/// Writes the pack of a checkpoint: all links by reference but the last ones.
fn write(
    writer: &mut PackWriter,
    links: &[u64],
    sections: &mut Vec<SectionRef>,
) -> Result<(), Error> {
    for section in &*sections {
        writer.refer(label("link"), section);
    }
    for link in &links[sections.len()..] {
        sections.push(writer.put(label("link"), &link.to_le_bytes())?);
    }
    Ok(())
}

fn run(location: &Location, target: &Mutex<Target>, rounds: usize) -> Result<(), Error> {
    let opened = location.open(2, None)?;
    let mut execution = opened.execution;
    let (mut links, mut sections) = (Vec::new(), Vec::new());
    if let Some(reader) = &opened.from {
        (links, sections) = match chain(reader) {
            // Pruned by another.
            Err(error) => return execution.confirm().and(Err(error)),
            other => other?,
        };
        shuttle::thread::yield_now();
        target
            .lock()
            .unwrap()
            .show(reader.manifest().number, &links);
    } else {
        // An execution that was overtaken since may find that more was shown.
        execution.confirm()?;
        assert!(
            target.lock().unwrap().shown.is_empty(),
            "VIOLATED: what was shown is forgotten"
        );
    }
    let _ = execution.prune();
    for _ in 0..rounds {
        round(location, &mut execution, target, &mut links, &mut sections)?;
        if chance(2) {
            let _ = execution.prune();
        }
    }
    Ok(())
}

/// Makes a checkpoint of one more link, and shows it.
fn round(
    location: &Location,
    execution: &mut Execution,
    target: &Mutex<Target>,
    links: &mut Vec<u64>,
    sections: &mut Vec<SectionRef>,
) -> Result<(), Error> {
    let attempt = execution.begin()?;
    let mut next = links.clone();
    next.push(shuttle::rand::thread_rng().r#gen());
    // Now and then all is written again, so that older packs go.
    let mut places = if chance(4) {
        Vec::new()
    } else {
        sections.clone()
    };
    let packed = attempt.writer(location.store(), 0).and_then(|mut writer| {
        write(&mut writer, &next, &mut places)?;
        writer.finish()
    });
    let Ok(packed) = packed else {
        return execution.abandon();
    };
    let mut made = execution
        .commit(Checkpoint::default(), &[packed])
        .map(|made| made.number);
    for _ in 0..20 {
        match &made {
            Err(Error::Store(_)) if execution.is_pending() => {
                if chance(3) {
                    let _ = execution.prune();
                }
                made = execution.settle().map(|made| made.number);
            }
            _ => break,
        }
    }
    match made {
        Ok(number) => {
            (*links, *sections) = (next, places);
            shuttle::thread::yield_now();
            target.lock().unwrap().show(number, links);
            Ok(())
        }
        // Planted: it counts as a failed one.
        Err(Error::Store(_)) if !execution.is_pending() => Ok(()),
        Err(error) => Err(error),
    }
}

fn executions(flaw: Option<Flaw>) {
    plant(flaw);
    let cloud = Cloud::default();
    let target = Arc::new(Mutex::new(Target::default()));
    let mut threads = Vec::new();
    for _ in 0..3 {
        let (cloud, target) = (cloud.clone(), target.clone());
        threads.push(shuttle::thread::spawn(move || {
            for _ in 0..2 {
                let inner = cloud.clone();
                let store = cloud.weather(move |_| {
                    shuttle::thread::yield_now();
                    if inner.late() > 0 && chance(6) {
                        let index = shuttle::rand::thread_rng().gen_range(0..inner.late());
                        inner.deliver(index);
                    }
                    match shuttle::rand::thread_rng().gen_range(0..40) {
                        0 => Fate::Unanswered,
                        1 => Fate::Late,
                        2 => Fate::Lost,
                        _ => Fate::Answered,
                    }
                });
                let rounds = shuttle::rand::thread_rng().gen_range(1..5);
                if let Err(error) = run(&Location::new(Arc::new(store)), &target, rounds) {
                    check(&error);
                }
            }
        }));
    }
    for thread in threads {
        thread.join().unwrap();
    }
    while cloud.late() > 0 {
        let index = shuttle::rand::thread_rng().gen_range(0..cloud.late());
        cloud.deliver(index);
    }
    end(&cloud, &target);
    plant(None);
}

fn must<T>(result: Result<T, Error>) -> T {
    result.unwrap_or_else(|error| panic!("VIOLATED: {error}"))
}

/// Starts once more in good weather: everything that was shown is there, and nothing else is left.
fn end(cloud: &Cloud, target: &Mutex<Target>) {
    let location = Location::new(Arc::new(cloud.client()));
    let damage = must(location.verify()).damage;
    assert!(damage.is_empty(), "VIOLATED: {damage:?}");
    must(run(&location, target, 1));
    let mut opened = must(location.open(2, None));
    must(opened.execution.prune());
    let fence = format!("log/{}", opened.execution.number());
    let mut named = BTreeSet::from(["head".to_owned(), fence]);
    for (number, summary) in must(location.list()) {
        must(summary);
        let reader = must(location.read(Some(number))).expect("VIOLATED: it is listed");
        named.insert(format!("log/{number}"));
        named.extend(reader.manifest().packs.iter().map(|pack| pack.name.clone()));
    }
    let left: BTreeSet<String> = cloud.objects().into_keys().collect();
    assert_eq!(left, named, "VIOLATED: what is left is not what is named");
}

fn search(flaw: Option<Flaw>, count: u32) {
    let cases = pointstamp_testkit::cases(count);
    let seed = match cases.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => 7,
    };
    let scheduler = RandomScheduler::new_from_seed(seed, cases.cases as usize);
    shuttle::Runner::new(scheduler, shuttle::Config::new()).run(move || executions(flaw));
}

#[test]
fn what_is_shown_is_one_chain() {
    search(None, 1500);
}

fn is_found(flaw: Flaw) {
    let found = std::panic::catch_unwind(|| search(Some(flaw), 20_000));
    plant(None);
    let panic = found.expect_err("a planted flaw is found");
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or_default();
    assert!(said.contains("VIOLATED"), "{said}");
}

macro_rules! flaws {
    ($($name:ident $flaw:ident)*) => {
        $(#[test] fn $name() { is_found(Flaw::$flaw); })*
    };
}

flaws! {
    a_create_without_a_list_is_found NoList
    taking_any_entry_for_ones_own_is_found AnyEntry
    giving_up_a_create_is_found GivesUp
    pruning_what_later_executions_wrote_is_found PrunesAll
    pruning_what_was_not_answered_is_found PrunesPending
    a_start_without_a_fence_is_found NoFence
    a_start_from_a_stale_log_is_found StaleStart
}
