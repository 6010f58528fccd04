//! The order of events that a stream promises.
//!
//! A capture's first event adds the minimum time to its frontier. From then on a message has times at or after a time of the
//! frontier, and so has every time that comes into it. A sequence that keeps to this can be played into a dataflow that
//! begins with a capability for the minimum; so can any interleaving of several.

use pointstamp_order::{MutableAntichain, PartialOrder, Point};

use crate::event::Run;

/// An event that may not come here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A time at or after none of the frontier.
    #[error("an event at time {:?}, which the events before it have excluded", .0.coords())]
    Excluded(Point),
    /// A time was removed more often than it was added.
    #[error("progress that removes time {:?} more often than it was added", .0.coords())]
    Negative(Point),
    /// The first event adds something else than the minimum.
    #[error("the first event is not the one that every capture begins with")]
    First,
    /// The counts add up to more than an `i64`.
    #[error("progress whose counts are larger than any")]
    Overflow,
    /// A message's runs have other records than its batch.
    #[error("a message of {0} records whose batch has {1}")]
    Records(u64, u64),
}

/// The promises of the events so far about later ones.
#[derive(Debug, Clone)]
pub struct Promise {
    frontier: MutableAntichain<Point>,
    begun: bool,
    dims: usize,
}

impl Promise {
    /// Before the first event: the frontier is the minimum.
    pub fn new(dims: usize) -> Self {
        Promise {
            frontier: MutableAntichain::from_elem(Point::minimum(dims)),
            begun: false,
            dims,
        }
    }

    /// Creates the promise after events whose changes have these sums, from [`Promise::counts`].
    pub fn resumed(dims: usize, counts: Vec<(Point, i64)>) -> Self {
        Promise {
            frontier: counts.into_iter().collect(),
            begun: true,
            dims,
        }
    }

    /// The sums of the changes so far, at each time.
    pub fn counts(&self) -> Vec<(Point, i64)> {
        self.frontier.counts()
    }

    /// Whether an event has come.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// The times that may still come.
    pub fn frontier(&self) -> &[Point] {
        self.frontier.frontier()
    }

    /// Whether nothing may come any more.
    pub fn is_complete(&self) -> bool {
        self.frontier.is_empty()
    }

    /// Takes changes to the frontier.
    ///
    /// # Errors
    ///
    /// [`Broken`]; nothing has changed then.
    pub fn progress(&mut self, changes: &[(Point, i64)]) -> Result<(), Broken> {
        if !self.begun {
            // The minimum is there already: every source of a dataflow begins with it.
            if changes != [(Point::minimum(self.dims), 1)] {
                return Err(Broken::First);
            }
            self.begun = true;
            return Ok(());
        }
        let mut after = std::collections::BTreeMap::<&Point, i64>::new();
        for (time, diff) in changes {
            let sum = after.entry(time).or_insert(0);
            *sum = sum.checked_add(*diff).ok_or(Broken::Overflow)?;
        }
        for (&time, &diff) in &after {
            if diff > 0 && !self.frontier.less_equal(time) {
                return Err(Broken::Excluded(time.clone()));
            }
            let count = self.frontier.count_for(time).checked_add(diff);
            match count {
                None => return Err(Broken::Overflow),
                Some(count) if count < 0 => return Err(Broken::Negative(time.clone())),
                Some(_) => {}
            }
        }
        let changes = after.into_iter().map(|(time, diff)| (time.clone(), diff));
        self.frontier.update_iter(changes.collect::<Vec<_>>());
        Ok(())
    }

    /// Checks a message.
    ///
    /// # Errors
    ///
    /// [`Broken`] when a time of it is excluded, or the batch has another number of records.
    pub fn message(&self, runs: &[Run], records: u64) -> Result<(), Broken> {
        if !self.begun {
            return Err(Broken::First);
        }
        let mut sum = 0_u64;
        for run in runs {
            if !self.frontier.less_equal(&run.time) {
                return Err(Broken::Excluded(run.time.clone()));
            }
            sum = sum.checked_add(run.records).ok_or(Broken::Overflow)?;
        }
        if sum == records {
            Ok(())
        } else {
            Err(Broken::Records(sum, records))
        }
    }
}

/// The least times of several frontiers.
pub fn union<'a>(frontiers: impl IntoIterator<Item = &'a [Point]>) -> Vec<Point> {
    let mut least: Vec<Point> = Vec::new();
    for time in frontiers.into_iter().flatten() {
        if least.iter().any(|other| other.less_equal(time)) {
            continue;
        }
        least.retain(|other| !time.less_equal(other));
        least.push(time.clone());
    }
    least
}
