//! Antichains, change batches and mutable antichains against naive models, under random updates
//! whose sums may be negative for a while.

use std::collections::BTreeSet;
use std::fmt::Debug;

use pointstamp_order::{Antichain, ChangeBatch, MutableAntichain, PartialOrder};
use pointstamp_testkit::{CountModel, Domain, Nested, Numbers, Odd, Points, cases};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

type Updates<T> = Vec<Vec<(T, i64)>>;

/// Batches of updates. Later batches take back some of the earlier, so that counts pass through
/// zero often.
fn updates<D: Domain>(batches: usize) -> impl Strategy<Value = Updates<D::Time>> {
    let diff = prop_oneof![4 => Just(1i64), 3 => Just(-1), 1 => -3..4i64];
    let update = (any::<Index>(), diff, any::<Option<Index>>());
    vec(vec(update, 0..6), 1..batches).prop_map(|batches| {
        let universe = D::universe();
        let mut made: Vec<(D::Time, i64)> = Vec::new();
        let mut chosen = Vec::new();
        for batch in batches {
            let start = made.len();
            for (time, diff, undo) in batch {
                let update = match undo {
                    Some(index) if !made.is_empty() => {
                        let (time, diff) = index.get(&made);
                        (time.clone(), -diff)
                    }
                    _ => (time.get(&universe).clone(), diff),
                };
                made.push(update);
            }
            chosen.push(made[start..].to_vec());
        }
        chosen
    })
}

fn sorted<T: Ord + Clone>(items: &[T]) -> Vec<T> {
    let mut items = items.to_vec();
    items.sort();
    items
}

fn mutable_antichain_agrees<T>(updates: &Updates<T>, times: &[T]) -> Result<(), TestCaseError>
where
    T: PartialOrder + Ord + Clone + Debug,
{
    let mut subject = MutableAntichain::new();
    let mut single = MutableAntichain::new();
    let mut model = CountModel::new();
    let mut reported: BTreeSet<T> = BTreeSet::new();
    for batch in updates {
        for (time, diff) in batch {
            model.update(time.clone(), *diff);
            // One by one, the changes also keep up.
            for (time, diff) in single.update(time.clone(), *diff) {
                prop_assert_eq!(diff.abs(), 1);
                let changed = if diff > 0 {
                    reported.insert(time)
                } else {
                    reported.remove(&time)
                };
                prop_assert!(changed);
            }
        }
        let before: BTreeSet<T> = subject.frontier().iter().cloned().collect();
        let changes: Vec<(T, i64)> = subject.update_iter(batch.iter().cloned()).collect();
        let frontier = model.frontier();
        prop_assert_eq!(sorted(subject.frontier()), frontier.clone());
        prop_assert_eq!(sorted(single.frontier()), frontier.clone());
        prop_assert_eq!(
            reported.iter().cloned().collect::<Vec<_>>(),
            frontier.clone()
        );

        // Net changes, each once.
        let after: BTreeSet<T> = frontier.into_iter().collect();
        let left = before.difference(&after).map(|time| (time.clone(), -1));
        let joined = after.difference(&before).map(|time| (time.clone(), 1));
        let expected: Vec<(T, i64)> = left.chain(joined).collect();
        prop_assert_eq!(sorted(&changes), sorted(&expected));

        prop_assert_eq!(subject.is_empty(), after.is_empty());
        for time in times {
            prop_assert_eq!(subject.count_for(time), model.count_for(time));
            prop_assert_eq!(
                subject.less_equal(time),
                after.iter().any(|f| f.less_equal(time))
            );
            prop_assert_eq!(
                subject.less_than(time),
                after.iter().any(|f| f.less_than(time))
            );
        }
        prop_assert_eq!(subject.counts(), model.counts());
        prop_assert_eq!(single.counts(), model.counts());
    }
    Ok(())
}

fn change_batch_agrees<T>(updates: &Updates<T>) -> Result<(), TestCaseError>
where
    T: PartialOrder + Ord + Clone + Debug,
{
    let mut subject = ChangeBatch::new();
    let mut model = CountModel::new();
    for (index, batch) in updates.iter().enumerate() {
        if index % 2 == 0 {
            subject.extend(batch.iter().cloned());
        } else {
            for (time, diff) in batch {
                subject.update(time.clone(), *diff);
            }
        }
        for (time, diff) in batch {
            model.update(time.clone(), *diff);
        }
        match index % 7 {
            1 => prop_assert_eq!(subject.len(), model.counts().len()),
            2 => prop_assert_eq!(subject.is_empty(), model.counts().is_empty()),
            3 => prop_assert_eq!(subject.iter().cloned().collect::<Vec<_>>(), model.counts()),
            4 => {
                let mut other: ChangeBatch<T> = batch.iter().cloned().collect();
                subject.drain_into(&mut other);
                prop_assert!(subject.is_empty());
                std::mem::swap(&mut subject, &mut other);
                for (time, diff) in batch {
                    model.update(time.clone(), *diff);
                }
            }
            5 => {
                prop_assert_eq!(subject.drain().collect::<Vec<_>>(), model.counts());
                model = CountModel::new();
            }
            _ => {}
        }
    }
    prop_assert_eq!(subject.into_inner(), model.counts());
    Ok(())
}

