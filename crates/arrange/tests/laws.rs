//! Laws of the operators. Updates of a collection are determined by their sums at each time, so that both sides of a
//! law are the same updates, once these are added up.

#[path = "support/batch.rs"]
mod batch;
#[path = "support/frontiers.rs"]
mod frontiers;
#[path = "support/stored.rs"]
mod stored;

use std::collections::BTreeMap;

use pointstamp_arrange::{
    Batcher, Count, Distinct, Join, JoinStep, Page, Reduce, Reducer, Rows, Sealed, Time, Totals,
    Trace, TraceWriter, Words, word_of_i64,
};
use pointstamp_order::Antichain;
use pointstamp_testkit::cases;
use proptest::prelude::*;

use batch::check_batch;
use frontiers::frontiers;

/// Added-up updates: none is zero.
type Collection<T> = BTreeMap<(u64, u64, T), i64>;

fn added_up<T: Time>(updates: impl IntoIterator<Item = ((u64, u64, T), i64)>) -> Collection<T> {
    let mut collection = Collection::new();
    for (row, diff) in updates {
        *collection.entry(row).or_insert(0) += diff;
    }
    collection.retain(|_, diff| *diff != 0);
    collection
}

fn concat<T: Time>(a: &Collection<T>, b: &Collection<T>) -> Collection<T> {
    added_up(a.clone().into_iter().chain(b.clone()))
}

fn negate<T: Time>(a: &Collection<T>) -> Collection<T> {
    a.iter().map(|(row, diff)| (row.clone(), -diff)).collect()
}

fn collections() -> impl Strategy<Value = Collection<[u64; 2]>> {
    let update = ((0..3u64, 0..3u64, [0..4u64, 0..4u64]), -2..3i64);
    prop::collection::vec(update, 0..14).prop_map(added_up)
}

/// Times past which frontiers move, one after another.
fn schedules() -> impl Strategy<Value = Vec<[u64; 2]>> {
    prop::collection::vec([0..4u64, 0..4u64], 0..6)
}

/// A collection on its way into an arrangement.
struct Arranged<T: Time> {
    batcher: Batcher<Words, Words, T>,
    writer: TraceWriter<Words, Words, T>,
    trace: Trace<Words, Words, T>,
}

impl<T: Time> Arranged<T> {
    fn new(collection: &Collection<T>, dims: usize) -> Self {
        let least = Antichain::from_elem(T::read(&vec![0; dims]).unwrap());
        let (mut writer, trace) = TraceWriter::new(least.clone());
        writer.store_in(stored::storage());
        let mut batcher = stored::batcher(least);
        for ((key, val, time), diff) in collection {
            batcher.push(*key, *val, time, *diff).unwrap();
        }
        Self {
            batcher,
            writer,
            trace,
        }
    }

    fn seal(&mut self, upper: &Antichain<T>) -> Vec<Sealed<Words, Words, T>> {
        let mut sealed = Vec::new();
        for (_, batch) in self.batcher.seal(upper).unwrap() {
            sealed.extend(self.writer.insert(batch).unwrap());
        }
        self.writer.seal(upper.clone());
        self.trace.allow_compaction(upper);
        while !self.writer.exert(&mut 10).unwrap() {}
        sealed
    }
}

fn join<T: Time>(
    a: &Collection<T>,
    b: &Collection<T>,
    schedule: &[T],
    dims: usize,
    combine: impl Fn(u64, u64) -> u64,
) -> Collection<T> {
    let (mut a, mut b) = (Arranged::new(a, dims), Arranged::new(b, dims));
    let mut join = Join::new(Box::new(a.trace.clone()), Box::new(b.trace.clone()));
    let mut joined = Vec::new();
    for upper in frontiers(schedule, dims) {
        for sealed in a.seal(&upper) {
            join.push_left(&sealed, ());
        }
        for sealed in b.seal(&upper) {
            join.push_right(&sealed, ());
        }
        join.advance(&upper, &upper);
        loop {
            let emit = |key, a, b, time: &T, diff| {
                joined.push(((key, combine(a, b), time.clone()), diff));
            };
            if matches!(join.work(&mut 7, emit).unwrap(), JoinStep::Idle) {
                break;
            }
        }
    }
    added_up(joined)
}

