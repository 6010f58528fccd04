//! Known errors of incremental systems, each a small program.

#[path = "support/arranged.rs"]
mod arranged;
#[path = "support/batch.rs"]
mod batch;
#[path = "support/joined.rs"]
mod joined;
#[path = "support/stored.rs"]
mod stored;

use pointstamp_arrange::{
    Batcher, Count, Error, Join, Page, Reduce, Time, Totals, TraceWriter, Units, Words, i64_of_word,
};
use pointstamp_order::Antichain;

use arranged::Arranged;
use joined::finish;

#[test]
fn a_join_meets_batches_that_the_frontier_and_the_trace_have_overtaken() {
    let (mut left, mut right) = (Arranged::new(0u64), Arranged::new(0u64));
    let mut join = Join::new(Box::new(left.trace.clone()), Box::new(right.trace.clone()));
    right.push(1, 20, &0, 1);
    let there = right.seal(&Antichain::from_elem(1));
    join.push_right(&there[0].1, 0);
    // A record comes and goes; the batches that say so are on their way while the trace, which has
    // no other reader than the join, forgets that it ever was.
    left.push(1, 10, &0, 1);
    let came = left.seal(&Antichain::from_elem(1));
    left.push(1, 10, &1, -1);
    let went = left.seal(&Antichain::from_elem(5));
    left.trace.allow_compaction(&Antichain::from_elem(5));
    join.advance(&Antichain::from_elem(0), &Antichain::from_elem(5));
    left.settle();
    join.push_left(&came[0].1, 0);
    left.settle();
    join.push_left(&went[0].1, 1);
    assert_eq!(
        finish(&mut join, 100),
        [(1, 10, 20, 0, 1), (1, 10, 20, 1, -1)]
    );
    // Once both have arrived, there is nothing to keep.
    left.settle();
    assert!(left.trace.is_empty());
}

#[test]
fn batches_that_cancel_to_nothing_are_no_batches() {
    let mut arranged = Arranged::new(0u64);
    arranged.push(1, 1, &0, 1);
    arranged.push(1, 1, &0, -1);
    assert_eq!(arranged.batcher.frontier(), &Antichain::from_elem(0));
    assert!(arranged.seal(&Antichain::from_elem(3)).is_empty());
    assert!(
        arranged.batcher.frontier().is_empty(),
        "no capability is kept for what is not there"
    );
    assert_eq!(arranged.trace.upper(), Antichain::from_elem(3));
    // In the spine, too: of two batches that cancel nothing is left, and others follow.
    arranged.trace.allow_compaction(&Antichain::from_elem(5));
    for (time, diff) in [(3, 1), (4, -1)] {
        arranged.push(2, 2, &time, diff);
        assert_eq!(arranged.seal(&Antichain::from_elem(time + 1)).len(), 1);
    }
    arranged.settle();
    assert!(arranged.trace.is_empty());
    arranged.push(3, 3, &5, 1);
    assert_eq!(arranged.seal(&Antichain::from_elem(6)).len(), 1);
    assert_eq!(
        arranged
            .trace
            .get(3, &5)
            .unwrap()
            .iter()
            .collect::<Vec<_>>(),
        [(3, 1)]
    );
}

