//! The output of a join beyond correctness: no updates that cancel, nothing for a side that is empty; and
//! sources from inside a scope.

#[path = "support/arranged.rs"]
mod arranged;
#[path = "support/joined.rs"]
mod joined;
#[path = "support/stored.rs"]
mod stored;

use pointstamp_arrange::{Entered, Join, Page, Source};
use pointstamp_order::Antichain;

use arranged::{Arranged, Pairs};
use joined::finish;

/// A batch of updates `(key, value, time, difference)`, all before `upper`.
fn batch(arranged: &mut Arranged<u64>, upper: u64, updates: &[(u64, u64, u64, i64)]) -> Pairs<u64> {
    for (key, val, time, diff) in updates {
        arranged.push(*key, *val, time, *diff);
    }
    arranged.seal(&Antichain::from_elem(upper)).remove(0).1
}

#[test]
fn what_has_cancelled_is_not_joined() {
    let (mut left, mut right) = (Arranged::new(0u64), Arranged::new(0u64));
    let mut join = Join::new(Box::new(left.trace.clone()), Box::new(right.trace.clone()));
    // One value comes and goes in two batches, one within a batch; one stays, and one stays once of twice.
    for batch in [
        batch(
            &mut right,
            2,
            &[
                (1, 20, 0, 1),
                (1, 21, 0, 1),
                (1, 21, 1, -1),
                (1, 22, 1, 1),
                (2, 1, 0, 1),
            ],
        ),
        batch(
            &mut right,
            3,
            &[(1, 20, 2, -1), (1, 23, 2, 2), (2, 1, 2, -1)],
        ),
        batch(&mut right, 4, &[(1, 23, 3, -1)]),
    ] {
        join.push_right(&batch, 0);
        assert!(join.is_idle(), "there is nothing to join with");
    }
    join.push_left(
        &batch(&mut left, 5, &[(1, 10, 4, 1), (2, 10, 4, 1), (3, 10, 4, 1)]),
        4,
    );
    assert!(!join.is_idle());
    assert_eq!(
        finish(&mut join, 1000),
        [(1, 10, 22, 4, 1), (1, 10, 23, 4, 1)]
    );
    // The other way round, with histories that are long enough to be replayed by time.
    let long: Vec<_> = (0..20)
        .map(|time| (5, 1, 6 + time, if time % 2 == 0 { 1 } else { -1 }))
        .collect();
    join.push_left(&batch(&mut left, 30, &long), 6);
    assert_eq!(finish(&mut join, 1000), []);
    join.push_right(&batch(&mut right, 50, &[(5, 2, 40, 1), (5, 3, 40, 1)]), 40);
    assert_eq!(finish(&mut join, 1000), []);
}

#[test]
fn an_outer_arrangement_is_kept_as_an_inner_reader_needs_it() {
    let mut outer = Arranged::new(0u64);
    let enter = |time: &u64| [*time, 0];
    let mut inner = Entered::new(
        Box::new(outer.trace.clone()),
        enter,
        |[time, _]: &[u64; 2]| *time,
    );
    inner.follow();
    let came = batch(&mut outer, 1, &[(1, 10, 0, 1), (2, 20, 0, 1)]);
    let went = batch(&mut outer, 3, &[(1, 10, 2, -1)]);
    outer.trace.allow_compaction(&Antichain::from_elem(9));
    // It has seen none of them yet.
    outer.settle();
    assert_eq!(outer.trace.batches().len(), 2);
    let first = inner.batches_through(came.number);
    assert_eq!(first.len(), 1);
    let pages = stored::pages(&first[0]);
    let updates = pages
        .iter()
        .flat_map(Page::iter)
        .map(|(key, val, time, diff)| (key, val, *time, diff));
    assert!(updates.eq([(1, 10, [0, 0], 1), (2, 20, [0, 0], 1)]));
    assert_eq!(first[0].upper(), &Antichain::from_elem([1, 0]));
    // It has seen both, and distinguishes their times.
    inner.acknowledge(went.number);
    outer.settle();
    assert_eq!((outer.trace.batches().len(), outer.trace.len()), (1, 3));
    assert_eq!(inner.since(), Antichain::from_elem([0, 0]));
    inner.allow_compaction(&Antichain::from_elem([2, 7]));
    assert_eq!(inner.since(), Antichain::from_elem([2, 0]));
    outer.settle();
    let left = inner.batches_through(went.number);
    let left: Vec<_> = left.iter().flat_map(stored::pages).collect();
    let left: Vec<_> = left.iter().flat_map(Page::iter).collect();
    assert_eq!(left, [(2, 20, &[2, 0], 1)]);
}
