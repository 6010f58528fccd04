//! The invariants of each state, of quiet ones, and of final ones.

use pointstamp_order::{MutableAntichain, Point};
use pointstamp_progress::{Location, Port, Tracker};

use super::{SAYS, State, Step, sorted};
use crate::explore::Wrong;
use crate::explore::scenario::{Model, Scope};

impl State {
    /// Checks that no frontier has passed an outstanding pointstamp.
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
            && self.accumulators.is_empty()
            && self.relays.is_empty()
            && !next.iter().any(|(step, _)| step.starts_with(SAYS))
    }

    /// Checks, in a quiet state, that every frontier follows from the outstanding pointstamps.
    pub(in crate::explore) fn check_exact(&self, model: &Model) -> Result<(), (Wrong, String)> {
        let exact = self.exact(model);
        for (index, worker) in self.workers.iter().enumerate() {
            for (number, scope) in model.scopes.iter().enumerate() {
                for location in scope.locations() {
                    let frontier = sorted(worker.views[number].tracker().frontier(location));
                    let expected = sorted(exact[number].frontier(location));
                    if frontier != expected {
                        return Err((
                            Wrong::Inexact,
                            format!(
                                "worker {index} has {frontier:?} at {location} of scope {number} instead of {expected:?}"
                            ),
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// The exact trackers of each scope: the nested one gives the times that its outputs hold, and the outer
    /// one the times that may enter.
    fn exact(&self, model: &Model) -> Vec<Tracker<Point>> {
        let build = |scope: &Scope| scope.graph.build().expect("a sound graph");
        let mut exact: Vec<_> = model.scopes.iter().map(build).collect();
        for ((scope, location), time) in self.outstanding() {
            exact[*scope].update(*location, time.clone(), 1);
        }
        if let ([outer, inner], Some(node)) = (&mut exact[..], model.nested) {
            inner.propagate();
            let mut held: Vec<MutableAntichain<Point>> = Vec::new();
            for ((output, time), diff) in inner.drain_boundary_changes() {
                held.resize_with(held.len().max(output + 1), MutableAntichain::new);
                held[output].update(time.truncate(1), diff).for_each(drop);
            }
            for (output, held) in held.iter().enumerate() {
                for time in held.frontier() {
                    outer.update(Location::source(node, output), time.clone(), 1);
                }
            }
            outer.propagate();
            for location in model.scopes[0].locations() {
                if let Port::Target(port) = location.port
                    && location.node == node
                {
                    for time in outer.frontier(location) {
                        inner.update(Location::source(0, port), time.extend(&[0]), 1);
                    }
                }
            }
        }
        exact.iter_mut().for_each(Tracker::propagate);
        exact
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