#[test]
fn a_reduction_holds_no_frontier_for_an_empty_set() {
    let mut arranged = Arranged::new([0u64, 0]);
    let least = Antichain::from_elem([0, 0]);
    let mut reduce =
        Reduce::<Words, Words, Words, _, _>::new(Box::new(arranged.trace.clone()), least, Count);
    // Two times of which neither is before the other: at their join a count is owed.
    arranged.push(1, 1, &[0, 1], 1);
    arranged.push(1, 2, &[1, 0], 1);
    let upper: Antichain<[u64; 2]> = [[0, 2], [1, 1], [2, 0]].into_iter().collect();
    let sealed = arranged.seal(&upper);
    assert_eq!(sealed.len(), 2, "one batch for each capability");
    for (_, sealed) in sealed {
        reduce.push(sealed);
    }
    reduce.advance(&upper);
    let mut output = reduce.work(&mut 100).unwrap().unwrap();
    assert_eq!(reduce.frontier(), Antichain::from_elem([1, 1]));
    // Without anything new, the time becomes complete.
    reduce.advance(&Antichain::from_elem([2, 2]));
    output.extend(reduce.work(&mut 100).unwrap().unwrap());
    assert!(
        reduce.frontier().is_empty(),
        "nothing is owed, and so nothing is held"
    );
    let mut counts = Vec::new();
    for (_, sealed) in &output {
        counts.extend(
            stored::pages(&sealed.batch)
                .iter()
                .flat_map(Page::iter)
                .map(|(_, count, time, diff)| (*time, i64_of_word(count), diff)),
        );
    }
    counts.sort_unstable();
    // At [1, 1] a key that was counted twice, at [0, 1] and at [1, 0], is replaced by two.
    assert_eq!(
        counts,
        [
            ([0, 1], 1, 1),
            ([1, 0], 1, 1),
            ([1, 1], 1, -2),
            ([1, 1], 2, 1)
        ]
    );
    // An advance with nothing to do neither holds nor owes.
    reduce.advance(&Antichain::new());
    assert!(reduce.work(&mut 100).unwrap().unwrap().is_empty() && reduce.is_idle());
}

#[test]
fn what_is_owed_where_only_compacted_history_meets_is_owed_all_the_same() {
    // A key's history at [1, 0, 0], seen from the meet of two later updates, is beyond the frontier,
    // and at or after neither: its joins with them are owed when they are complete.
    let mut arranged = Arranged::new([0u64; 3]);
    let mut reduce = Reduce::<Words, Words, Words, _, _>::new(
        Box::new(arranged.trace.clone()),
        Antichain::from_elem([0; 3]),
        Count,
    );
    let mut collected: Vec<(u64, [u64; 3], i64)> = Vec::new();
    let mut run = |arranged: &mut Arranged<[u64; 3]>, upper: Antichain<[u64; 3]>| {
        for (_, sealed) in arranged.seal(&upper) {
            reduce.push(sealed);
        }
        reduce.advance(&upper);
        while !reduce.is_idle() {
            for (_, sealed) in reduce.work(&mut 100).unwrap().unwrap_or_default() {
                collected.extend(
                    stored::pages(&sealed.batch)
                        .iter()
                        .flat_map(Page::iter)
                        .map(|(_, count, time, diff)| (count, *time, diff)),
                );
            }
        }
        reduce.frontier()
    };
    arranged.push(1, 1, &[1, 0, 0], 1);
    arranged.push(1, 2, &[0, 1, 5], 1);
    arranged.push(1, 3, &[0, 5, 1], 1);
    let first: Antichain<[u64; 3]> = [[1, 0, 1], [1, 1, 0], [0, 1, 1]].into_iter().collect();
    run(&mut arranged, first);
    let owed = run(&mut arranged, [[1, 1, 1], [0, 6, 6]].into_iter().collect());
    assert!(owed.less_equal(&[1, 1, 5]) && owed.less_equal(&[1, 5, 1]));
    run(&mut arranged, Antichain::new());
    for (at, expected) in [
        ([1, 1, 5], 2),
        ([1, 5, 1], 2),
        ([1, 5, 5], 3),
        ([0, 5, 5], 2),
    ] {
        let counts = collected
            .iter()
            .filter(|(_, time, _)| Time::join(time, &at) == at);
        let sum: i64 = counts
            .map(|(count, _, diff)| i64_of_word(*count) * diff)
            .sum();
        assert_eq!(sum, expected, "at {at:?}");
    }
}

