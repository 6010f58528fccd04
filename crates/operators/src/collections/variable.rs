//! Loop variables of collections: a collection that is defined later, by the records that enter the loop
//! again.
//!
//! Owns the end of a loop, while it is open, and the operator that closes it.
//!
//! Invariant: each update comes round at the time that follows its own; the loop ends when none is left, or after a number of turns.
//!
//! Cost: updates of one time are passed on; updates of several are rewritten with their times.

use pointstamp_engine::error::{BuildError, Error as EngineError};
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::scope::Scope;
use pointstamp_order::{PathSummary, Summary};

use super::updates::Updates;
use crate::Error;
use crate::batch::Batch;
use crate::typed::{Input, Output, Typed};

/// The end of a loop that is still open.
pub struct Variable {
    builder: OperatorBuilder<Batch>,
    output: Output<Updates>,
    summary: Summary,
    /// The number of turns; nothing where the loop ends when nothing changes.
    turns: Option<u64>,
}

impl Variable {
    /// Adds a collection that [`connect`](Self::connect) defines; `missing` is the error's text where it is never called.
    ///
    /// # Errors
    ///
    /// Errors of building an operator.
    pub fn new(
        scope: &Scope<Batch>,
        summary: Summary,
        missing: String,
    ) -> Result<(Self, Typed<Updates>), Error> {
        let builder = scope.operator("variable")?;
        if scope.parent().is_none() {
            builder.retains_forever(); // its turns are times of the whole dataflow
        }
        let (output, stream) = Output::new(&builder)?;
        builder.require(BuildError::Missing(missing));
        let variable = Variable {
            builder,
            output,
            summary,
            turns: None,
        };
        Ok((variable, stream))
    }

    /// Ends the loop after so many turns, at the latest: updates of later turns are dropped.
    #[must_use]
    pub fn with_turns(self, turns: Option<u64>) -> Self {
        Variable { turns, ..self }
    }

    /// Checks that a stream can define the variable, and returns the input for it.
    ///
    /// # Errors
    ///
    /// Errors of building an operator, for example for a stream of another scope.
    pub fn input(&self, stream: &Typed<Updates>) -> Result<Input<Updates>, Error> {
        Ok(Input::new(&self.builder, stream, Pact::Pipeline)?)
    }

    /// Closes the loop: the updates of the input come round at the times that follow theirs.
    ///
    /// # Errors
    ///
    /// Errors of building an operator. The operator fails with `TimeOverflow` for an update after the last time of a loop.
    pub fn connect(self, input: Input<Updates>) -> Result<(), Error> {
        let Variable {
            builder,
            output,
            summary,
            turns,
        } = self;
        builder.set_summary(0, 0, vec![summary.clone()])?;
        builder.fulfil();
        builder.stateless(); // the batches at its input are the engine's
        builder.pauses(true); // one turn of the loop drains, and not its fixed point
        builder.build(move || {
            while let Some((capability, updates)) = input.next()? {
                let passed = |time| EngineError::TimeOverflow {
                    time,
                    summary: summary.clone(),
                };
                let message = capability.time().clone();
                let time = summary.results_in(&message);
                let later = capability.delayed(&time.ok_or_else(|| passed(message.clone()))?, 0)?;
                let mut updates = updates.followed(&summary, &message).map_err(passed)?;
                if let Some(turns) = turns {
                    updates = updates.before_turn(turns, later.time())?;
                }
                if !updates.is_empty() {
                    output.send(&later, updates)?;
                }
            }
            Ok(false)
        });
        Ok(())
    }
}
