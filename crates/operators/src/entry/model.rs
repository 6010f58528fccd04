//! Multisets in maps, and operators that compute everything anew.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::value::Value;
use crate::collections::{Aggregate, Ranking, Reduction};

/// A multiset of values: how often each is there, which may be less than no times.
pub(crate) type Bag = BTreeMap<Value, i64>;

/// The values of a key in order, each with its count, which is not 0.
pub(crate) type List = Vec<(Value, i64)>;

/// Adds up counts, and leaves out values whose count is 0.
pub(crate) fn bag(updates: impl IntoIterator<Item = (Value, i64)>) -> Bag {
    let mut sums = Bag::new();
    for (value, diff) in updates {
        *sums.entry(value).or_default() += diff;
    }
    sums.retain(|_, count| *count != 0);
    sums
}

/// Applies a function to each value.
pub(crate) fn map(of: &Bag, mut function: impl FnMut(&Value) -> Value) -> Bag {
    bag(of.iter().map(|(value, count)| (function(value), *count)))
}

/// Pairs the values of equal keys, and applies a function to the key and both.
pub(crate) fn join(left: &Bag, right: &Bag, mut function: impl FnMut([Value; 3]) -> Value) -> Bag {
    let mut made = Vec::new();
    for (a, times) in left {
        for (b, others) in right.iter().filter(|(b, _)| b.part(0) == a.part(0)) {
            made.push((function([a.part(0), a.part(1), b.part(1)]), times * others));
        }
    }
    bag(made)
}

/// Each value once that is there.
pub(crate) fn distinct(of: &Bag) -> Bag {
    bag(of
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(value, _)| (value.clone(), 1)))
}

/// The values of each key.
pub(crate) fn by_key(of: &Bag) -> BTreeMap<Value, List> {
    let mut lists: BTreeMap<Value, List> = BTreeMap::new();
    for (pair, count) in of {
        lists
            .entry(pair.part(0))
            .or_default()
            .push((pair.part(1), *count));
    }
    lists
}

/// Applies a function to the values of each key, which gives the values of the result.
pub(crate) fn reduce(of: &Bag, mut function: impl FnMut(&List) -> List) -> Bag {
    let mut made = Vec::new();
    for (key, list) in by_key(of) {
        for (value, count) in function(&list) {
            made.push((Value::pair(key.clone(), value), count));
        }
    }
    bag(made)
}

fn total(list: &List) -> i64 {
    list.iter().map(|(_, count)| count).sum()
}

fn there(list: &List) -> impl DoubleEndedIterator<Item = &(Value, i64)> {
    list.iter().filter(|(_, count)| *count > 0)
}

/// The greatest values of a list: so many.
fn greatest(list: &List, count: u128) -> List {
    let (mut left, mut taken) = (i64::try_from(count).unwrap_or(i64::MAX), List::new());
    for (value, there) in there(list).rev() {
        let some = left.min(*there);
        taken.push((value.clone(), some));
        left -= some;
        if left == 0 {
            break;
        }
    }
    taken
}

