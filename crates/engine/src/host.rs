//! What the program around the engine does in the worker's loop.

use std::time::{Duration, Instant};

use crate::error::{BoxError, Error};
use crate::observe::OperatorId;

/// What a worker's loop asks of the program that it runs in: an interpreter, say, that sends what its inputs have gathered
/// before each step, is let go of while the engine works or sleeps, and may be interrupted. Every method has a default, for
/// programs that need nothing of this.
///
/// All of it is called on the worker's thread, and nothing of the engine is borrowed meanwhile: a hook may use the worker.
pub trait Host {
    /// Called before each step, and before each sleep.
    ///
    /// # Errors
    ///
    /// Whatever is to end the loop; it is returned as [`Error::Host`].
    fn before_step(&self) -> Result<(), BoxError> {
        Ok(())
    }

    /// Called in the place of [`before_step`](Self::before_step) while the worker takes part in a checkpoint: `main` waits, and nothing
    /// that it gave is to be sent.
    ///
    /// # Errors
    ///
    /// As [`before_step`](Self::before_step).
    fn while_held(&self) -> Result<(), BoxError> {
        Ok(())
    }

    /// Called when `main` has returned, before what it left open is closed: all that it gave is to be on its way afterwards.
    ///
    /// # Errors
    ///
    /// As [`before_step`](Self::before_step).
    fn before_end(&self) -> Result<(), BoxError> {
        self.before_step()
    }

    /// Calls `run`, in which the engine sleeps or steps, once.
    fn apart(&self, run: &mut dyn FnMut()) {
        run();
    }

    /// For how long a worker sleeps at most before [`interrupted`](Self::interrupted) is asked; `None` is as long as it likes.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// Asked after each sleep that nothing else has ended. The next one ends by itself when the worker is `due`, if it is: a timer of
    /// an operator, or the time that the program gave.
    ///
    /// # Errors
    ///
    /// The interruption, if there was one; it is returned as [`Error::Host`].
    fn interrupted(&self, _due: Option<Instant>) -> Result<(), BoxError> {
        Ok(())
    }

    /// Whether the program is to have its turn although there is nothing to do; asked after a sleep, on its way, and answered once.
    fn is_called(&self) -> bool {
        false
    }

    /// Told that the program begins an operator, or a scope, of a dataflow that it builds.
    fn begins(&self, _operator: OperatorId) {}

    /// The name that an operator gets in the place of the one that what builds it gives it; `None` leaves it.
    fn renames(&self, _name: &str) -> Option<String> {
        None
    }

    /// What the operator is that the program begins: its kind, the types of what it sends. An operator of a checkpoint goes on only as what it
    /// was. `None` where nothing is said. Asked only where checkpoints are made.
    fn describes(&self) -> Option<String> {
        None
    }

    /// The error that ends the computation as the host wants it kept, and what the other processes are told of it.
    fn told(&self, _worker: usize, error: Error) -> (Error, String) {
        let reason = error.to_string();
        (error, reason)
    }

    /// Called once, when main and the dataflows have come to their end, however that was.
    fn ends(&self) {}
}

/// A host that does nothing.
pub struct Plain;

impl Host for Plain {}
