//! Merges that are worked on a little at a time: their result is the sum of the two batches, at times that
//! are used.

#[path = "support/batch.rs"]
mod batch;
#[path = "support/stored.rs"]
mod stored;

use std::collections::BTreeMap;

use pointstamp_arrange::{Page, Trace, TraceWriter, Words};
use pointstamp_order::Antichain;
use pointstamp_testkit::cases;
use proptest::prelude::*;

use batch::check_batch;

/// Key, value, time, difference.
type Update = (u64, u64, u64, i64);

/// The ends of the first batch's times and of the second's.
const ENDS: [u64; 2] = [4, 9];

type Pair = (TraceWriter<Words, Words, u64>, Trace<Words, Words, u64>);

/// Batches that end at these times, kept apart from each other until readers are at `since`.
fn apart(updates: &[Update], since: u64) -> Pair {
    let least = Antichain::from_elem(0);
    let (mut writer, mut trace) = TraceWriter::new(least.clone());
    writer.store_in(stored::storage());
    let mut follower = trace.clone();
    follower.follow();
    let mut batcher = stored::batcher(least);
    for (key, val, time, diff) in updates {
        batcher.push(*key, *val, time, *diff).unwrap();
    }
    for end in ENDS {
        for (_, batch) in batcher.seal(&Antichain::from_elem(end)).unwrap() {
            writer.insert(batch).unwrap();
        }
    }
    trace.allow_compaction(&Antichain::from_elem(since));
    (writer, trace)
}

/// Merges with so much fuel at a time; returns the number of steps.
fn merge(writer: &mut TraceWriter<Words, Words, u64>, fuel: usize) -> usize {
    let mut steps = 1;
    while !writer.exert(&mut fuel.clone()).unwrap() {
        steps += 1;
    }
    steps
}

fn rows(most: usize) -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    prop::collection::vec((0..20u64, 0..4u64, 0..ENDS[1]), 0..most)
}

proptest! {
    #![proptest_config(cases(300))]

    /// Some of the records are removed again, so that nothing is left at some times.
    #[test]
    fn merged_batches_are_their_sums_at_times_that_are_used(
        came in rows(80),
        goes in 0..ENDS[1],
        when in ENDS[0]..ENDS[1],
        since in 0..ENDS[1],
        fuel in 1..30usize,
    ) {
        let came = came.into_iter().map(|(key, val, time)| (key, val, time, 1));
        let mut updates: Vec<Update> = came.collect();
        let mut gone = updates.clone();
        gone.retain(|(_, _, time, _)| *time <= goes.min(when));
        updates.extend(gone.into_iter().map(|(key, val, _, _)| (key, val, when, -1)));
        let mut sums = BTreeMap::new();
        for (key, val, time, diff) in &updates {
            *sums.entry((*key, *val, *time.max(&since))).or_insert(0) += diff;
        }
        sums.retain(|_, diff| *diff != 0);
        let (mut writer, trace) = apart(&updates, since);
        merge(&mut writer, fuel);
        let batches = trace.batches();
        prop_assert!(batches.len() <= 1);
        let mut found = BTreeMap::new();
        for batch in &batches {
            check_batch(batch);
            let pages = stored::pages(batch);
            found.extend(pages.iter().flat_map(Page::iter).map(|(key, val, time, diff)| ((key, val, *time), diff)));
        }
        prop_assert_eq!(found, sums);
    }
}

#[test]
fn times_that_nothing_is_at_any_more_are_forgotten_a_part_at_a_time() {
    let (many, fuel) = (2_000, 10);
    let steps = |goes: bool| {
        let mut updates = vec![(0, 0, 0, 1)];
        if goes {
            updates.push((0, 0, 5, -1));
        }
        for key in 0..many {
            updates.push((1 + key, 0, 6 + key % 2, 1));
        }
        let (mut writer, trace) = apart(&updates, 5);
        writer.store_in(None);
        let steps = merge(&mut writer, fuel);
        let [batch] = &trace.batches()[..] else {
            panic!("they are merged");
        };
        check_batch(batch);
        assert_eq!(batch.times().len(), if goes { 2 } else { 3 });
        steps
    };
    // The indices of all times are rewritten, as many for a unit of fuel as an instalment permits.
    let least = usize::try_from(many).unwrap() / fuel / if cfg!(debug_assertions) { 1 } else { 16 };
    let (with, without) = (steps(true), steps(false));
    assert!(
        with + 2 >= without + least,
        "{with} steps, and {without} where every time is used"
    );
}
