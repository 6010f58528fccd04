//! Waiting of `main` while too many bytes are in flight: only a step moves the batches that it sends.

use std::time::Instant;

use pointstamp_channels::ASK;

use super::Worker;
use super::step::Sleep;
use crate::error::Error;
use crate::payload::Payload;

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
        Ok(())
    }

    /// Whether too much is on its way for more to be sent by `main`.
    pub fn is_pressed(&self) -> bool {
        if self.is_stepping() {
            return false;
        }
        self.fabric().weigh();
        self.fabric().is_pressed() || self.holds_too_much()
    }

    /// Whether `main` has sent so much since the last step that a step is due.
    fn holds_too_much(&self) -> bool {
        self.0.unmoved.get() > self.fabric().high_water()
    }

    /// Steps while too much is on its way, so that less is, but not longer than until `deadline`; whether there is room then. Where
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
        if self.holds_too_much() {
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
