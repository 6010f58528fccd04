//! The least and the greatest values of keys.
//!
//! Invariant: a value is chosen only where the host orders values as rows do, or the difference is not observable:
//! values that only the host orders are passed to it ([`Exotic::check_order`]), in pairs.
//!
//! Cost: linear in the values of a key at worst; constant where none is negative and all are plain.

use std::num::NonZeroU128;
use std::rc::Rc;

use pointstamp_arrange::{Error, Lists, Reducer as Kernel};
use pointstamp_rows::{Cells, Row};

use super::reduction::Done;
use crate::collections::exotic::Exotic;

/// The least value of each key.
pub(super) struct Least(pub(super) Rc<dyn Exotic>);

impl Kernel<Cells, Cells, Cells> for Least {
    fn reduce(&mut self, _: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        for index in 0..inputs.len() {
            let mut there = values(inputs, index).map(|(value, _)| value);
            if let Some(least) = there.next() {
                check_order(&*self.0, "min", least, there)?;
                outputs.push(least, 1);
            }
            outputs.end();
        }
        Ok(())
    }
}

/// The least row of each key. For values that rows do not order as the host does, the choice is
/// deterministic.
#[allow(clippy::unnecessary_wraps, reason = "a reducer may fail")]
pub(super) fn least_of_any(_: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
    for index in 0..inputs.len() {
        if let Some((least, _)) = values(inputs, index).next() {
            outputs.push(least, 1);
        }
        outputs.end();
    }
    Ok(())
}

/// Returns the values of a key that have positive counts, least first.
fn values(inputs: &Lists<Cells>, index: usize) -> impl DoubleEndedIterator<Item = (Row<'_>, i64)> {
    inputs.list(index).filter(|(_, diff)| *diff > 0)
}

/// A reducer to the greatest values of each key: `count` of them, where one counts once or as often as it is there.
pub(super) struct Greatest {
    count: NonZeroU128,
    times: Times,
    exotic: Rc<dyn Exotic>,
}

impl Greatest {
    /// Makes a reducer to the greatest value, once.
    pub(super) fn one(exotic: &Rc<dyn Exotic>) -> Self {
        Greatest {
            count: NonZeroU128::MIN,
            times: Times::Once,
            exotic: Rc::clone(exotic),
        }
    }

    /// Makes a reducer to so many values, each as often as it is there.
    pub(super) fn top(count: NonZeroU128, exotic: &Rc<dyn Exotic>) -> Self {
        Greatest {
            count,
            times: Times::AsOften,
            exotic: Rc::clone(exotic),
        }
    }
}

/// The multiplicity with which a value counts.
#[derive(PartialEq, Eq)]
enum Times {
    Once,
    AsOften,
}

impl Kernel<Cells, Cells, Cells> for Greatest {
    fn reduce(&mut self, _: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        for index in 0..inputs.len() {
            let mut left = self.count.get();
            let (mut there, mut kinds) = (values(inputs, index).rev(), 0);
            while let Some((value, diff)) = there.next() {
                let (name, taken) = match self.times {
                    Times::Once => ("max", 1),
                    Times::AsOften => (
                        "top_k",
                        i64::try_from(left).map_or(diff, |left| diff.min(left)),
                    ),
                };
                outputs.push(value, taken);
                left -= u128::from(taken.unsigned_abs());
                kinds += 1;
                if left == 0 {
                    // Each that is taken is to be greater than each other. They are sorted as rows, so it is enough that
                    // the least taken is greater than each other, and that the greatest other is less than each taken.
                    check_order(&*self.exotic, name, value, there.map(|(other, _)| other))?;
                    let all = || values(inputs, index).rev().map(|(value, _)| value);
                    if let Some(other) = all().nth(kinds) {
                        check_order(&*self.exotic, name, other, all().take(kinds))?;
                    }
                    break;
                }
            }
            outputs.end();
        }
        Ok(())
    }
}

/// Refuses a value and others of which the host orders one pair, and rows do not.
fn check_order<'a>(
    exotic: &dyn Exotic,
    name: &str,
    value: Row<'a>,
    mut others: impl Iterator<Item = Row<'a>>,
) -> Done {
    if !value.may_be_unordered() {
        return Ok(());
    }
    match others.find(|other| value.is_unordered_with(*other)) {
        Some(other) => exotic
            .check_order(name, value, other)
            .map_err(Error::Caller),
        None => Ok(()),
    }
}
