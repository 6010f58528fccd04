//! The hooks of the program around the engine in the worker's loop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::error::{BoxError, Error};
use crate::observe::OperatorId;

/// The hooks of a program in a worker's loop: an interpreter, for example, that sends gathered input before
/// each step, is released while the engine works or sleeps, and may be interrupted. Every method has a
/// default, for programs that need no hooks.
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

    /// Called instead of [`before_step`](Self::before_step) while the worker takes part in a checkpoint: `main`
    /// waits, and its buffered records must not be sent.
    ///
    /// # Errors
    ///
    /// As [`before_step`](Self::before_step).
    fn while_held(&self) -> Result<(), BoxError> {
        Ok(())
    }

    /// Called when `main` has returned, before its open inputs are closed: everything gathered must be sent
    /// when this returns.
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

    /// The maximum time that a worker sleeps before [`interrupted`](Self::interrupted) is called; `None` has
    /// no limit.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// Called after each sleep that nothing else has ended. The next one ends by itself when the worker is
    /// `due`, if it is: a timer of an operator, or the time that the program gave.
    ///
    /// # Errors
    ///
    /// The interruption, if there was one; it is returned as [`Error::Host`].
    fn interrupted(&self, _due: Option<Instant>) -> Result<(), BoxError> {
        Ok(())
    }

    /// Whether the program must have its turn although there is nothing to do. Called after a sleep; a
    /// request is reported once.
    fn is_called(&self) -> bool {
        false
    }

    /// Called when the program begins an operator, or a scope, of a dataflow that it builds.
    fn begins(&self, _operator: OperatorId) {}

    /// The name that replaces an operator's name; `None` keeps it.
    fn renames(&self, _name: &str) -> Option<String> {
        None
    }

    /// The description of the operator that the program begins: its kind, and the types of its outputs. An
    /// operator of a checkpoint resumes only with an equal description. `None` gives none. Called only where
    /// checkpoints are made.
    fn describes(&self) -> Option<String> {
        None
    }

    /// Called by an operator that can say what its state takes.
    fn keeps(&self, _operator: OperatorId, _size: StateSize) {}

    /// Converts an error that ends the computation: the error that the host keeps, and the text that the
    /// other processes receive.
    fn describe_error(&self, _worker: usize, error: Error) -> (Error, String) {
        let reason = error.to_string();
        (error, reason)
    }

    /// Called once, when main and the dataflows have come to their end, however that was.
    fn ends(&self) {}
}

/// Returns the rows of an operator's state, and its bytes in memory and on disk; nothing once the operator has ended.
pub type StateSize = Arc<dyn Fn() -> Option<(usize, usize, u64)> + Send + Sync>;

/// A host that does nothing.
pub struct Plain;

impl Host for Plain {}
