//! One row of each key: of one time, or of all times so far.
//!
//! [`Distinct`] is for one time: it gives the first row of each key. [`SoFar`] is for all times. It gives a row of
//! each key at the least times at which the key has one, so that at every time `t` the keys given at or before `t`
//! are the keys that have come at or before `t`. Where times are partially ordered, a key can have several least
//! times: a key that came at `(1, 0)` is given again at `(0, 1)`.
//!
//! The result at a time does not depend on the order of arrival: the caller takes batches in an order of their times,
//! and a time after all earlier ones. State: the distinct keys, for each the numbers of its times, and nothing of the
//! rows. Cost: a look-up in a table per row, and a copy of the new rows.

use std::collections::HashMap;
use std::ops::Range;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::Schema;
use arrow_select::take::take_record_batch;
use pointstamp_order::{PartialOrder, Point};

use crate::dictionary::in_parts;
use crate::error::Error;
use crate::gathered::gathered;
use crate::groups::Groups;
use crate::pieces::MAX_ROWS;
use crate::schema::{numbered_columns, project};
use crate::times::Times;

/// Some rows of a batch; `None` when there are none.
fn rows_of(batch: &RecordBatch, rows: Vec<u32>) -> Result<Option<RecordBatch>, Error> {
    Ok(match rows.len() {
        0 => None,
        all if all == batch.num_rows() => Some(batch.clone()),
        _ => Some(take_record_batch(batch, &UInt32Array::from(rows))?),
    })
}

/// Remembers which keys a time has.
pub struct Distinct {
    key: Vec<usize>,
    groups: Groups,
}

impl Distinct {
    /// Nothing seen yet; `key` numbers columns of the schema.
    ///
    /// # Errors
    ///
    /// As [`Groups::new`].
    pub fn new(schema: &Schema, key: Vec<usize>) -> Result<Self, Error> {
        Ok(Distinct {
            groups: Groups::of(schema, &key)?,
            key,
        })
    }

    /// The number of keys that have been seen.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether no key has been seen.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// The keys that have been seen.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn kept(&self) -> Result<Vec<RecordBatch>, Error> {
        keys_of(&self.groups, None)
    }

    /// Takes in keys that [`kept`](Self::kept) returned.
    ///
    /// # Errors
    ///
    /// As [`Groups::number`].
    pub fn put(&mut self, keys: &RecordBatch) -> Result<(), Error> {
        self.groups.number(keys.columns()).map(drop)
    }

    /// The rows whose key has not been seen before, in this batch or an earlier one; `None` when there are none.
    ///
    /// # Errors
    ///
    /// As [`Groups::number`].
    pub fn first_rows(&mut self, batch: &RecordBatch) -> Result<Option<RecordBatch>, Error> {
        let before = self.groups.len();
        let numbers = self.groups.number(&project(batch, &self.key))?;
        // Keys are numbered in the order in which they appear, so the first row of a key is the one with the next
        // number.
        let mut rows = Vec::with_capacity(self.groups.len() - before);
        let mut next = before;
        for (row, &number) in (0_u32..).zip(&numbers) {
            if number as usize == next {
                rows.push(row);
                next += 1;
            }
        }
        rows_of(batch, rows)
    }
}

/// The keys of groups of these numbers, or all of them, in batches without names.
fn keys_of(groups: &Groups, numbers: Option<&[u32]>) -> Result<Vec<RecordBatch>, Error> {
    let len = numbers.map_or(groups.len(), <[u32]>::len);
    let mut batches = Vec::new();
    for start in (0..len).step_by(MAX_ROWS) {
        let range = start..len.min(start + MAX_ROWS);
        let make = |range: Range<usize>| match numbers {
            None => groups.keys(range),
            Some(numbers) => gathered(&numbers[range], |range| groups.keys(range)),
        };
        in_parts(range, make, |columns| {
            batches.push(numbered_columns(columns)?);
            Ok::<_, Error>(())
        })?;
    }
    Ok(batches)
}

/// Remembers at which times keys were first seen.
pub struct SoFar {
    key: Vec<usize>,
    groups: Groups,
    /// For each key, the number of a time at which it was given.
    first: Vec<u32>,
    /// The other times of keys that have several, none of them at or before another.
    others: HashMap<u32, Vec<u32>>,
    times: Times,
}