fn reduce<T: Time, W: Rows>(
    a: &Collection<T>,
    schedule: &[T],
    dims: usize,
    reducer: impl Reducer<Words, Words, W>,
    word: impl Fn(W::Item<'_>) -> u64,
) -> Collection<T> {
    let mut a = Arranged::new(a, dims);
    let least = Antichain::from_elem(T::read(&vec![0; dims]).unwrap());
    let mut reduce = Reduce::new(Box::new(a.trace.clone()), least, reducer);
    let mut output = Vec::new();
    for upper in frontiers(schedule, dims) {
        for sealed in a.seal(&upper) {
            reduce.push(sealed);
        }
        reduce.advance(&upper);
        while !reduce.is_idle() {
            for (_, sealed) in reduce.work(&mut 5).unwrap().into_iter().flatten() {
                check_batch(&sealed.batch);
                for (key, val, time, diff) in
                    stored::pages(&sealed.batch).iter().flat_map(Page::iter)
                {
                    output.push(((key, word(val), time.clone()), diff));
                }
            }
        }
    }
    added_up(output)
}

fn distinct(a: &Collection<[u64; 2]>, schedule: &[[u64; 2]]) -> Collection<[u64; 2]> {
    reduce(a, schedule, 2, Distinct, |()| 0)
}

fn count(a: &Collection<[u64; 2]>, schedule: &[[u64; 2]]) -> Collection<[u64; 2]> {
    reduce(a, schedule, 2, Count, |count| count)
}

fn pair(a: u64, b: u64) -> u64 {
    a * 10 + b
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn join_distributes_over_concat(a in collections(), b in collections(), c in collections(), s in schedules()) {
        let of_sum = join(&concat(&a, &b), &c, &s, 2, pair);
        let sum = concat(&join(&a, &c, &s, 2, pair), &join(&b, &c, &s, 2, pair));
        prop_assert_eq!(of_sum, sum);
    }

    #[test]
    fn join_of_the_negated_is_negated(a in collections(), b in collections(), s in schedules()) {
        let expected = negate(&join(&a, &b, &s, 2, pair));
        prop_assert_eq!(join(&negate(&a), &b, &s, 2, pair), expected.clone());
        prop_assert_eq!(join(&a, &negate(&b), &s, 2, pair), expected);
    }

    #[test]
    fn join_is_commutative(a in collections(), b in collections(), s in schedules()) {
        prop_assert_eq!(join(&a, &b, &s, 2, pair), join(&b, &a, &s, 2, |b, a| pair(a, b)));
    }

    #[test]
    fn join_is_associative(a in collections(), b in collections(), c in collections(), s in schedules()) {
        let left = join(&join(&a, &b, &s, 2, pair), &c, &s, 2, pair);
        let right = join(&a, &join(&b, &c, &s, 2, pair), &s, 2, |a, bc| pair(pair(a, bc / 10), bc % 10));
        prop_assert_eq!(left, right);
    }

    #[test]
    fn when_batches_are_sealed_does_not_matter(a in collections(), b in collections(), s in schedules(), other in schedules()) {
        prop_assert_eq!(join(&a, &b, &s, 2, pair), join(&a, &b, &other, 2, pair));
        prop_assert_eq!(count(&a, &s), count(&a, &other));
    }

    #[test]
    fn distinct_is_idempotent(a in collections(), s in schedules()) {
        let once = distinct(&a, &s);
        prop_assert_eq!(distinct(&once, &s), once);
    }

    #[test]
    fn distinct_forgets_how_often(a in collections(), s in schedules()) {
        let twice = concat(&a, &a);
        prop_assert_eq!(distinct(&twice, &s), distinct(&a, &s));
    }

    #[test]
    fn reductions_are_of_each_key_alone(a in collections(), s in schedules()) {
        let part = |odd| a.clone().into_iter().filter(|((key, ..), _)| key % 2 == odd).collect();
        let parts: [Collection<[u64; 2]>; 2] = [part(0), part(1)];
        prop_assert_eq!(count(&a, &s), concat(&count(&parts[0], &s), &count(&parts[1], &s)));
    }

    #[test]
    fn counts_without_history_are_those_of_a_reduction(
        rows in prop::collection::vec(((0..3u64, 0..3u64, 0..6u64), -2..3i64), 0..20),
        s in prop::collection::vec(0..6u64, 0..6),
    ) {
        let a = added_up(rows);
        let mut arranged = Arranged::new(&a, 1);
        let mut totals = Totals::new(Box::new(arranged.trace.clone()));
        let mut counts = Vec::new();
        for upper in frontiers(&s, 1) {
            for sealed in arranged.seal(&upper) {
                totals.push(&sealed, ());
            }
            totals.advance(&upper);
            while !totals.is_idle() {
                let emit = |key, time: &u64, before, after| {
                    assert_ne!(before, after);
                    for (count, diff) in [(before, -1), (after, 1)] {
                        if count != 0 {
                            counts.push(((key, word_of_i64(count), *time), diff));
                        }
                    }
                };
                totals.work(&mut 2, emit).unwrap();
            }
        }
        prop_assert_eq!(added_up(counts), reduce(&a, &s, 1, Count, |count| count));
    }
}
