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
            return; // no peer to tell, and nothing is ever on its way
        }
        self.activity.steps(worker - self.first);
        if let Some(combiner) = &self.combiner {
            combiner.step_begins(worker - self.first);
        }
    }

    /// Notes that a worker has ended a step, sends what is combined, unless it is better to wait, and looks how much is on
    /// its way.
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

    /// Whether what feeds the computation is to pause: too much is on its way, here or in another process.
    #[inline]
    pub fn is_pressed(&self) -> bool {
        self.pressure.is_on()
    }

    /// How many bytes may be on their way in a process before what feeds the computation pauses.
    #[inline]
    pub fn high_water(&self) -> usize {
        self.pressure.high_water()
    }

    /// How many other processes have said that too much is on its way in them.
    pub fn pressed_elsewhere(&self) -> usize {
        self.pressure.elsewhere()
    }

    /// Looks how much is on its way, as at the end of a step.
    pub fn weigh(&self) {
        if self.peers > 1 {
            self.pressure.weigh();
        }
    }

    /// Pauses what feeds the computation, in all processes, until [`let_go`](Self::let_go): for an operator that leaves its input alone
    /// while it waits for the world outside.
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

    /// Asks the processes that are pressed to give way if nothing moves in them. To be called every [`ASK`](crate::ASK) by the thread that
    /// waits for the pressure to end.
    pub fn ask_for_release(&self) {
        self.pressure.ask();
    }

    /// Sends what is combined, without waiting for other workers.
    pub fn flush(&self) {
        if let Some(combiner) = &self.combiner {
            combiner.flush();
        }
    }
}
