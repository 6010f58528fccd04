//! What holds in each state, in quiet ones, and in final ones.

use super::{SAYS, State, Step, sorted};
use crate::explore::Wrong;
use crate::explore::scenario::Model;

impl State {
    /// No frontier may have passed what is outstanding.
    pub(in crate::explore) fn check_safety(&self) -> Result<(), (Wrong, String)> {
        for (index, worker) in self.workers.iter().enumerate() {
            for ((scope, location), time) in self.outstanding() {
                let tracker = worker.views[*scope].tracker();
                if !tracker.less_equal(*location, time) {
                    let frontier = tracker.frontier(*location);
                    return Err((
                        Wrong::Passed,
                        format!(
                            "worker {index} has {frontier:?} at {location} of scope {scope}, where {time} is outstanding"
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether nothing is on its way, and no worker says anything before an operator does something.
    pub(in crate::explore) fn is_quiet(&self, next: &[Step]) -> bool {
        self.links.is_empty()
            && self.pots.is_empty()
            && !next.iter().any(|(step, _)| step.starts_with(SAYS))
    }

    /// In a quiet state, every frontier is what follows from what is outstanding.
    pub(in crate::explore) fn check_exact(&self, model: &Model) -> Result<(), (Wrong, String)> {
        let ([scope], None) = (&model.scopes[..], model.nested) else {
            return Ok(());
        };
        let mut exact = scope.graph.build().expect("a sound graph");
        for ((_, location), time) in self.outstanding() {
            exact.update(*location, time.clone(), 1);
        }
        exact.propagate();
        for (index, worker) in self.workers.iter().enumerate() {
            for location in scope.locations() {
                let frontier = sorted(worker.views[0].tracker().frontier(location));
                let expected = sorted(exact.frontier(location));
                if frontier != expected {
                    return Err((
                        Wrong::Inexact,
                        format!(
                            "worker {index} has {frontier:?} at {location} instead of {expected:?}"
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// In a final state, nothing is held back and nothing is counted.
    pub(in crate::explore) fn check_final(&self) -> Result<(), (Wrong, String)> {
        for (index, worker) in self.workers.iter().enumerate() {
            for (scope, view) in worker.views.iter().enumerate() {
                if view.has_local() || view.has_pending() || view.tracker().tracking_anything() {
                    let detail = format!("worker {index} still counts something in scope {scope}");
                    return Err((Wrong::Stuck, detail));
                }
            }
        }
        Ok(())
    }
}