impl SoFar {
    /// Nothing seen yet; `key` numbers columns of the schema.
    ///
    /// # Errors
    ///
    /// As [`Groups::new`].
    pub fn new(schema: &Schema, key: Vec<usize>) -> Result<Self, Error> {
        Ok(SoFar {
            groups: Groups::of(schema, &key)?,
            key,
            first: Vec::new(),
            others: HashMap::new(),
            times: Times::default(),
        })
    }

    /// The number of keys, of times, and of further times of keys.
    pub fn size(&self) -> (usize, usize, usize) {
        let further = self.others.values().map(Vec::len).sum();
        (self.groups.len(), self.times.as_slice().len(), further)
    }

    /// The rows whose key has not occurred at this time or before it; `None` when there are none. No batch of
    /// a time before this one may follow.
    ///
    /// # Errors
    ///
    /// As [`Groups::number`].
    pub fn first_rows(
        &mut self,
        time: &Point,
        batch: &RecordBatch,
    ) -> Result<Option<RecordBatch>, Error> {
        let before = self.groups.len();
        let numbers = self.groups.number(&project(batch, &self.key))?;
        let own = self.times.number_of(time);
        let times = self.times.as_slice();
        let mut known = vec![None; times.len()];
        let mut covers = |number: u32| {
            let number = number as usize;
            *known[number].get_or_insert_with(|| times[number].less_equal(time))
        };
        let mut rows = Vec::with_capacity(self.groups.len() - before);
        for (row, &number) in (0_u32..).zip(&numbers) {
            let Some(&first) = self.first.get(number as usize) else {
                self.first.push(own); // keys are numbered in the order in which they appear
                rows.push(row);
                continue;
            };
            if covers(first) {
                continue;
            }
            let others = self.others.entry(number).or_default();
            if !others.iter().any(|&other| covers(other)) {
                others.push(own);
                rows.push(row);
            }
        }
        rows_of(batch, rows)
    }

    /// The keys by the times at which they were given.
    ///
    /// # Errors
    ///
    /// An error of a kernel.
    pub fn kept(&self) -> Result<Vec<(Point, RecordBatch)>, Error> {
        let mut by_time = vec![Vec::new(); self.times.as_slice().len()];
        for (key, &time) in (0_u32..).zip(&self.first) {
            by_time[time as usize].push(key);
        }
        for (&key, times) in &self.others {
            for &time in times {
                by_time[time as usize].push(key);
            }
        }
        let mut kept = Vec::new();
        for (time, keys) in self.times.as_slice().iter().zip(&by_time) {
            let batches = keys_of(&self.groups, Some(keys))?;
            kept.extend(batches.into_iter().map(|keys| (time.clone(), keys)));
        }
        Ok(kept)
    }

    /// Takes in keys that [`kept`](Self::kept) returned, of this or of others for other keys.
    ///
    /// # Errors
    ///
    /// As [`Groups::number`].
    pub fn put(&mut self, time: &Point, keys: &RecordBatch) -> Result<(), Error> {
        let own = self.times.number_of(time);
        for number in self.groups.number(keys.columns())? {
            if number as usize == self.first.len() {
                self.first.push(own); // keys are numbered in the order in which they appear
            } else {
                self.others.entry(number).or_default().push(own);
            }
        }
        Ok(())
    }

    /// Takes the frontier of times that may still come: times that they cannot distinguish are merged.
    ///
    /// Cost: now and then a pass over the keys, so seldom that it does not count.
    pub fn advance(&mut self, frontier: &[Point]) {
        let Some(moved) = self.times.advance(frontier, self.first.len()) else {
            return;
        };
        let times = self.times.as_slice();
        let before = |a: u32, b: u32| times[a as usize].less_equal(&times[b as usize]);
        for number in &mut self.first {
            *number = moved[*number as usize];
        }
        let first = &mut self.first;
        self.others.retain(|&key, others| {
            let first = &mut first[key as usize];
            let mut least: Vec<u32> = Vec::with_capacity(others.len());
            for number in others.iter().map(|&number| moved[number as usize]) {
                if !before(*first, number) && !least.iter().any(|&less| before(less, number)) {
                    least.retain(|&more| !before(number, more));
                    least.push(number);
                }
            }
            if let Some(at) = least.iter().position(|&less| before(less, *first)) {
                *first = least.swap_remove(at);
            }
            *others = least;
            !others.is_empty()
        });
    }
}
