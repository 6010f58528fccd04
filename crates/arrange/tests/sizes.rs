//! The memory held, in updates and in bytes, as updates, batches and arrangements report it.

use pointstamp_arrange::{Batch, Batcher, Bytes, Rows, TraceWriter, Units, Updates, Words};
use pointstamp_order::Antichain;

const KEYS: u64 = 1000;

/// A batch of updates at several times, with columns of similar sizes: for each key two values, and two updates of each.
fn batch(lower: u64) -> Batch<Words, Bytes, [u64; 2]> {
    let mut batcher = Batcher::new(Antichain::from_elem([lower, 0]));
    for key in 0..KEYS {
        for val in [&b"value 1"[..], b"value 2"] {
            for time in [0, 1 + key % 20] {
                batcher.push(key, val, &[lower, time], 2).unwrap();
            }
        }
    }
    let mut sealed = batcher.seal(&Antichain::from_elem([lower + 1, 0])).unwrap();
    sealed.remove(0).1
}

/// The bytes of the columns of [`batch`], and the least number of bytes of its times.
fn expected() -> (usize, usize) {
    let keys = 1000 * (8 + 4);
    let vals = 2000 * (7 + 4 + 4);
    let updates = 4000 * (4 + 8);
    (keys + vals + updates, 21 * 16)
}

#[test]
fn a_batch_takes_the_bytes_of_its_columns() {
    let (columns, times) = expected();
    let batch = batch(0);
    assert_eq!((batch.len(), batch.is_empty()), (4000, false));
    assert!(
        (columns + times..=columns + 4 * times).contains(&batch.bytes()),
        "{} bytes, not {columns} and at least {times}",
        batch.bytes()
    );
}

#[test]
fn what_is_alike_takes_nothing() {
    let mut batcher = Batcher::<Words, Units, u64>::new(Antichain::from_elem(0));
    for key in 0..KEYS {
        batcher.push(key, (), &0, 1).unwrap();
    }
    assert_eq!((batcher.len(), batcher.is_empty()), (1000, false));
    let (_, batch) = batcher.seal(&Antichain::from_elem(1)).unwrap().remove(0);
    assert!(
        (8000..8200).contains(&batch.bytes()),
        "{} bytes",
        batch.bytes()
    );
}

#[test]
fn an_arrangement_holds_both_sides_of_a_merge_until_it_is_done() {
    let lower = Antichain::from_elem([0, 0]);
    let (mut writer, trace) = TraceWriter::new(lower);
    let origin = writer.origin();
    assert!(trace.is_empty() && origin.is_empty());
    assert_eq!((trace.len(), trace.bytes(), origin.bytes()), (0, 0, 0));
    let one = batch(0).bytes();
    writer.insert(batch(0)).unwrap();
    assert_eq!((trace.len(), trace.bytes()), (4000, one));
    // A batch pays for merges as it comes, but not for all of this one.
    let half = {
        let mut batcher = Batcher::<Words, Bytes, [u64; 2]>::new(Antichain::from_elem([1, 0]));
        for key in 0..2100 {
            batcher.push(key, b"value 3", &[1, 0], 2).unwrap();
        }
        batcher
            .seal(&Antichain::from_elem([2, 0]))
            .unwrap()
            .remove(0)
            .1
    };
    let kept = half.bytes();
    // A reader that follows keeps them apart.
    let mut follower = trace.clone();
    follower.follow();
    writer.insert(half).unwrap();
    assert_eq!((trace.len(), trace.bytes()), (6100, one + kept));
    follower.stop_following();
    assert!(!writer.exert(&mut 1500).unwrap());
    assert_eq!(
        (trace.len(), origin.len()),
        (6100, 6100),
        "of a merge under way each is counted once"
    );
    let under_way = trace.bytes();
    assert!(
        under_way > one + kept + 1500 * 8 && under_way < 2 * (one + kept),
        "{under_way} bytes while {one} and {kept} are merged"
    );
    assert_eq!(origin.bytes(), under_way);
    // The merged batches are large, and wait to be freed.
    while !writer.exert(&mut 1000).unwrap() {}
    let merged = trace.batches()[0].bytes();
    assert_eq!(
        (trace.len(), trace.is_empty(), origin.is_empty()),
        (6100, false, false)
    );
    let columns = expected().0;
    assert!(
        trace.bytes() >= merged + columns,
        "{} bytes, of which {merged} are merged and {columns} wait",
        trace.bytes()
    );
    while !writer.compact(&mut 100).unwrap() {}
    assert_eq!(trace.bytes(), merged);
    // Dropped readers leave nothing behind.
    drop((trace, follower));
    assert_eq!((origin.len(), origin.bytes()), (0, 0));
}

type Held = Batcher<Words, Units, u64>;

/// Adds and removes the same updates many times, and checks that no more is held than there are updates, and
/// the unsorted ones.
fn check_held(add: impl Fn(&mut Held, i64)) {
    let mut batcher = Held::new(Antichain::from_elem(0));
    for _ in 0..400 {
        add(&mut batcher, 1);
        add(&mut batcher, -1);
        assert!(batcher.len() < 300_000, "{} held", batcher.len());
    }
}

#[test]
fn a_batcher_holds_what_updates_add_up_to() {
    check_held(|batcher, diff| {
        for key in 0..KEYS {
            batcher.push(key, (), &1, diff).unwrap();
        }
    });
    let keys: Words = (0..KEYS).collect();
    check_held(|batcher, diff| {
        let (vals, diffs) = (Units::new(keys.len()), vec![diff; keys.len()]);
        batcher.extend_at(&keys, &vals, &1, &diffs).unwrap();
    });
    check_held(|batcher, diff| {
        let mut updates = Updates::default();
        for key in 0..KEYS {
            updates.push(key, (), &1, diff);
        }
        batcher.append(&mut updates).unwrap();
    });
}

#[test]
fn updates_take_the_bytes_of_their_columns() {
    let mut updates = Updates::<Words, Bytes, u64>::default();
    assert_eq!((updates.bytes(), updates.is_empty()), (0, true));
    for number in 0..1024 {
        updates.push(number, b"value 12", &(number % 3), 2);
    }
    assert!(updates.keys().as_slice().iter().copied().eq(0..1024));
    assert_eq!(
        (updates.vals().len(), updates.vals().get(1023)),
        (1024, &b"value 12"[..])
    );
    // Columns grow to the next power of two, that of offsets and of differences a step ahead.
    let least = 1024 * (8 + 8 + 4 + 4 + 8) - 4 - 8;
    assert!(
        (least..2 * least).contains(&updates.bytes()),
        "{} bytes",
        updates.bytes()
    );
}

#[test]
fn columns_return_what_they_do_not_use() {
    let mut words: Words = (0..1000).collect();
    let mut rows = Bytes::default();
    for number in 0..1000 {
        rows.push(&vec![1; number % 7]);
    }
    words.clear();
    rows.clear();
    assert!(words.bytes() >= 8000 && rows.bytes() >= 4000 + 2994);
    assert!(words.is_empty() && rows.is_empty());
    words.shrink();
    rows.shrink();
    assert_eq!((words.bytes(), rows.bytes()), (0, 0));
    words.reserve_for(&Words::default(), 100);
    assert!(words.bytes() >= 800);
    let mut units = Units::new(5);
    assert_eq!((units.len(), units.bytes()), (5, 0));
    units.clear();
    assert!(units.is_empty());
}
