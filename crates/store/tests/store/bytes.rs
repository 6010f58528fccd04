//! Random bytes as objects, and random sections in packs.

use std::sync::Arc;

use crc32c::crc32c;
use pointstamp_store::{Checkpoint, Cloud, Label, Location, Store};
use pointstamp_testkit::cases;
use proptest::prelude::*;

use crate::computation::Run;

/// Puts correct checksums on bytes, so that the layers below the checksums are read.
fn sealed(kind: u8, mut bytes: Vec<u8>) -> Vec<u8> {
    match kind {
        0 => bytes,
        1 => {
            let line = format!("\ncrc32c {:08x}\n", crc32c(&bytes));
            bytes.extend(line.into_bytes());
            bytes
        }
        _ => {
            let mut footer = Vec::new();
            let at = bytes.len() / 2;
            footer.extend((at as u64).to_le_bytes());
            footer.extend(((bytes.len() - at) as u64).to_le_bytes());
            footer.extend(crc32c(&bytes[at..]).to_le_bytes());
            footer.extend(1_u32.to_le_bytes());
            footer.extend(b"PSTMPACK");
            let sum = crc32c(&footer);
            footer.extend(sum.to_le_bytes());
            bytes.extend(footer);
            bytes
        }
    }
}

/// Bytes: any; or JSON that is like an entry; or an entry with a few bytes changed.
fn objects(entry: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
    let text = String::from_utf8(entry).unwrap();
    let end = text.rfind("\ncrc32c").unwrap();
    let json = text.as_bytes()[..end].to_vec();
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4);
    let patched = changes.prop_map(move |changes| {
        let mut json = json.clone();
        for (at, byte) in changes {
            let at = at.index(json.len());
            json[at] = byte;
        }
        sealed(1, json)
    });
    let any = (0..3_u8, proptest::collection::vec(any::<u8>(), 0..200));
    prop_oneof![patched, any.prop_map(|(kind, bytes)| sealed(kind, bytes))]
}

fn checkpoints() -> (Cloud, Arc<dyn Store>) {
    let cloud = Cloud::default();
    let store: Arc<dyn Store> = Arc::new(cloud.client());
    let mut run = Run::start(&store, 2).unwrap();
    for _ in 0..2 {
        run.advance().unwrap();
    }
    (cloud, store)
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn any_bytes_are_refused_or_read(
        (name, bytes) in {
            let (cloud, _) = checkpoints();
            let entry = cloud.objects()["log/3"].to_vec();
            (prop::sample::select(vec!["head", "log/2", "log/3", "packs/1.2.0", "packs/1.1.1"]), objects(entry))
        },
    ) {
        let (cloud, store) = checkpoints();
        cloud.set(name, Some(bytes.into()));
        let location = Location::new(store.clone());
        let _ = location.verify().unwrap();
        let _ = location.list();
        let _ = location.prune();
        if let Ok(Some(reader)) = location.read(None)
            && let Ok(sections) = reader.sections()
        {
            for found in sections {
                let _ = reader.read(&found.section);
            }
        }
        for at in [None, Some(2), Some(3)] {
            let _ = location.open(2, at);
        }
    }

    #[test]
    fn sections_come_back(
        sections in proptest::collection::vec((0..200_000_usize, any::<u8>(), any::<bool>()), 0..6),
        piece in 1..100_000_usize,
    ) {
        let location = Location::new(Arc::new(Cloud::default().client()));
        let mut execution = location.open(1, None).unwrap().execution;
        let attempt = execution.begin().unwrap();
        let mut writer = attempt.writer(location.store(), 0).unwrap();
        let mut expected = Vec::new();
        for (index, (len, seed, noise)) in sections.iter().enumerate() {
            let mut random = fastrand::Rng::with_seed(u64::from(*seed));
            let bytes: Vec<u8> = (0..*len).map(|_| if *noise { random.u8(..) } else { *seed }).collect();
            let label = Label {
                operator: format!("{index}"),
                part: String::new(),
                codec: String::new(),
                version: 0,
                groups: None,
            };
            let mut section = writer.section(label);
            for piece in bytes.chunks(piece) {
                section.append(piece).unwrap();
            }
            section.finish().unwrap();
            expected.push(bytes);
        }
        let packed = writer.finish().unwrap();
        execution.commit(Checkpoint::default(), &[packed]).unwrap();
        let reader = location.read(None).unwrap().unwrap();
        let found = reader.sections().unwrap();
        prop_assert_eq!(found.len(), expected.len());
        for (found, bytes) in found.iter().zip(&expected) {
            prop_assert_eq!(&reader.read(&found.section).unwrap(), bytes);
        }
    }
}
