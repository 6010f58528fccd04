//! Loops: a stream that is used before it is defined.

use pointstamp_order::{PathSummary, Summary};

use crate::build::operator::OperatorBuilder;
use crate::build::scope::Scope;
use crate::build::stream::Stream;
use crate::error::{BuildError, Error};
use crate::payload::Payload;
use crate::run::pact::Pact;
use crate::run::port::{OutputPort, SendError};

/// The end of a loop that is still open: connect a stream to it.
pub struct LoopHandle<P: Payload> {
    builder: OperatorBuilder<P>,
    output: OutputPort<P>,
    summary: Summary,
}

impl<P: Payload> Scope<P> {
    /// Creates a stream that is defined later, by the handle, from a stream whose times `summary` advances. A
    /// time that would pass the range of its coordinates ends the computation, with [`Error::TimeOverflow`].
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the scope is no longer being built, or the summary is not of its coordinates.
    pub fn feedback(&self, summary: Summary) -> Result<(LoopHandle<P>, Stream<P>), Error> {
        if summary.dims() != self.dims() || summary.keep() != self.dims() {
            return Err(BuildError::LoopSummary {
                scope: self.name().to_owned(),
                expected: self.dims(),
                got: summary.dims(),
            }
            .into());
        }
        let builder = self.operator("feedback")?;
        let (output, stream) = builder.new_output()?;
        builder.require(BuildError::NeverConnected(self.path()));
        Ok((
            LoopHandle {
                builder,
                output,
                summary,
            },
            stream,
        ))
    }
}

impl<P: Payload> LoopHandle<P> {
    /// Declares that records in the loop may be needed for as long as the loop runs.
    pub fn retains_forever(&self) {
        self.builder.retains_forever();
    }

    /// Closes the loop: the records of `stream` enter it again.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when `stream` is of another scope.
    pub fn connect(self, stream: &Stream<P>) -> Result<(), Error> {
        let LoopHandle {
            builder,
            output,
            summary,
        } = self;
        let input = builder.new_input(stream, Pact::Pipeline)?;
        builder.set_summary(0, 0, vec![summary.clone()])?;
        builder.fulfil();
        builder.stateless(); // the batches at its input are the engine's
        builder.pauses(true); // one turn of the loop drains, and not its fixed point
        builder.build(move || {
            while let Some((capability, data)) = input.next()? {
                let held = capability.time();
                let time = summary.results_in(held).ok_or_else(|| {
                    let (time, summary) = (held.clone(), summary.clone());
                    Error::TimeOverflow { time, summary }
                })?;
                let capability = capability.delayed(&time, 0)?;
                output
                    .send(&capability, data)
                    .map_err(SendError::into_cause)?;
            }
            Ok(false)
        });
        Ok(())
    }
}