#[test]
fn a_key_with_many_values_does_not_stall() {
    const MANY: u64 = 20_000;
    let (mut left, mut right) = (Arranged::new(0u64), Arranged::new(0u64));
    let mut join = Join::new(Box::new(left.trace.clone()), Box::new(right.trace.clone()));
    for val in 0..MANY {
        left.push(7, val, &0, 1);
    }
    join.push_left(&left.seal(&Antichain::from_elem(1))[0].1, 0);
    for val in 0..3 {
        right.push(7, val, &0, 1);
    }
    join.push_right(&right.seal(&Antichain::from_elem(1))[0].1, 0);
    let mut joined = Vec::new();
    while !join.is_idle() {
        let before = joined.len();
        join.work(&mut 100, |_, a, b, _, diff| joined.push((a, b, diff)))
            .unwrap();
        assert!(joined.len() - before <= 100);
    }
    joined.sort_unstable();
    let all = (0..MANY).flat_map(|a| (0..3).map(move |b| (a, b, 1)));
    assert!(joined.into_iter().eq(all));
    // Merging stops within the key, and it can be read meanwhile.
    drop(join);
    let again = MANY / 2..MANY / 2 + 2_000;
    for val in again.clone() {
        left.push(7, val, &1, 1);
    }
    left.seal(&Antichain::from_elem(2));
    let mut steps = 0;
    loop {
        let mut fuel = 1000;
        let done = left.writer.exert(&mut fuel).unwrap();
        steps += 1;
        if steps % 8 == 1 || done {
            let read = left.trace.get(7, &1).unwrap();
            let expected = (0..MANY).map(|val| (val, 1 + i64::from(again.contains(&val))));
            assert!(read.iter().eq(expected));
        }
        if done {
            break;
        }
    }
    assert!(steps > 10, "{steps} steps");
}

#[test]
fn differences_that_do_not_fit_are_errors() {
    let mut arranged = Arranged::new(0u64);
    arranged.push(1, 1, &0, i64::MAX);
    arranged.push(1, 1, &0, 1);
    assert!(matches!(
        arranged.batcher.seal(&Antichain::from_elem(1)),
        Err(Error::Overflow)
    ));

    let (mut left, mut right) = (Arranged::new(0u64), Arranged::new(0u64));
    let mut join = Join::new(Box::new(left.trace.clone()), Box::new(right.trace.clone()));
    left.push(1, 1, &0, 1 << 40);
    right.push(1, 1, &0, 1 << 40);
    join.push_left(&left.seal(&Antichain::from_elem(1))[0].1, 0);
    join.push_right(&right.seal(&Antichain::from_elem(1))[0].1, 0);
    assert!(matches!(
        join.work(&mut 10, |_, _, _, _, _| {}),
        Err(Error::Overflow)
    ));
}

#[test]
fn several_capabilities_split_what_becomes_complete() {
    let mut arranged = Arranged::new([0u64, 0]);
    for (val, time) in [[0, 3], [1, 2], [3, 0], [3, 3], [0, 4]]
        .into_iter()
        .enumerate()
    {
        arranged.push(1, val as u64, &time, 1);
    }
    let upper = Antichain::from_elem([0, 4]);
    let sealed = arranged.seal(&upper);
    let times: Vec<_> = sealed.iter().map(|(time, _)| *time).collect();
    assert_eq!(times, [[0, 3], [1, 2], [3, 0]]);
    let mut count = 0;
    for (time, sealed) in &sealed {
        batch::check_batch(&sealed.batch);
        assert!(
            sealed
                .batch
                .times()
                .iter()
                .all(|at| Time::join(time, at) == *at)
        );
        count += sealed.batch.len();
    }
    assert_eq!(count, 4);
    assert_eq!(arranged.batcher.frontier(), &Antichain::from_elem([0, 4]));
}

#[test]
fn counts_follow_batches_with_many_times_in_one() {
    let mut arranged = Arranged::new(0u64);
    let mut totals = Totals::new(Box::new(arranged.trace.clone()));
    let mut changes = Vec::new();
    for (start, rows) in [
        (0, vec![(0, 1), (2, 1), (2, -2), (1, 2)]),
        (3, vec![(3, -2), (4, 0), (5, 1)]),
    ] {
        for (time, diff) in rows {
            arranged.push(9, time, &time, diff);
        }
        let upper = Antichain::from_elem(start + 3);
        for (time, sealed) in arranged.seal(&upper) {
            totals.push(&sealed, time);
        }
        totals.advance(&upper);
        while !totals.is_idle() {
            let emit = |key, time: &u64, before, after| changes.push((key, *time, before, after));
            totals.work(&mut 1, emit).unwrap();
        }
        arranged.trace.allow_compaction(&upper);
        arranged.settle();
    }
    assert_eq!(
        changes,
        [
            (9, 0, 0, 1),
            (9, 1, 1, 3),
            (9, 2, 3, 2),
            (9, 3, 2, 0),
            (9, 5, 0, 1)
        ]
    );
}