fn antichain_agrees<T>(times: &[T]) -> Result<(), TestCaseError>
where
    T: PartialOrder + Ord + Clone + Debug,
{
    let mut subject = Antichain::new();
    let mut seen: Vec<T> = Vec::new();
    for time in times {
        let expected = !seen.iter().any(|other| other.less_equal(time));
        prop_assert_eq!(subject.insert(time.clone()), expected);
        seen.push(time.clone());
        let minimal = seen
            .iter()
            .filter(|t| !seen.iter().any(|other| other.less_than(t)));
        let minimal: BTreeSet<T> = minimal.cloned().collect();
        prop_assert_eq!(
            sorted(subject.elements()),
            minimal.into_iter().collect::<Vec<_>>()
        );
    }
    let reversed: Antichain<T> = times.iter().rev().cloned().collect();
    prop_assert_eq!(&subject, &reversed);
    prop_assert_eq!(
        sorted(&reversed.into_iter().collect::<Vec<_>>()),
        sorted(subject.elements())
    );
    Ok(())
}

macro_rules! suites {
    ($($name:ident: $domain:ty;)*) => {$(
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(cases(2_000))]

                #[test]
                fn mutable_antichain(updates in updates::<$domain>(20)) {
                    mutable_antichain_agrees(&updates, &<$domain>::universe())?;
                }

                #[test]
                fn change_batch(updates in updates::<$domain>(40)) {
                    change_batch_agrees(&updates)?;
                }

                #[test]
                fn antichain(indices in vec(any::<Index>(), 0..12)) {
                    let universe = <$domain>::universe();
                    let times: Vec<_> =
                        indices.iter().map(|index| index.get(&universe).clone()).collect();
                    antichain_agrees(&times)?;
                }
            }
        }
    )*};
}

suites! {
    numbers: Numbers;
    points: Points<2>;
    nested: Nested;
    odd: Odd;
}

/// Many elements: changes that are put off, merged and split in bulk.
mod large {
    use super::*;

    fn large_agrees<T>(updates: &[(T, i64)], look: usize) -> Result<(), TestCaseError>
    where
        T: PartialOrder + Ord + Clone + Debug,
    {
        let mut subject = MutableAntichain::new();
        let mut model = CountModel::new();
        for (index, (time, diff)) in updates.iter().enumerate() {
            subject.update(time.clone(), *diff);
            model.update(time.clone(), *diff);
            if index % look == 0 {
                prop_assert_eq!(sorted(subject.frontier()), model.frontier());
                prop_assert_eq!(subject.count_for(time), model.count_for(time));
            }
        }
        prop_assert_eq!(subject.counts(), model.counts());
        // Take everything back, smallest first.
        for (time, count) in model.counts() {
            subject.update(time.clone(), -count);
            model.update(time, -count);
        }
        prop_assert!(subject.is_empty() && subject.counts().is_empty());
        Ok(())
    }

    proptest! {
        #![proptest_config(cases(40))]

        #[test]
        fn numbers(updates in vec((0..500u64, -1..3i64), 0..1_500), look in 20..200usize) {
            large_agrees(&updates, look)?;
        }

        #[test]
        fn pairs(updates in vec(((0..40u64, 0..40u64), -1..3i64), 0..1_500), look in 20..200usize) {
            large_agrees(&updates, look)?;
        }

        /// The smallest elements leave, and others join anywhere behind them, a few at a time: the cached
        /// properties of the blocks must follow.
        #[test]
        fn joining(
            start in vec((0..100u64, 0..100u64), 150..300),
            more in vec((0..100u64, 0..100u64), 0..300),
        ) {
            let mut subject: MutableAntichain<_> = start.iter().map(|time| (*time, 1)).collect();
            let mut model = CountModel::new();
            for time in &start {
                model.update(*time, 1);
            }
            for joins in more.chunks(2) {
                let Some(first) = model.frontier().first().copied() else {
                    break;
                };
                let count = model.count_for(&first);
                let joins = joins.iter().map(|(a, b)| (first.0 + a, first.1 + b));
                for (time, diff) in joins.map(|time| (time, 1)).chain([(first, -count)]) {
                    subject.update(time, diff);
                    model.update(time, diff);
                }
                prop_assert_eq!(sorted(subject.frontier()), model.frontier());
            }
            prop_assert_eq!(subject.counts(), model.counts());
        }

        #[test]
        fn change_batch(updates in vec(vec((0..300u64, -1..3i64), 1..200), 1..30)) {
            let mut subject = ChangeBatch::new();
            let mut model = CountModel::new();
            for batch in &updates {
                for (item, diff) in batch {
                    subject.update(*item, *diff);
                    model.update(*item, *diff);
                }
                if batch.len() % 2 == 0 {
                    prop_assert_eq!(subject.iter().copied().collect::<Vec<_>>(), model.counts());
                }
            }
            prop_assert_eq!(subject.into_inner(), model.counts());
        }

        #[test]
        fn window(size in 1..200u64, offset in 0..50u64) {
            let mut updates: Vec<_> = (0..size).map(|i| ((i, (i * 7) % 16), 1)).collect();
            for i in 0..size * 2 {
                let next = i + size;
                updates.push(((next, (next * 7 + offset) % 16), 1));
                let shift = if i >= size { offset } else { 0 };
                updates.push(((i, (i * 7 + shift) % 16), -1));
            }
            large_agrees(&updates, 37)?;
        }
    }
}
