//! Reductions: the functions of the values of a key that operators compute without the host.
//!
//! Owns [`reducer`], which makes a kernel's reducer of a [`Reduction`]; each of the modules computes some of them. They read
//! rows as bytes. Numbers that are neither integers of 64 bits nor floats, and values that rows do not order as the host
//! does, are left to the host ([`Exotic`]).
//!
//! Invariant: a result follows from the values and their counts alone, in whatever order updates came.
//!
//! Cost: linear in the values of the keys that a call has; [`several`] sorts parts of them.

mod accumulated;
mod collected;
mod columns;
mod counts;
mod extremes;
mod ranked;
mod reduction;
mod several;
mod sums;
mod variance;
mod windowed;

use std::rc::Rc;

use self::accumulated::Accumulated;
use self::collected::Collected;
use self::columns::OfColumns;
use self::counts::{Distinct, Positive, count, distinct_count};
use self::extremes::{Greatest, Least, least_of_any};
use self::ranked::Ranked;
use self::reduction::BoxedReducer;
use self::several::{Part, Several};
use self::sums::Sum;
use self::variance::Variance;
use self::windowed::Windowed;
use super::arrange::Form;
use super::exotic::Exotic;
use super::reduce::Reducer;

pub use self::reduction::{
    Accumulation, Aggregate, Collection, Frame, Place, Ranking, Reduction, WindowFunction,
    Windowing,
};

/// Creates the reducer of the named operator, and returns it with the form of its results.
pub fn reducer(reduction: Reduction, exotic: &Rc<dyn Exotic>, name: &str) -> (Reducer, Form) {
    let form = match reduction {
        Reduction::Distinct | Reduction::Positive => Form::Key,
        _ => Form::Pair,
    };
    let of_aggregate = |aggregate| aggregate_reducer(aggregate, exotic, name);
    let reducer = match reduction {
        Reduction::Distinct => Reducer::new(Distinct),
        Reduction::Positive => Reducer::new(Positive),
        Reduction::Count => Reducer::new(count),
        Reduction::Min { any_order: true } => Reducer::new(least_of_any),
        Reduction::Min { any_order: false } => Reducer::new(Least(Rc::clone(exotic))),
        Reduction::Max => Reducer::new(Greatest::one(exotic)),
        Reduction::TopK(count) => Reducer::new(Greatest::top(count, exotic)),
        Reduction::Ranked(ranking) => Reducer::new(Ranked(ranking)),
        Reduction::Windowed(windowing) => Reducer::new(Windowed(windowing)),
        Reduction::Sum { floats } => Reducer::new(Sum::new(name, exotic, false, floats)),
        Reduction::Mean { floats } => Reducer::new(Sum::new(name, exotic, true, floats)),
        Reduction::Several(parts) => {
            let parts = parts.into_iter().map(|(aggregate, index)| Part {
                reducer: Box::new(OfColumns::new(1, of_aggregate(aggregate))),
                index,
                is_count: matches!(aggregate, Aggregate::Count | Aggregate::DistinctCount),
            });
            Reducer::new(Several(parts.collect()))
        }
        Reduction::Collected(collection) => Reducer::new(Collected(collection)),
        Reduction::Accumulated(parts) => Reducer::new(Accumulated(parts)),
        Reduction::OfColumns(aggregate, width) => {
            Reducer::new(OfColumns::new(width, of_aggregate(aggregate)))
        }
    };
    (reducer, form)
}

fn aggregate_reducer(aggregate: Aggregate, exotic: &Rc<dyn Exotic>, name: &str) -> BoxedReducer {
    match aggregate {
        Aggregate::Count => Box::new(count),
        Aggregate::DistinctCount => Box::new(distinct_count),
        Aggregate::Min => Box::new(Least(Rc::clone(exotic))),
        Aggregate::Max => Box::new(Greatest::one(exotic)),
        Aggregate::Sum { floats } => Box::new(Sum::new(name, exotic, false, floats)),
        Aggregate::Mean { floats } => Box::new(Sum::new(name, exotic, true, floats)),
        Aggregate::Variance { sample, root } => Box::new(Variance { sample, root }),
    }
}
