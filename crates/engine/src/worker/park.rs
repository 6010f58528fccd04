//! Sleeping of a worker that has nothing to do.

use std::time::Instant;

use super::Worker;
use crate::observe::Observation;
use crate::payload::Payload;

impl<P: Payload> Worker<P> {
    /// Whether a step would find something to do now.
    pub fn has_work(&self) -> bool {
        if self.0.cluster.has_cut_messages(self.0.index) || self.0.cutting.is_frozen() {
            return self.0.cluster.has_cut_messages(self.0.index);
        }
        self.0.cutting.is_due()
            || self.0.registry.root().has_active()
            || !self.0.mailbox.borrow().is_empty()
            || self.0.brake.is_released()
    }

    /// Sleeps until there may be something to do, or until `deadline`.
    pub fn park(&self, deadline: Option<Instant>) {
        if self.has_work() || self.check().is_err() {
            return;
        }
        let timer = self.0.wakeups.fire();
        if self.has_work() {
            return; // a timer was due
        }
        let ours = [
            deadline,
            timer,
            self.0.brake.deadline(),
            self.0.cutting.due(),
        ];
        let ours = ours.into_iter().flatten().min();
        let mailbox = self.0.mailbox.borrow();
        if self.0.spin.look(ours, || !mailbox.is_empty()) {
            return;
        }
        let fabric = self.fabric();
        let others = fabric.parks(self.0.index);
        let deadline = [ours, others].into_iter().flatten().min();
        self.0.observers.report(|| Observation::ParkBegins);
        self.0.spin.asleep(|| mailbox.park(deadline));
        self.0.observers.report(|| Observation::ParkEnds);
        fabric.woke(self.0.index);
    }
}
