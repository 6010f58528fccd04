//! Readers that come and go, and the contents that are kept while there are none.

use std::sync::Arc;
use std::sync::atomic::Ordering;

#[path = "support/stored.rs"]
mod stored;
use pointstamp_arrange::{
    Batcher, Cursor, Error, Lists, Overflow, Sealed, Totals, Trace, TraceWriter, Words,
};
use pointstamp_order::Antichain;

struct Arranged {
    batcher: Batcher<Words, Words, u64>,
    writer: TraceWriter<Words, Words, u64>,
}

impl Arranged {
    fn new() -> (Self, Trace<Words, Words, u64>) {
        let least = Antichain::from_elem(0);
        let (mut writer, trace) = TraceWriter::new(least.clone());
        writer.store_in(stored::storage());
        let batcher = stored::batcher(least);
        (Self { batcher, writer }, trace)
    }

    /// A round in which a key comes.
    fn round(&mut self, time: u64, key: u64) -> Sealed<Words, Words, u64> {
        self.batcher.push(key, 1, &time, 1).unwrap();
        let upper = Antichain::from_elem(time + 1);
        let (_, batch) = self.batcher.seal(&upper).unwrap().remove(0);
        let sealed = self.writer.insert(batch).unwrap().unwrap();
        self.writer.seal(upper);
        sealed
    }
}

fn keys(trace: &Trace<Words, Words, u64>, time: u64) -> Vec<u64> {
    let mut cursor = Cursor::new(trace.batches()).unwrap();
    let mut keys = Vec::new();
    while let Some(key) = cursor.key() {
        if cursor.count_at(&time).unwrap() > 0 {
            keys.push(key);
        }
        cursor.pass().unwrap();
    }
    keys
}

#[test]
fn a_late_reader_reads_what_others_have_kept_apart() {
    let (mut arranged, mut trace) = Arranged::new();
    for time in 0..4 {
        arranged.round(time, 10 + time);
    }
    let origin = arranged.writer.origin();
    let from_now = origin.reader().unwrap();
    assert_eq!(from_now.since(), Antichain::from_elem(4));
    trace.allow_compaction(&Antichain::from_elem(7));
    let later = trace.origin().reader().unwrap();
    // The reader made at 4 still reads from there.
    assert_eq!(
        (later.since(), later.upper()),
        (Antichain::from_elem(4), Antichain::from_elem(4))
    );
    drop((from_now, later));
    let last = origin.reader().unwrap();
    assert_eq!(last.since(), Antichain::from_elem(7));
    for time in 4..8 {
        arranged.round(time, 10 + time);
    }
    for reader in [&trace, &last] {
        assert_eq!(keys(reader, 7), (10..18).collect::<Vec<_>>());
    }
    // A reader that is dropped leaves its slot to the next.
    drop(trace);
    let (a, b) = (last.clone(), origin.reader().unwrap());
    drop(last);
    for reader in [a, b] {
        assert_eq!(reader.len(), 8);
        assert_eq!(keys(&reader, 8), (10..18).collect::<Vec<_>>());
    }
}

#[test]
fn what_comes_while_there_is_no_reader_is_counted_and_not_kept() {
    let (mut arranged, trace) = Arranged::new();
    assert_eq!(arranged.round(0, 1).number, 1);
    let origin = arranged.writer.origin();
    drop(trace);
    assert!(origin.is_empty() && origin.reader().is_none());
    assert_eq!(arranged.round(1, 2).number, 2);
    assert_eq!(arranged.round(2, 3).number, 3);
    assert!(!arranged.writer.owes() && origin.is_empty() && origin.reader().is_none());
    for done in [
        arranged.writer.pay(&mut 10),
        arranged.writer.exert(&mut 10),
        arranged.writer.compact(&mut 10),
    ] {
        assert!(matches!(done, Ok(true)));
    }
}

#[test]
fn where_nothing_came_while_there_was_no_reader_there_may_be_one_again() {
    let (mut arranged, trace) = Arranged::new();
    arranged.writer.seal(Antichain::from_elem(3));
    drop(trace);
    arranged.writer.seal(Antichain::from_elem(5));
    let origin = arranged.writer.origin();
    let reader = origin.reader().unwrap();
    assert_eq!(
        (reader.since(), reader.upper()),
        (Antichain::from_elem(5), Antichain::from_elem(5))
    );
    arranged
        .batcher
        .begin_seal(&Antichain::from_elem(5))
        .unwrap();
    arranged.batcher.work(&mut 10).unwrap();
    arranged.round(6, 4);
    assert_eq!(keys(&reader, 6), [4]);
    // At the end nothing more comes; the contents can be read as long as one reader exists.
    arranged.writer.seal(Antichain::new());
    assert_eq!(keys(&origin.reader().unwrap(), 6), [4]);
    let mut last = reader;
    last.allow_compaction(&Antichain::new());
    assert!(origin.reader().is_none(), "it asks about no time any more");
}

