//! The times of an operator's rows, by number; times that later ones cannot distinguish are merged.
//!
//! So there are about as many as open times, however long the operator runs. Cost of [`Times::advance`]: mostly a
//! comparison; now and then a pass over the times, which the caller follows by one over the values with their
//! numbers.

use std::collections::HashMap;

use pointstamp_order::Point;

/// Fewer times than this are left as they are.
const MIN_TIMES: usize = 64;

/// Times by number.
#[derive(Default)]
pub(crate) struct Times {
    known: Vec<Point>,
    numbers: HashMap<Point, u32>,
    /// With this many it is worth looking which have become one.
    due: usize,
}

impl Times {
    /// The times, by number.
    pub(crate) fn as_slice(&self) -> &[Point] {
        &self.known
    }

    /// The number of a time.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "callers keep fewer than 2^32 things, each of one time"
    )]
    pub(crate) fn number_of(&mut self, time: &Point) -> u32 {
        if let Some(&number) = self.numbers.get(time) {
            return number;
        }
        let number = self.known.len() as u32;
        self.known.push(time.clone());
        self.numbers.insert(time.clone(), number);
        number
    }

    /// Moves times to the latest time that later times, at or after `frontier`, cannot distinguish from them:
    /// the least upper bound of `time` and any time after `f` equals that of `time.join(f)` and the later
    /// time. `kept` is the number of values that have a number.
    ///
    /// Returns the new number of each old one, where they have changed.
    pub(crate) fn advance(&mut self, frontier: &[Point], kept: usize) -> Option<Vec<u32>> {
        if frontier.is_empty() || self.known.len() <= self.due.max(MIN_TIMES) {
            return None;
        }
        let mut moved = Times::default();
        let numbers = self.known.iter().map(|time| {
            let later = frontier.iter().filter_map(|least| time.join(least));
            let later = later.reduce(|a, b| a.meet(&b).unwrap_or(a));
            moved.number_of(&later.unwrap_or_else(|| time.clone()))
        });
        let numbers = numbers.collect();
        moved.due = 2 * moved.known.len() + kept / 64;
        *self = moved;
        Some(numbers)
    }
}
