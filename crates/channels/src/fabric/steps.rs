//! Reports of workers to the fabric about their steps, for the sake of the progress link and of back-pressure.
//!
//! A worker alone in the computation pays one comparison for each of these calls.

use std::time::Instant;

use super::Fabric;

impl Fabric {
    /// Notes that a worker begins a step.
    #[inline]
    pub fn step_begins(&self, worker: usize) {
        if self.peers == 1 {
            return; // no peer to inform, and nothing is ever in flight
        }
        self.activity.steps(worker - self.first);
        if let Some(combiner) = &self.combiner {
            combiner.step_begins(worker - self.first);
        }
    }

    /// Notes that a worker has ended a step, sends combined messages unless it is better to wait, and reads
    /// the gauge of bytes in flight.
    #[inline]
    pub fn step_ended(&self, worker: usize) {
        if self.peers == 1 {
            return;
        }
        self.activity.outside(worker - self.first);
        self.pressure.weigh();
        if let Some(combiner) = &self.combiner {
            combiner.step_ended(worker - self.first);
        }
    }

    /// Notes that a worker goes to sleep. It must wake at the time that is returned, if one is, and say so by
    /// [`woke`](Self::woke).
    #[inline]
    pub fn parks(&self, worker: usize) -> Option<Instant> {
        self.activity.parks(worker - self.first);
        let combiner = self.combiner.as_ref()?;
        combiner.parks(worker - self.first)
    }

    /// Notes that a worker has slept.
    #[inline]
    pub fn woke(&self, worker: usize) {
        self.activity.outside(worker - self.first);
        if let Some(combiner) = &self.combiner {
            combiner.woke();
        }
    }

    /// Whether sources must pause: too many bytes are in flight, in this process or in another one.
    #[inline]
    pub fn is_pressed(&self) -> bool {
        self.pressure.is_on()
    }

    /// The number of bytes that may be in flight in a process before the sources pause.
    #[inline]
    pub fn high_water(&self) -> usize {
        self.pressure.high_water()
    }

    /// Lowers that number, if it is higher.
    pub fn lower_high_water(&self, high_water: usize) {
        self.pressure.lower(high_water);
    }

    /// The number of other processes that report too many bytes in flight.
    pub fn pressed_elsewhere(&self) -> usize {
        self.pressure.elsewhere()
    }

    /// Measures the bytes in flight, as at the end of a step.
    pub fn weigh(&self) {
        if self.peers > 1 {
            self.pressure.weigh();
        }
    }

    /// Pauses the sources of all processes until [`let_go`](Self::let_go): for an operator that leaves its
    /// input alone while it waits for an external event.
    pub fn hold(&self) {
        self.pressure.hold();
    }

    /// Takes back one [`hold`](Self::hold).
    pub fn let_go(&self) {
        self.pressure.let_go();
    }

    /// A number that changes whenever [`is_pressed`](Self::is_pressed) ceases to hold, and all workers are woken then. Read it first:
    /// a thread that finds the fabric pressed afterwards sees this change.
    #[inline]
    pub fn releases(&self) -> u64 {
        self.pressure.releases()
    }

    /// Requests that pressed processes give way if nothing moves in them. To be called every
    /// [`ASK`](crate::ASK) by the thread that waits for the pressure to end.
    pub fn ask_for_release(&self) {
        self.pressure.ask();
    }

    /// Sends combined messages, without waiting for other workers or, in a relay, for other processes.
    pub fn flush(&self) {
        if let Some(combiner) = &self.combiner {
            combiner.flush();
            combiner.flush_relay();
        }
    }
}