#[test]
#[should_panic(expected = "the reader has not held its place")]
fn a_place_that_was_given_up_cannot_be_read_up_to() {
    let (mut arranged, mut trace) = Arranged::new();
    trace.follow();
    let first = arranged.round(0, 1).number;
    let last = arranged.round(1, 2).number;
    while !arranged.writer.exert(&mut 10).unwrap() {}
    assert_eq!(trace.batches_through(first).len(), 1);
    trace.acknowledge(last);
    while !arranged.writer.exert(&mut 10).unwrap() {}
    assert_eq!(trace.batches_through(last).len(), 1);
    trace.batches_through(first);
}

#[test]
fn counts_hold_nothing_back_that_they_have_passed() {
    let (mut arranged, mut trace) = Arranged::new();
    let mut totals = Totals::new(Box::new(trace.clone()));
    for (time, diff) in [(0, 1), (1, -1)] {
        arranged.batcher.push(1, 1, &time, diff).unwrap();
        let upper = Antichain::from_elem(time + 1);
        let (_, batch) = arranged.batcher.seal(&upper).unwrap().remove(0);
        let sealed = arranged.writer.insert(batch).unwrap().unwrap();
        totals.push(&sealed, ());
    }
    while !totals.is_idle() {
        totals.work(&mut 10, |_, _, _, _| {}).unwrap();
    }
    trace.allow_compaction(&Antichain::from_elem(2));
    while !arranged.writer.exert(&mut 10).unwrap() {}
    assert_eq!(trace.len(), 2);
    totals.advance(&Antichain::from_elem(2));
    while !arranged.writer.exert(&mut 10).unwrap() {}
    assert_eq!(trace.len(), 0);
}

#[test]
fn a_reader_moves_forward_only() {
    let (mut arranged, mut trace) = Arranged::new();
    arranged.round(0, 1);
    trace.allow_compaction(&Antichain::from_elem(5));
    trace.allow_compaction(&Antichain::from_elem(3));
    assert_eq!(trace.since(), Antichain::from_elem(5));
}

#[test]
fn lists_say_what_is_in_them() {
    let mut lists = Lists::<Words>::default();
    assert!(lists.is_empty());
    lists.end();
    for (val, diff) in [(3, 1), (5, -2)] {
        lists.push(val, diff);
    }
    lists.end();
    assert_eq!((lists.len(), lists.is_empty()), (2, false));
    assert_eq!(
        (lists.vals().as_slice(), lists.diffs()),
        (&[3, 5][..], &[1, -2][..])
    );
    assert_eq!((lists.range(0), lists.range(1)), (0..0, 0..2));
    assert!(lists.list(1).rev().eq([(5, -2), (3, 1)]));
    lists.clear();
    assert!(lists.is_empty() && lists.vals().as_slice().is_empty());
}

#[test]
fn an_error_says_what_it_is() {
    use std::error::Error as _;
    let overflow = Error::from(Overflow);
    assert!(overflow.source().is_none() && overflow.to_string().contains("64 bits"));
    let caller = Error::Caller("the reducer's own".into());
    assert_eq!(caller.source().unwrap().to_string(), "the reducer's own");
    assert_eq!(caller.to_string(), "the reducer's own");
}

#[test]
fn a_look_up_of_a_key_that_is_not_there_reads_no_page() {
    let storage = Arc::new(stored::InMemory::default());
    let read = Arc::clone(&storage.read);
    let least = Antichain::from_elem(0);
    let mut batcher = Batcher::<Words, Words, u64>::new(least.clone());
    let (mut writer, trace) = TraceWriter::new(least);
    batcher.store_in(Some(storage));
    for key in 0..10_000 {
        batcher.push(2 * key, key, &0, 1).unwrap();
    }
    let (_, batch) = batcher.seal(&Antichain::from_elem(1)).unwrap().remove(0);
    assert!(batch.is_stored());
    writer.insert(batch).unwrap();
    let before = read.load(Ordering::Relaxed);
    for key in 0..1000 {
        let found = trace.get(20 * key + 1, &0).unwrap();
        assert_eq!(found.counts, [] as [i64; 0]);
    }
    let for_others = read.load(Ordering::Relaxed) - before;
    assert!(
        for_others < 100_000,
        "{for_others} bytes for 1,000 keys, where a page has 256"
    );
    assert_eq!(trace.get(20, &0).unwrap().vals.as_slice(), [10]);
}
