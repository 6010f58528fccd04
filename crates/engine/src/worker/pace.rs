//! The pace at which `main` sends where checkpoints are made.
//!
//! A checkpoint waits for the work that is in flight. So `main` sends in parts, as sources do, and between two parts it steps until
//! their work is done: at most [`RECORDS`] records at [`TIMES`] times, and fewer records where their work takes longer than [`SLOW`].
//! Then a checkpoint that is requested while `main` sends waits for one part.

use std::cell::Cell;
use std::time::Duration;

/// The maximum number of records of a part, but for the last batch.
const RECORDS: usize = 4096;

/// The maximum number of times of a part.
const TIMES: usize = 256;

/// The time that the work of a part may take: the next part is smaller otherwise.
const SLOW: Duration = Duration::from_millis(250);

/// The records that `main` has sent since the work of earlier ones was done.
pub(super) struct Pace {
    records: Cell<usize>,
    times: Cell<usize>,
    /// The number of records of a part.
    most: Cell<usize>,
}

impl Pace {
    pub(super) fn new() -> Self {
        Pace {
            records: Cell::new(0),
            times: Cell::new(0),
            most: Cell::new(RECORDS),
        }
    }

    /// Notes records that are sent.
    pub(super) fn sends(&self, records: usize) {
        self.records.set(self.records.get().saturating_add(records));
    }

    /// Notes a move of an input to a later time.
    pub(super) fn moves(&self) {
        self.times.set(self.times.get().saturating_add(1));
    }

    /// Whether a part is sent.
    pub(super) fn is_whole(&self) -> bool {
        self.records.get() >= self.most.get() || self.times.get() >= TIMES
    }

    /// Notes that operators have run for so long, and begins another part.
    pub(super) fn worked(&self, took: Duration) {
        let records = self.records.replace(0);
        self.times.set(0);
        let most = if took > SLOW {
            let most = records as u128 * (SLOW / 2).as_nanos() / took.as_nanos();
            usize::try_from(most).unwrap_or(RECORDS)
        } else {
            self.most.get().saturating_mul(2)
        };
        self.most.set(most.clamp(1, RECORDS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_a_number_of_records_or_of_times() {
        let pace = Pace::new();
        pace.sends(RECORDS - 1);
        assert!(!pace.is_whole());
        pace.sends(1);
        assert!(pace.is_whole());
        pace.worked(Duration::ZERO);
        assert!(!pace.is_whole());
        (1..TIMES).for_each(|_| pace.moves());
        assert!(!pace.is_whole());
        pace.moves();
        assert!(pace.is_whole());
    }

    #[test]
    fn parts_are_small_where_work_takes_long_and_grow_again() {
        let pace = Pace::new();
        pace.sends(RECORDS);
        pace.worked(4 * SLOW);
        assert_eq!(pace.most.get(), RECORDS / 8);
        pace.sends(1);
        pace.worked(4 * SLOW);
        assert_eq!(pace.most.get(), 1);
        (0..20).for_each(|_| pace.worked(Duration::ZERO));
        assert_eq!(pace.most.get(), RECORDS);
    }
}
