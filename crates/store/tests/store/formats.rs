//! Files of each format that was released are read; later formats are refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crc32c::crc32c;
use pointstamp_store::{Cloud, Error, Local, Location, Store};

use crate::computation::{Run, all, check, start_again};

fn formats() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/store/formats")
}

/// Makes the files of the current format, for the day on which it is released.
#[test]
#[ignore = "writes into the sources"]
fn write_files() {
    let version = pointstamp_store::pack::VERSION;
    let store: Arc<dyn Store> = Arc::new(Local::new(formats().join(version.to_string())));
    let mut run = Run::start(&store, 2).unwrap();
    for _ in 0..3 {
        run.advance().unwrap();
        run.execution.prune().unwrap();
    }
}

/// Copies files into memory, since a start changes them.
fn copy(folder: &Path) -> (Cloud, Arc<dyn Store>) {
    let (from, cloud): (Arc<dyn Store>, _) = (Arc::new(Local::new(folder)), Cloud::default());
    for name in all(&from) {
        cloud.set(&name, Some(from.get(&name).unwrap()));
    }
    let store = Arc::new(cloud.client());
    (cloud, store)
}

#[test]
fn every_released_format_is_read() {
    let mut count = 0;
    for folder in fs::read_dir(formats()).unwrap() {
        let (_, store) = copy(&folder.unwrap().path());
        let location = Location::new(store.clone());
        let verified = location.verify().unwrap();
        assert!(verified.damage.is_empty(), "{:?}", verified.damage);
        assert_eq!(verified.checkpoints, [3, 4]);
        assert_eq!(check(&location.read(None).unwrap().unwrap()).unwrap(), 3);
        let mut run = Run::start(&store, 2).unwrap();
        assert_eq!(run.advance().unwrap(), 4);
        assert_eq!(start_again(&store), 4);
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn later_formats_are_refused() {
    let (cloud, store) = copy(&formats().join("1"));
    let location = Location::new(store.clone());
    let objects = cloud.objects();
    for (name, bytes) in &objects {
        let mut later = bytes.to_vec();
        let end = later.len();
        if name.starts_with("packs/") {
            later[end - 16..end - 12].copy_from_slice(&9_u32.to_le_bytes());
            let sum = crc32c(&later[end - 36..end - 4]);
            later[end - 4..].copy_from_slice(&sum.to_le_bytes());
        } else {
            let text = String::from_utf8(later).unwrap();
            let (json, _) = text.rsplit_once("\ncrc32c").unwrap();
            let json = json.replacen("\"version\": 1", "\"version\": 9", 1);
            assert!(json.contains("\"version\": 9"));
            later = format!("{json}\ncrc32c {:08x}\n", crc32c(json.as_bytes())).into_bytes();
        }
        cloud.set(name, Some(later.into()));
        let damage = location.verify().unwrap().damage;
        let newer = damage.iter().any(|error| {
            let named = error.object() == Some(name);
            named
                && matches!(
                    error,
                    Error::Newer {
                        version: 9,
                        known: 1,
                        ..
                    }
                )
        });
        assert!(
            newer || name == "log/3" && !damage.is_empty(),
            "{name}: {damage:?}"
        );
        cloud.set(name, Some(bytes.clone()));
    }
}
