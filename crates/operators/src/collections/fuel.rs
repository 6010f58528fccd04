//! The work that an operator of collections does in one activation before others get their turn.
//!
//! Owns one number for the whole process, and the [`Allowance`] that each operator derives from it: an operator that
//! falls behind its input does more, so that its delay does not grow with every step; one large piece of work is done
//! in the usual instalments, so that it does not occupy the worker.
//!
//! Invariant: results do not depend on the number. Operators read it when they are activated; tests set it to a few updates,
//! to stop the work at every place where it can be stopped.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use pointstamp_engine::error::BoxError;
use pointstamp_engine::wakeups::Activator;

use super::updates::MAX_UPDATES;

/// The number of updates that an activation receives, and the number that it examines.
static FUEL: AtomicUsize = AtomicUsize::new(1 << 17);

/// The maximum work of an activation, as a multiple of the usual.
pub(crate) const MOST: usize = 16;

/// The updates of one activation.
pub(crate) fn fuel() -> usize {
    FUEL.load(Ordering::Relaxed)
}

/// The updates of one instalment, which is one message, where an activation works on several.
pub(crate) fn instalment() -> usize {
    fuel().min(MAX_UPDATES)
}

/// The work of an operator in one activation: the usual; and twice the last one's, up to [`MOST`] times the
/// usual, where that was not enough and more input has come since.
pub(crate) struct Allowance {
    times: usize,
    /// Something was left when the activation before ended.
    left: bool,
}

impl Default for Allowance {
    fn default() -> Self {
        Allowance {
            times: 1,
            left: false,
        }
    }
}

impl Allowance {
    /// Works on the instalments of one activation; `came` is whether input has come. Activates the operator
    /// again where work is left. An instalment returns whether more waits.
    pub(crate) fn spend(
        &mut self,
        came: bool,
        activator: &Activator,
        mut instalment: impl FnMut() -> Result<bool, BoxError>,
    ) -> Result<(), BoxError> {
        self.begin(came);
        let mut left = true;
        for _ in 0..self.instalments() {
            left = instalment()?;
            if !left {
                break;
            }
        }
        self.end(left);
        if left {
            activator.resume();
        }
        Ok(())
    }

    /// An activation begins, for which more has come or nothing has.
    pub(crate) fn begin(&mut self, came: bool) {
        if !self.left {
            self.times = 1;
        } else if came {
            self.times = (2 * self.times).min(MOST);
        }
    }

    /// It ends, with work left or without.
    pub(crate) fn end(&mut self, left: bool) {
        self.left = left;
    }

    /// The updates of the activation.
    pub(crate) fn fuel(&self) -> usize {
        fuel().saturating_mul(self.times)
    }

    /// The instalments of the activation.
    fn instalments(&self) -> usize {
        fuel().div_ceil(MAX_UPDATES).saturating_mul(self.times)
    }
}

/// Sets the number of updates that an activation works on, in all workers of the process, and returns the number before:
/// for tests.
pub fn set_fuel(updates: NonZeroUsize) -> usize {
    FUEL.swap(updates.get(), Ordering::Relaxed)
}
