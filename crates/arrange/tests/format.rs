//! Batches written and read again, and errors for damaged bytes.

#[path = "support/batch.rs"]
mod batch;

use pointstamp_arrange::{Batch, BatchReader, Batcher, Bytes, Error, Rows, Time, Units, Words};
use pointstamp_order::Antichain;
use pointstamp_testkit::cases;
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

/// Reads a batch from parts of its bytes.
fn read_in_parts<K: Rows, V: Rows, T: Time>(
    bytes: &[u8],
    part: usize,
) -> Result<Batch<K, V, T>, Error> {
    let mut reader = BatchReader::new(None);
    for part in bytes.chunks(part) {
        reader.push(part)?;
    }
    reader.finish()
}

fn are_equal<K: Rows, V: Rows, T: Time>(a: &Batch<K, V, T>, b: &Batch<K, V, T>) -> bool {
    batch::check_batch(a);
    let (page, other) = (a.page(0).unwrap(), b.page(0).unwrap());
    page.iter().eq(other.iter()) && a.upper() == b.upper() && a.lower() == b.lower()
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
    #![proptest_config(cases(256))]

    #[test]
    fn batches_are_read_as_they_were_written(updates in updates(), part in any::<prop::sample::Index>()) {
        let Some(written) = words(&updates) else { return Ok(()) };
        let mut bytes = Vec::new();
        written.write(&mut bytes).unwrap();
        let read = read_in_parts::<Words, Words, [u64; 2]>(&bytes, part.index(bytes.len()) + 1);
        let read = read.unwrap();
        prop_assert!(are_equal(&read, &written));
        bytes.extend(b"more");
        prop_assert!(read_in_parts::<Words, Words, [u64; 2]>(&bytes, 1 << 20).is_err());
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
        prop_assert!(written.page(0).unwrap().iter().map(|(key, ..)| key.to_vec()).eq(expected));
        let mut bytes = Vec::new();
        written.write(&mut bytes).unwrap();
        let read = read_in_parts::<Bytes, Bytes, u64>(&bytes, 1 << 20).unwrap();
        prop_assert!(are_equal(&read, &written));
    }

    #[test]
    fn damage_is_refused_or_harmless(updates in updates(), place in any::<prop::sample::Index>(), value in any::<u8>(), cut in any::<bool>()) {
        let Some(written) = words(&updates) else { return Ok(()) };
        let mut bytes = Vec::new();
        written.write(&mut bytes).unwrap();
        let place = place.index(bytes.len());
        if cut {
            bytes.truncate(place);
        } else {
            bytes[place] = value;
        }
        if let Ok(read) = read_in_parts::<Words, Words, [u64; 2]>(&bytes, 1 << 20) {
            prop_assert!(!cut, "what is cut off is missed");
            let page = read.page(0).unwrap();
            let rows: Vec<_> = page.iter().map(|(k, v, t, d)| ((k, v, *t), d)).collect();
            prop_assert!(rows.is_sorted_by(|a, b| a.0 < b.0));
            prop_assert!(rows.iter().all(|(_, diff)| *diff != 0));
        }
    }
}

/// Generates damage of a count or an index: in every place another number, and so many words as if it were a
/// count.
fn damaged(written: &[u64]) -> impl Iterator<Item = Vec<u64>> {
    (0..written.len()).flat_map(|place| {
        let word = written[place];
        let rest = &written[place + 1..];
        let with = |word: u64, rest: &[u64]| [&written[..place], &[word], rest].concat();
        let mut all = vec![with(0, rest), with(word ^ 1 << 40, rest)];
        all.extend([1, 2, u64::MAX].map(|by| with(word.wrapping_add(by), rest)));
        if let Ok(count @ 1..) = usize::try_from(word)
            && count <= rest.len()
        {
            all.push(with(0, &rest[count..]));
            all.push(with(word - 1, &rest[1..]));
            all.push(with(word + 1, &[&rest[..1], rest].concat()));
        }
        all
    })
}

