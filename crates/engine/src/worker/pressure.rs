//! Waiting of `main` while too much is in flight: only a step moves the batches that it sends.

use std::rc::Rc;
use std::time::{Duration, Instant};

use pointstamp_channels::ASK;

use super::Worker;
use super::step::Sleep;
use crate::error::Error;
use crate::payload::Payload;
use crate::run::holding::Holding;

/// The time for which `main` waits for work that does not end.
const WAITS: Duration = Duration::from_secs(1);

/// Holds the sources of a worker for as long as it lives.
struct Settling(Rc<Holding>);

impl Settling {
    fn begin(holding: &Rc<Holding>) -> Self {
        holding.set_settles(true);
        Settling(Rc::clone(holding))
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        self.0.set_settles(false);
    }
}

impl<P: Payload> Worker<P> {
    /// Counts the batches that `main` sends: only a step moves them.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check): sent batches are then dropped.
    pub fn sends(&self, data: &P) -> Result<(), Error> {
        self.check()?;
        let unmoved = self.0.unmoved.get();
        self.0.unmoved.set(unmoved.saturating_add(data.footprint()));
        if self.0.holding.records() {
            self.0.pace.sends(data.len());
        }
        Ok(())
    }

    /// Notes that `main` moves an input to a later time.
    pub(crate) fn moves(&self) {
        if self.0.holding.records() {
            self.0.pace.moves();
        }
    }

    /// Whether `main` is to call [`make_room`](Self::make_room): too much is on its way for more to be sent, or `main` is to stop for a checkpoint.
    pub fn is_pressed(&self) -> bool {
        if self.is_stepping() {
            return false;
        }
        self.fabric().weigh();
        self.is_to_stop() || self.fabric().is_pressed() || self.holds_too_much() || self.is_behind()
    }

    /// Whether `main` has sent so much since the last step that a step is due.
    fn holds_too_much(&self) -> bool {
        self.0.unmoved.get() > self.fabric().high_water()
    }

    /// Whether checkpoints are made, and `main` has sent a part whose work comes before the next part. Inside of a block that builds a dataflow
    /// nothing of it is installed.
    fn is_behind(&self) -> bool {
        self.0.pace.is_whole() && !self.0.cutting.builds()
    }

    /// Steps until the work of the part is done that `main` has sent. Sources wait meanwhile, and so does all that a drain holds: else
    /// the work of a source, or of a loop, could have no end.
    fn work_off(&self, deadline: Option<Instant>) -> Result<(), Error> {
        let wakeups = &self.0.wakeups;
        let (begun, before) = (Instant::now(), wakeups.worked());
        let until = begun + WAITS;
        let until = deadline.map_or(until, |deadline| deadline.min(until));
        let settling = Settling::begin(&self.0.holding);
        while self.has_work() && Instant::now() < until {
            self.turn(Sleep::No)?;
        }
        drop(settling);
        self.0.pace.worked(wakeups.worked().saturating_sub(before));
        Ok(())
    }

    /// Steps while too much is on its way, so that less is, but not longer than until `deadline`; whether there is room then. It stops `main` before
    /// a checkpoint, where nothing was sent at the times of its inputs. Where
    /// nothing moves any more there is room, after a second: no worker waits for ever. Inside an operator, which must not wait,
    /// there always is.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step).
    pub fn make_room(&self, deadline: Option<Instant>) -> Result<bool, Error> {
        let fabric = self.fabric();
        let releases = fabric.releases();
        if self.is_stepping() {
            return Ok(true);
        }
        self.check()?;
        if self.is_to_stop() {
            self.turn(Sleep::No)?;
        }
        if self.is_behind() {
            self.work_off(deadline)?;
        } else if self.holds_too_much() {
            self.turn(Sleep::No)?;
        }
        fabric.weigh();
        while fabric.is_pressed() && fabric.releases() == releases {
            let now = Instant::now();
            if deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(false);
            }
            self.0.brake.ask();
            let soon = now + ASK;
            let until = deadline.map_or(soon, |deadline| deadline.min(soon));
            self.turn(Sleep::Until(until))?;
        }
        Ok(true)
    }
}
