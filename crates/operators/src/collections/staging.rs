//! The common part of arranging and consolidating: updates on the way from messages to sealed runs.
//!
//! Both work in instalments: so many updates are received, and so many merged, in one activation; while more waits
//! the operator activates itself again. A frontier is acted on also while messages wait: a port's frontier is not
//! past a message that was not consumed when the activation began, so that waiting updates are at or after it.
//! Waiting for an empty queue would wait as long as input keeps coming.

use std::sync::Arc;

use pointstamp_arrange::Storage;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::Restored;
use pointstamp_order::{Antichain, Point};

use super::checkpoint::Parts as StateParts;
use super::fuel::{MOST, fuel};
use super::route::{By, not_a_pair};
use super::staged::{Parts, Staged, Waiting};
use super::time::{ScopeTime, frontier_of};
use super::updates::Updates;
use crate::Error;
use crate::typed::Input;
use pointstamp_rows::{Cutter, Row};

/// Updates received and staged, and the frontier that was acted on last.
pub(crate) struct Staging<T> {
    staged: Staged<T>,
    by: By,
    name: String,
    frontier: Vec<Point>,
    cutter: Cutter,
    /// The number of updates that the next activation receives.
    most: usize,
}

/// A frontier, and the updates that became complete before it.
pub(crate) type Complete<T> = (Antichain<T>, Parts<T>);

impl<T: ScopeTime> Staging<T> {
    pub(crate) fn new(by: By, dims: usize, name: &str) -> Self {
        Staging {
            staged: Staged::new(dims),
            by,
            name: name.to_owned(),
            frontier: vec![Point::minimum(dims)],
            cutter: Cutter::default(),
            most: 0,
        }
    }

    /// Restores the updates of a checkpoint.
    pub(crate) fn restore(
        &mut self,
        restored: &mut Restored,
        parts: &mut StateParts<T>,
    ) -> Result<(), Error> {
        self.staged = Staged::restored(restored, parts)?;
        self.frontier = parts.upper.iter().map(T::point).collect();
        Ok(())
    }

    /// Has updates stored where the storage asks for it.
    pub(crate) fn store_in(&mut self, storage: Option<Arc<dyn Storage>>) {
        self.staged.store_in(storage);
    }

    /// The bytes that the updates take, in memory and on disk.
    pub(crate) fn size(&self) -> (usize, u64) {
        self.staged.size()
    }

    /// Stores some of the updates, where the storage asks for it.
    pub(crate) fn store(&mut self) -> Result<(), BoxError> {
        self.staged.store()
    }

    /// The updates, and the frontier before which they were sealed. No seal is in progress.
    pub(crate) fn kept(&mut self) -> Result<Waiting<T>, BoxError> {
        self.staged.kept()
    }

    /// Stages the updates of waiting messages, up to a bounded number: twice that of the activation before if
    /// that was used up, so that the input of each step is received in time. Returns the fuel of the
    /// activation, which is in proportion to the input where that is large, so that sealing keeps up with it.
    pub(crate) fn receive(&mut self, input: &Input<Updates>) -> Result<usize, BoxError> {
        let mut received = 0;
        let most = self.most.max(fuel());
        while received < most
            && let Some((message, updates)) = input.next()?
        {
            self.staged.hold(&message)?;
            let (at, dims) = (T::of(message.time()), message.time().dims());
            received += updates.len();
            if self.by == By::Record
                && let Some((rows, diffs)) = updates.at_one_time()
            {
                self.staged.extend_at(rows, &at, diffs)?;
                continue;
            }
            for update in updates.iter() {
                let time = update.time_in(&at, dims);
                if !at.less_equal(&time) {
                    return Err(early(&time, &at)); // bytes of a peer that is broken
                }
                match self.by {
                    By::Record => {
                        self.staged
                            .push(update.row, Row::UNIT, &time, update.diff)?;
                    }
                    By::Key => {
                        let Some((key, value)) = self.cutter.cut(update.row) else {
                            return Err(not_a_pair(update.row, &self.name));
                        };
                        self.staged.push(key, value, &time, update.diff)?;
                    }
                }
            }
        }
        self.most = if received < most {
            0
        } else {
            (2 * most).min(MOST * fuel())
        };
        Ok(fuel().max(received.saturating_mul(4)))
    }

    /// Continues the current seal, or begins one when the input's frontier has changed. To be called again
    /// after it returned updates.
    pub(crate) fn seal(
        &mut self,
        input: &Input<Updates>,
        fuel: &mut usize,
    ) -> Result<Option<Complete<T>>, BoxError> {
        if !self.staged.is_sealing() {
            let frontier = input.port().frontier();
            let frontier = frontier.frontier();
            if self.frontier == frontier {
                return Ok(None);
            }
            self.frontier = frontier.to_vec();
            self.staged.begin(&frontier_of(frontier))?;
        }
        let parts = self.staged.seal(fuel)?;
        Ok(parts.map(|parts| (frontier_of(&self.frontier), parts)))
    }

    /// Whether the operator has to run again although nothing new has come.
    pub(crate) fn has_more(&self, input: &Input<Updates>) -> bool {
        self.staged.is_sealing() || input.port().has_messages()
    }
}

#[cold]
fn early<T: ScopeTime>(time: &T, message: &T) -> BoxError {
    let (time, message) = (time.point(), message.point());
    Error::Early { time, message }.into()
}
