//! Every store satisfies the contract of the trait.

use std::path::Path;
use std::sync::Arc;

use pointstamp_store::{Cloud, Creation, Error, Local, Location, SimulatedDisk, Store};
use tempfile::TempDir;

use crate::computation::{Run, all, start_again};

fn stores() -> (TempDir, Vec<Arc<dyn Store>>) {
    let folder = tempfile::tempdir().unwrap();
    #[cfg_attr(not(feature = "cloud"), allow(unused_mut))]
    let mut stores: Vec<Arc<dyn Store>> = vec![
        Arc::new(Local::new(folder.path().join("deep/er/state"))),
        Arc::new(Local::on(SimulatedDisk::default(), "/state")),
        Arc::new(Cloud::default().client()),
    ];
    #[cfg(feature = "cloud")]
    {
        let memory = Arc::new(object_store::memory::InMemory::new());
        let remote = pointstamp_store::Remote::on(memory, "a/state".into(), "memory").unwrap();
        stores.push(Arc::new(remote));
    }
    (folder, stores)
}

#[test]
fn objects_are_whole_and_created_once() {
    let (_folder, stores) = stores();
    for store in stores {
        assert!(all(&store).is_empty());
        assert!(store.get("log/1").unwrap_err().is_missing());
        assert!(store.read("log/1", 0..1).unwrap_err().is_missing());
        store.delete("log/1").unwrap();

        assert_eq!(store.create("log/1", b"one").unwrap(), Creation::Created);
        assert_eq!(store.create("log/1", b"two").unwrap(), Creation::Exists);
        assert_eq!(store.get("log/1").unwrap(), "one");

        let mut upload = store.upload("packs/1.1.0").unwrap();
        upload.write(b"he").unwrap();
        assert!(store.list("packs").unwrap().is_empty());
        upload.write(b"llo").unwrap();
        upload.finish().unwrap();
        drop(store.upload("packs/1.1.1").unwrap());
        store.put("head", b"1").unwrap();
        store.put("head", b"12").unwrap();
        assert_eq!(store.get("head").unwrap(), "12");

        let listed = store.list("packs").unwrap();
        assert_eq!(
            (listed.len(), &*listed[0].name, listed[0].size),
            (1, "packs/1.1.0", 5)
        );
        assert_eq!(all(&store).len(), 3);
        assert_eq!(store.read("packs/1.1.0", 1..4).unwrap(), "ell");
        assert_eq!(store.read("packs/1.1.0", 5..5).unwrap(), "");
        for range in [4..6, 6..7, 0..u64::MAX] {
            let error = store.read("packs/1.1.0", range).unwrap_err();
            assert!(
                error.is_cut() && error.to_string().contains("packs/1.1.0"),
                "{error}"
            );
        }
        store.delete("log/1").unwrap();
        assert_eq!(store.create("log/1", b"three").unwrap(), Creation::Created);
    }
}

#[test]
fn a_computation_goes_on() {
    let (_folder, stores) = stores();
    for store in stores {
        for starts in 0..4 {
            let mut run = Run::start(&store, 3).unwrap();
            assert_eq!(run.step, starts * 8);
            for _ in 0..8 {
                run.advance().unwrap();
                run.execution.prune().unwrap();
            }
        }
        assert_eq!(start_again(&store), 32);
    }
}

#[test]
fn files_of_others_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(Local::new(folder.path()));
    Run::start(&store, 1).unwrap().advance().unwrap();
    let others = [
        "notes.txt",
        "log/notes",
        "log/01",
        "packs/1.1",
        ".7.tmp",
        "log/.x.tmp",
        "packs/.1.1.0.y",
    ];
    for name in others {
        std::fs::write(folder.path().join(name), "mine").unwrap();
    }
    std::fs::create_dir(folder.path().join("packs/9.9.9")).unwrap();
    let mut run = Run::start(&store, 1).unwrap();
    for _ in 0..5 {
        run.advance().unwrap();
        run.execution.prune().unwrap();
    }
    Location::new(store).prune().unwrap();
    for name in others {
        assert!(folder.path().join(name).exists(), "{name}");
    }
    assert!(folder.path().join("packs/9.9.9").exists());
}