/// The values of a list at some places in an order of their parts.
fn ranked(list: &List, ranking: &Ranking) -> List {
    let mut sorted: Vec<_> = there(list).cloned().collect();
    sorted.sort_by(|(a, _), (b, _)| {
        let parts = ranking.by.iter().map(|place| {
            let (a, b) = (a.part(place.part), b.part(place.part));
            match (a.is_none(), b.is_none()) {
                (false, false) if place.descending => b.cmp(&a),
                (false, false) => a.cmp(&b),
                (a, b) if place.nulls_first => b.cmp(&a),
                (a, b) => a.cmp(&b),
            }
        });
        parts
            .fold(Ordering::Equal, Ordering::then)
            .then_with(|| a.cmp(b))
    });
    let all = sorted.iter().flat_map(|(value, count)| {
        let count = usize::try_from(*count).expect("it is there");
        std::iter::repeat_n(value, count)
    });
    let few = |number: u128| usize::try_from(number).unwrap_or(usize::MAX);
    let chosen = all.skip(few(ranking.offset)).take(few(ranking.count));
    bag(chosen.map(|value| (value.clone(), 1)))
        .into_iter()
        .collect()
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn number(value: i64) -> Value {
    Value::Number(value as f64)
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn sum(list: &List) -> f64 {
    list.iter()
        .map(|(value, count)| value.number() * *count as f64)
        .sum()
}

/// The result of an aggregate of a list.
fn aggregate(list: &List, aggregate: Aggregate) -> Option<Value> {
    match aggregate {
        Aggregate::Count => Some(total(list)).filter(|total| *total != 0).map(number),
        Aggregate::DistinctCount => {
            let different = i64::try_from(there(list).count()).expect("few");
            Some(different).filter(|count| *count != 0).map(number)
        }
        Aggregate::Min => there(list).next().map(|(value, _)| value.clone()),
        Aggregate::Max => there(list).next_back().map(|(value, _)| value.clone()),
        Aggregate::Sum { .. } => (!list.is_empty()).then(|| Value::Number(sum(list))),
        #[allow(clippy::cast_precision_loss, reason = "counts are small")]
        Aggregate::Mean { .. } => {
            let count = Some(total(list)).filter(|count| *count != 0)?;
            Some(Value::Number(sum(list) / count as f64))
        }
        #[allow(clippy::cast_precision_loss, reason = "counts are small")]
        Aggregate::Variance { sample, root } => {
            let count = total(list) as f64;
            let divisor = count - f64::from(sample);
            let mean = sum(list) / count;
            let squares = list.iter().map(|(value, count)| {
                let distance = value.number() - mean;
                distance * distance * *count as f64
            });
            let variance = squares.sum::<f64>() / divisor;
            let made = if root { variance.sqrt() } else { variance };
            (divisor > 0.0).then_some(Value::Number(made))
        }
    }
}

/// One part of values that are tuples, where it is not null.
fn part(list: &List, index: usize) -> List {
    let parts = list
        .iter()
        .map(|(value, count)| (value.part(index), *count));
    bag(parts.filter(|(value, _)| !value.is_none()))
        .into_iter()
        .collect()
}

/// True if a value of so many columns is null: if its first column is.
fn is_null(value: &Value, width: usize) -> bool {
    if width == 1 {
        value.is_none()
    } else {
        value.part(0).is_none()
    }
}

/// The result of a reduction of [`by_key`] for the values of a key.
pub(crate) fn reduced(reduction: &Reduction, list: &List) -> List {
    let one = |result: Option<Value>| result.map(|value| (value, 1)).into_iter().collect();
    match reduction {
        Reduction::Distinct => one((total(list) > 0).then_some(Value::None)),
        Reduction::Positive => {
            let count = total(list);
            (count > 0)
                .then_some((Value::None, count))
                .into_iter()
                .collect()
        }
        Reduction::Windowed(_) | Reduction::Collected(_) | Reduction::Accumulated(_) => {
            unreachable!("these are compared with DuckDB's, from Python")
        }
        Reduction::Count => one(aggregate(list, Aggregate::Count)),
        Reduction::Min { .. } => one(aggregate(list, Aggregate::Min)),
        Reduction::Max => one(aggregate(list, Aggregate::Max)),
        Reduction::TopK(count) => greatest(list, count.get()),
        Reduction::Ranked(ranking) => ranked(list, ranking),
        Reduction::Sum { floats } => one(aggregate(list, Aggregate::Sum { floats: *floats })),
        Reduction::Mean { floats } => one(aggregate(list, Aggregate::Mean { floats: *floats })),
        Reduction::Several(parts) => {
            let results = parts.iter().map(|(of, index)| {
                let missing = if matches!(of, Aggregate::Count | Aggregate::DistinctCount) {
                    number(0)
                } else {
                    Value::None
                };
                aggregate(&part(list, *index), *of).unwrap_or(missing)
            });
            one(Some(Value::Tuple(results.collect())))
        }
        Reduction::OfColumns(of, width) => {
            let known = list.iter().filter(|(value, _)| !is_null(value, *width));
            let known: List = known.cloned().collect();
            let null = || {
                let has_null = there(list).any(|(value, _)| is_null(value, *width));
                has_null.then(|| match width {
                    1 => Value::None,
                    _ => Value::Tuple(vec![Value::None; *width]),
                })
            };
            one(aggregate(&known, *of).or_else(null))
        }
    }
}