/// Every number that is wrong in a batch is refused, or makes another batch.
#[test]
fn a_wrong_number_is_refused_or_harmless() {
    let rows = [
        vec![(1, 2, [0, 1], 1)],
        vec![(1, 2, [0, 1], 1), (1, 3, [0, 1], 1), (4, 2, [0, 1], 1)],
        vec![
            (1, 2, [0, 0], 2),
            (1, 2, [0, 1], -1),
            (1, 4, [0, 1], 1),
            (2, 4, [2, 0], 1),
        ],
        vec![
            (1, 0, [0, 0], 1),
            (2, 0, [0, 0], 3),
            (3, 0, [1, 0], 1),
            (3, 1, [0, 2], 1),
        ],
    ];
    let (mut refused, mut read) = (0, 0);
    for rows in rows {
        let mut bytes = Vec::new();
        words(&rows).unwrap().write(&mut bytes).unwrap();
        let numbers = bytes.len() / 8;
        let (head, body) = bytes.split_at(bytes.len() - (numbers - 1) * 8);
        let body: Vec<u64> = body
            .as_chunks()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word))
            .collect();
        for damaged in damaged(&body) {
            let body = damaged.iter().flat_map(|word| word.to_le_bytes());
            let bytes: Vec<u8> = head.iter().copied().chain(body).collect();
            let Ok(batch) = read_in_parts::<Words, Words, [u64; 2]>(&bytes, 1 << 20) else {
                refused += 1;
                continue;
            };
            read += 1;
            check_columns(&batch);
        }
    }
    assert!(
        refused > 500 && read > 100,
        "{refused} were refused, {read} were not"
    );
}

/// A batch from somewhere: all that it holds is in order, and belongs to a key.
fn check_columns(whole: &Batch<Words, Words, [u64; 2]>) {
    let batch = whole.page(0).unwrap();
    let rows: Vec<_> = batch.iter().map(|(k, v, t, d)| ((k, v, *t), d)).collect();
    assert!(
        rows.is_sorted_by(|a, b| a.0 < b.0),
        "in order, each once: {rows:?}"
    );
    assert!(rows.iter().all(|(_, diff)| *diff != 0));
    assert_eq!(rows.len(), whole.len());
    assert!(batch.times().is_sorted_by(|a, b| a < b));
    let mut vals = 0;
    for key in 0..batch.keys().len() {
        let of_key = batch.vals_of(key);
        assert!(of_key.start == vals && !of_key.is_empty());
        vals = of_key.end;
        assert!(
            of_key
                .into_iter()
                .all(|val| batch.updates_of(val).len() > 0)
        );
    }
    assert_eq!(vals, batch.vals().len());
}

#[test]
fn a_collection_without_values_is_written_and_read() {
    let mut batcher = Batcher::<Words, Units, u64>::new(Antichain::from_elem(0));
    for key in [7, 3, 7] {
        batcher.push(key, (), &2, 1).unwrap();
    }
    let (_, written) = batcher.seal(&Antichain::new()).unwrap().remove(0);
    let mut bytes = Vec::new();
    written.write(&mut bytes).unwrap();
    let read = read_in_parts::<Words, Units, u64>(&bytes, 1 << 20).unwrap();
    let read = read.page(0).unwrap();
    assert_eq!(
        read.iter().collect::<Vec<_>>(),
        [(3, (), &2, 1), (7, (), &2, 2)]
    );
    assert_eq!(read.keys().as_slice(), [3, 7]);
}

#[test]
fn a_batch_seen_from_an_inner_scope_is_the_same_with_another_coordinate() {
    let outer = words(&[(1, 2, [0, 1], 1), (1, 3, [2, 1], 2)]).unwrap();
    let inner: Batch<Words, Words, [u64; 3]> = outer.map_times(|[a, b]| [*a, *b, 0]);
    let (outer, inner_page) = (outer.page(0).unwrap(), inner.page(0).unwrap());
    let expected = outer
        .iter()
        .map(|(key, val, [a, b], diff)| (key, val, [*a, *b, 0], diff));
    assert!(
        inner_page
            .iter()
            .map(|(key, val, time, diff)| (key, val, *time, diff))
            .eq(expected)
    );
    assert!(inner.times()[0].meet(&[0, 1, 5]) == [0, 1, 0]);
}