#[test]
fn what_killed_writers_left_is_swept_and_what_others_write_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(Local::new(folder.path()));
    let mut run = Run::start(&store, 1).unwrap();
    run.advance().unwrap();
    let left = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, "half").unwrap();
        path
    };
    let number = run.execution.number();
    let dead = [
        left("log/.1.ab-0.tmp"),
        left(&format!("packs/.{number}.1.0.ab-0.tmp")),
        left(".head.ab-1.tmp"),
    ];
    let alive = [
        left("log/.3.ab-0.tmp"),
        left(&format!("packs/.{}.1.0.ab-0.tmp", number + 1)),
    ];
    let exists = |path: &std::path::PathBuf| Path::new(path).exists();
    Location::new(store.clone()).prune().unwrap();
    assert!(exists(&dead[2]), "someone may be writing the head");
    run.execution.prune().unwrap();
    assert!(!dead.iter().any(exists));
    assert!(alive.iter().all(exists));
    let mut run = Run::start(&store, 1).unwrap();
    run.execution.prune().unwrap();
    run.advance().unwrap();
    run.execution.prune().unwrap();
    assert!(!exists(&alive[0]));
}

#[test]
fn a_store_that_overwrites_is_refused() {
    let store: Arc<dyn Store> = Arc::new(Cloud::overwriting().client());
    let error = Location::new(store).open(3, None).unwrap_err();
    assert!(matches!(error, Error::NotExclusive { .. }), "{error}");
}

#[test]
fn reading_creates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::new(Arc::new(Local::new(folder.path().join("none"))));
    assert!(location.list().unwrap().is_empty());
    assert!(location.read(None).unwrap().is_none());
    assert!(location.verify().unwrap().damage.is_empty());
    assert_eq!(location.prune().unwrap(), 0);
    assert!(!folder.path().join("none").exists());
}

#[test]
fn a_large_object_is_sent_in_parts() {
    let (_folder, stores) = stores();
    let mut piece = vec![0; 3 << 20];
    fastrand::Rng::with_seed(7).fill(&mut piece);
    for store in stores {
        let mut upload = store.upload("packs/1.1.0").unwrap();
        for _ in 0..7 {
            upload.write(&piece).unwrap();
        }
        upload.finish().unwrap();
        let mut upload = store.upload("packs/1.1.1").unwrap();
        for _ in 0..7 {
            upload.write(&piece).unwrap();
        }
        drop(upload);
        assert_eq!(all(&store).len(), 1);
        let len = piece.len() as u64;
        assert_eq!(store.read("packs/1.1.0", 6 * len..7 * len).unwrap(), piece);
    }
}

/// On a real server: `POINTSTAMP_TEST_S3=s3://bucket/prefix`, and `AWS_ENDPOINT`, `AWS_ALLOW_HTTP` and keys in the environment.
#[cfg(feature = "cloud")]
#[test]
#[ignore = "needs a server"]
fn a_server_keeps_checkpoints() {
    let url = std::env::var("POINTSTAMP_TEST_S3").expect("a URL");
    let store: Arc<dyn Store> =
        Arc::new(pointstamp_store::Remote::new(&url, std::env::vars()).unwrap());
    assert!(store.get("log/1").unwrap_err().is_missing());
    store.put("packs/1.1.0", &vec![7; 20 << 20]).unwrap();
    assert!(store.read("packs/1.1.0", 0..21 << 20).unwrap_err().is_cut());
    assert!(
        store
            .read("packs/1.1.0", 21 << 20..22 << 20)
            .unwrap_err()
            .is_cut()
    );
    store.delete("packs/1.1.0").unwrap();
    store.delete("packs/1.1.0").unwrap();
    for starts in 0..2 {
        let mut run = Run::start(&store, 3).unwrap();
        assert_eq!(run.step, starts * 5);
        for _ in 0..5 {
            run.advance().unwrap();
            run.execution.prune().unwrap();
        }
    }
    assert_eq!(start_again(&store), 10);
}
