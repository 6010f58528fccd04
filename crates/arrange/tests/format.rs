//! Batches written and read again, and what is read of bytes that are damaged.

#[path = "support/batch.rs"]
mod batch;

use pointstamp_arrange::{Batch, Batcher, Bytes, Time, Words};
use pointstamp_order::Antichain;
use proptest::prelude::*;

type Update = (u64, u64, [u64; 2], i64);

fn updates() -> impl Strategy<Value = Vec<Update>> {
    let update = (
        0..6u64,
        0..4u64,
        [0..3u64, 0..3u64],
        prop_oneof![Just(1i64), -2..3i64],
    );
    prop::collection::vec(update, 1..40)
}

fn words(updates: &[Update]) -> Option<Batch<Words, Words, [u64; 2]>> {
    let mut batcher = Batcher::new(Antichain::from_elem([0, 0]));
    for (key, val, time, diff) in updates {
        batcher.push(*key, *val, time, *diff).unwrap();
    }
    let mut sealed = batcher.seal(&Antichain::from_elem([9, 0])).unwrap();
    sealed.pop().map(|(_, batch)| batch)
}

proptest! {
    #[test]
    fn batches_are_read_as_they_were_written(updates in updates()) {
        let Some(written) = words(&updates) else { return Ok(()) };
        let mut bytes = Vec::new();
        written.write(&mut bytes);
        bytes.extend(b"more");
        let mut rest = &bytes[..];
        let read = Batch::<Words, Words, [u64; 2]>::read(&mut rest).unwrap();
        prop_assert_eq!(rest, b"more");
        prop_assert!(read.iter().eq(written.iter()));
        prop_assert_eq!(read.upper(), written.upper());
        batch::check_batch(&read);
    }

    #[test]
    fn bytes_of_any_length_are_keys(keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 1..20)) {
        let mut batcher = Batcher::<Bytes, Bytes, u64>::new(Antichain::from_elem(0));
        for key in &keys {
            batcher.push(key, b"value", &3, 1).unwrap();
        }
        let (_, written) = batcher.seal(&Antichain::new()).unwrap().remove(0);
        let mut expected = keys.clone();
        expected.sort();
        expected.dedup();
        prop_assert!(written.iter().map(|(key, ..)| key.to_vec()).eq(expected));
        let mut bytes = Vec::new();
        written.write(&mut bytes);
        let read = Batch::<Bytes, Bytes, u64>::read(&mut &bytes[..]).unwrap();
        prop_assert!(read.iter().eq(written.iter()));
    }

    #[test]
    fn damage_is_refused_or_harmless(updates in updates(), place in any::<prop::sample::Index>(), value in any::<u8>(), cut in any::<bool>()) {
        let Some(written) = words(&updates) else { return Ok(()) };
        let mut bytes = Vec::new();
        written.write(&mut bytes);
        let place = place.index(bytes.len());
        if cut {
            bytes.truncate(place);
        } else {
            bytes[place] = value;
        }
        if let Ok(read) = Batch::<Words, Words, [u64; 2]>::read(&mut &bytes[..]) {
            prop_assert!(!cut, "what is cut off is missed");
            let rows: Vec<_> = read.iter().map(|(k, v, t, d)| ((k, v, *t), d)).collect();
            prop_assert!(rows.is_sorted_by(|a, b| a.0 < b.0));
            prop_assert!(rows.iter().all(|(_, diff)| *diff != 0));
        }
    }
}

#[test]
fn a_batch_seen_from_an_inner_scope_is_the_same_with_another_coordinate() {
    let outer = words(&[(1, 2, [0, 1], 1), (1, 3, [2, 1], 2)]).unwrap();
    let inner: Batch<Words, Words, [u64; 3]> = outer.map_times(|[a, b]| [*a, *b, 0]);
    let expected = outer
        .iter()
        .map(|(key, val, [a, b], diff)| (key, val, [*a, *b, 0], diff));
    assert!(
        inner
            .iter()
            .map(|(key, val, time, diff)| (key, val, *time, diff))
            .eq(expected)
    );
    assert!(inner.times()[0].meet(&[0, 1, 5]) == [0, 1, 0]);
}