/// The memory held is bounded by the contents, however many rounds of change there are.
#[test]
fn memory_follows_the_collection() {
    const SIZE: u64 = 500;
    let mut arranged = Arranged::new(0u64);
    let mut reduce = Reduce::<Words, Words, Words, _, _>::new(
        Box::new(arranged.trace.clone()),
        Antichain::from_elem(0),
        Count,
    );
    let counts = reduce.trace();
    drop(counts);
    let mut most = (0, 0);
    for round in 0..20_000u64 {
        arranged.push(round % 50, round, &round, 1);
        if round >= SIZE {
            let gone = round - SIZE;
            arranged.push(gone % 50, gone, &round, -1);
        }
        let upper = Antichain::from_elem(round + 1);
        for (_, sealed) in arranged.seal(&upper) {
            reduce.push(sealed);
        }
        reduce.advance(&upper);
        arranged.trace.allow_compaction(&upper);
        while !reduce.is_idle() {
            reduce.work(&mut 1000).unwrap();
        }
        most = (
            most.0.max(arranged.trace.len()),
            most.1.max(arranged.trace.bytes()),
        );
        assert!(arranged.batcher.is_empty());
    }
    assert!(most.0 < 4 * 500, "{most:?}");
    assert!(most.1 < 4 * 500 * 40, "{most:?}");
    arranged.settle();
    assert_eq!(arranged.trace.len(), 500);
    let counts = reduce.trace();
    assert!(counts.len() < 1000, "{}", counts.len());
}

/// A collection without values.
#[test]
fn unit_values_are_counted() {
    let (mut writer, trace) = TraceWriter::<Words, Units, u64>::new(Antichain::from_elem(0));
    let mut batcher = Batcher::<Words, Units, u64>::new(Antichain::from_elem(0));
    for key in [3, 1, 3] {
        batcher.push(key, (), &0, 1).unwrap();
    }
    for (_, batch) in batcher.seal(&Antichain::from_elem(1)).unwrap() {
        writer.insert(batch).unwrap();
    }
    assert_eq!(
        trace.get(3, &0).unwrap().iter().collect::<Vec<_>>(),
        [((), 2)]
    );
    assert_eq!(trace.get(2, &0).unwrap().iter().count(), 0);
}

/// Long runs with many times are kept in parts; every update comes once, in its turn.
#[test]
fn updates_at_many_times_to_come_are_sealed_in_their_turn() {
    let mut arranged = Arranged::new([0u64, 0]);
    let mut expected = std::collections::BTreeMap::new();
    for update in 0..6_000u64 {
        let (key, val, time) = (update % 7, update % 11, [update * 31 % 20, update * 17 % 3]);
        let diff = if update % 5 == 0 { -1 } else { 1 };
        arranged.push(key, val, &time, diff);
        *expected.entry((time, key, val)).or_insert(0) += diff;
    }
    expected.retain(|_, diff| *diff != 0);
    let mut sealed = std::collections::BTreeMap::new();
    for outer in 0..21 {
        let held = arranged.batcher.frontier().clone();
        for (_, sealed_now) in arranged.seal(&Antichain::from_elem([outer, 0])) {
            batch::check_batch(&sealed_now.batch);
            for (key, val, time, diff) in
                stored::pages(&sealed_now.batch).iter().flat_map(Page::iter)
            {
                assert!(held.less_equal(time) && time[0] < outer);
                assert!(sealed.insert((*time, key, val), diff).is_none(), "once");
            }
        }
        // More for later, in between.
        if outer == 5 {
            arranged.push(1, 1, &[19, 2], 50);
            *expected.entry(([19, 2], 1, 1)).or_insert(0) += 50;
        }
    }
    assert_eq!(sealed, expected);
    assert!(arranged.batcher.is_empty());
}

/// An operator whose input has ended, and which holds no updates, may not run again.
#[test]
fn a_seal_of_nothing_takes_no_fuel() {
    let mut batcher = Batcher::<Words, Units, u64>::new(Antichain::from_elem(0));
    batcher.begin_seal(&Antichain::new()).unwrap();
    let sealed = batcher.work(&mut 0).unwrap();
    assert!(sealed.is_some_and(|sealed| sealed.is_empty()));
    assert!(batcher.lower().is_empty());
}
