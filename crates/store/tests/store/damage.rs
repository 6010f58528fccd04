//! Every byte of every object changed, every object cut and removed: refused, naming the object.

use std::sync::Arc;

use bytes::Bytes;
use pointstamp_store::{Cloud, Error, Location, Store};

use crate::computation::{Run, check, named};

/// Three checkpoints of a small computation; tests damage the newest and an older one.
fn checkpoints() -> (Cloud, Arc<dyn Store>) {
    let cloud = Cloud::default();
    let store: Arc<dyn Store> = Arc::new(cloud.client());
    let mut run = Run::start(&store, 2).unwrap();
    for _ in 0..3 {
        run.advance().unwrap();
        run.execution.prune().unwrap();
    }
    let mut needed = named(&store);
    needed.insert("head".to_owned());
    assert!(
        cloud.objects().into_keys().eq(needed),
        "there is nothing else"
    );
    (cloud, store)
}

/// Reads everything that an execution reads of a location when it resumes.
fn go_on(store: &Arc<dyn Store>) -> Result<u64, Error> {
    // A copy, since a start changes the location.
    let copy = Cloud::default();
    for folder in ["", "log", "packs"] {
        for object in store.list(folder)? {
            copy.set(&object.name, Some(store.get(&object.name)?));
        }
    }
    let store: Arc<dyn Store> = Arc::new(copy.client());
    Run::start(&store, 2).map(|run| run.step)
}

/// Asserts that damage to an object is found, and by which reader.
fn is_refused(store: &Arc<dyn Store>, object: &str, what: &str) {
    let location = Location::new(store.clone());
    let damage = location.verify().unwrap().damage;
    let names =
        |error: &Error| error.object() == Some(object) && error.to_string().contains(object);
    assert!(damage.iter().any(names), "{what}: {damage:?}");
    // A resuming execution reads the newest manifest, its own packs and the needed parts of others.
    let needed = location.read(None).map(|reader| {
        let manifest = reader.unwrap().manifest().clone();
        let own = manifest
            .pack(object)
            .is_some_and(|pack| pack.worker.is_some());
        own || object == format!("log/{}", manifest.number)
    });
    match go_on(store) {
        Err(error) => assert!(names(&error), "{what}: {error}"),
        // Of an older checkpoint.
        Ok(step) => assert!(
            step == 3 && matches!(needed, Ok(false)),
            "{what}: nobody noticed"
        ),
    }
}

#[test]
fn a_changed_byte_is_refused() {
    let (cloud, store) = checkpoints();
    let mut tried = 0;
    for (name, bytes) in cloud.objects() {
        for at in 0..bytes.len() {
            let change = 1 << (at % 8);
            let mut changed = bytes.to_vec();
            changed[at] ^= change;
            cloud.set(&name, Some(changed.into()));
            is_refused(
                &store,
                &name,
                &format!("byte {at} of {name} changed by {change}"),
            );
            tried += 1;
        }
        cloud.set(&name, Some(bytes));
    }
    assert!(tried > 2_500, "{tried}");
    assert_eq!(go_on(&store).unwrap(), 3);
}

#[test]
fn a_cut_object_is_refused() {
    let (cloud, store) = checkpoints();
    for (name, bytes) in cloud.objects() {
        for len in 0..bytes.len() {
            cloud.set(&name, Some(bytes.slice(..len)));
            is_refused(&store, &name, &format!("{name} cut to {len}"));
        }
        let longer = [&bytes[..], b"\n"].concat();
        cloud.set(&name, Some(longer.into()));
        is_refused(&store, &name, &format!("{name} with a byte more"));
        cloud.set(&name, Some(bytes));
    }
}

#[test]
fn a_removed_object_is_refused() {
    let (cloud, store) = checkpoints();
    for (name, bytes) in cloud.objects() {
        cloud.set(&name, None);
        is_refused(&store, &name, &format!("{name} removed"));
        cloud.set(&name, Some(bytes));
    }
    // The whole log.
    let objects = cloud.objects();
    for name in objects.keys().filter(|name| name.starts_with("log/")) {
        cloud.set(name, None);
    }
    assert!(matches!(go_on(&store), Err(Error::Missing { .. })));
    cloud.set("head", None);
    assert!(matches!(go_on(&store), Err(Error::Missing { .. })));
}

#[test]
fn an_object_in_anothers_place_is_refused() {
    let (cloud, store) = checkpoints();
    let objects = cloud.objects();
    for (name, bytes) in &objects {
        for (other, others) in &objects {
            if name != other && bytes != others {
                cloud.set(name, Some(others.clone()));
                is_refused(&store, name, &format!("{other} in place of {name}"));
            }
        }
        cloud.set(name, Some(bytes.clone()));
    }
}

#[test]
fn an_object_of_another_location_is_refused() {
    let (cloud, store) = checkpoints();
    let (others, _) = checkpoints();
    let mut tried = 0;
    for (name, bytes) in others.objects() {
        let own = cloud.objects().get(&name).cloned();
        cloud.set(&name, Some(bytes));
        // Of two that differ, the error names the one or the other.
        let damage = Location::new(store.clone()).verify().unwrap().damage;
        assert!(!damage.is_empty(), "{name}");
        cloud.set(&name, own);
        tried += 1;
    }
    assert!(tried > 5);
}

#[test]
fn damage_says_object_byte_and_what_to_do() {
    let (cloud, store) = checkpoints();
    let location = Location::new(store.clone());
    let reader = location.read(None).unwrap().unwrap();
    let manifest = reader.manifest().clone();
    let pack = &manifest.packs.last().unwrap().name;
    let mut bytes = cloud.objects()[pack].to_vec();
    bytes[30] ^= 1;
    cloud.set(pack, Some(Bytes::from(bytes)));
    let error = check(&location.read(None).unwrap().unwrap()).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(&format!(
            "{pack} is damaged at byte 0: a page does not match its checksum"
        )),
        "{text}"
    );
    assert!(text.contains("at="), "{text}");
}
