//! Operators with one input and one output.

use pointstamp_engine::error::{BoxError, Error as EngineError};
use pointstamp_engine::operator::{Notify, OperatorBuilder};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::retention::Retention;
use pointstamp_order::Point;

use crate::batch::{Batch, Content};
use crate::typed::{Input, Output, Typed};

/// An operator with one input and one output, before its logic is given.
pub struct Unary<I, O> {
    builder: OperatorBuilder<Batch>,
    input: Input<I>,
    output: Output<O>,
    result: Typed<O>,
}

impl<I: Content, O: Content> Unary<I, O> {
    /// Adds an operator that reads a stream.
    ///
    /// # Errors
    ///
    /// Errors of building an operator: a scope that is closed, or a stream of another scope.
    pub fn new(stream: &Typed<I>, name: &str, pact: Pact<Batch>) -> Result<Self, EngineError> {
        let builder = stream.scope().operator(name)?;
        let input = Input::new(&builder, stream, pact)?;
        let (output, result) = Output::new(&builder)?;
        Ok(Unary {
            builder,
            input,
            output,
            result,
        })
    }

    /// Returns the operator's builder.
    pub fn builder(&self) -> &OperatorBuilder<Batch> {
        &self.builder
    }

    /// Returns the number of workers.
    pub fn peers(&self) -> usize {
        self.builder.scope().worker().peers()
    }

    /// Ends the construction with logic that runs while messages wait, and keeps nothing.
    pub fn on_messages(self, mut logic: impl Logic<I, O>) -> Typed<O> {
        self.builder.stateless();
        let (input, output) = (self.input, self.output);
        self.builder.build(move || {
            if input.port().has_messages() {
                logic(&input, &output)?;
            }
            Ok(false)
        });
        self.result
    }

    /// Builds the operator as [`on_messages`](Self::on_messages) does, for logic that sends at later times
    /// than it receives.
    ///
    /// # Errors
    ///
    /// Errors of [`retention`](Self::retention).
    pub fn on_messages_moved(self, mut logic: impl Logic<I, O>) -> Result<Typed<O>, EngineError> {
        let Some(retention) = self.retention()? else {
            return Ok(self.on_messages(logic));
        };
        self.builder.stateless();
        Ok(self.on_messages_and_frontier(move |input, output| {
            // Records still to be read are not before the frontier; earlier ones have been sent.
            let port = input.port();
            let needed = port.frontier().frontier().first().and_then(Point::last);
            retention.settle(output.port().latest(), needed);
            if port.has_messages() {
                logic(input, output)?;
            }
            Ok(())
        }))
    }

    /// Returns the retention by which the operator reports the records that it still needs, if a source
    /// acknowledges.
    ///
    /// # Errors
    ///
    /// Errors of [`OperatorBuilder::retention`].
    pub fn retention(&self) -> Result<Option<Retention>, EngineError> {
        self.builder.retention(&[self.result.stream()])
    }

    /// Builds the operator as [`on_messages`](Self::on_messages) does; the logic also runs when the input's
    /// frontier has changed.
    pub fn on_messages_and_frontier(self, logic: impl Logic<I, O>) -> Typed<O> {
        self.notified(Notify::Always, logic)
    }

    /// Builds the operator as [`on_messages_and_frontier`](Self::on_messages_and_frontier) does, for logic
    /// that holds a capability for everything that it delays: without a capability it is not run for a
    /// frontier.
    pub fn on_messages_and_closing(self, logic: impl Logic<I, O>) -> Typed<O> {
        self.notified(Notify::WhileHolding, logic)
    }

    fn notified(self, when: Notify, mut logic: impl Logic<I, O>) -> Typed<O> {
        let (input, output) = (self.input, self.output);
        self.builder.notify_of(input.port().port(), when);
        self.builder.build(move || {
            logic(&input, &output)?;
            Ok(false)
        });
        self.result
    }
}

/// The logic of an operator with one input and one output, called in each activation.
pub trait Logic<I, O>: FnMut(&Input<I>, &Output<O>) -> Result<(), BoxError> + 'static {}

impl<I, O, F> Logic<I, O> for F where
    F: FnMut(&Input<I>, &Output<O>) -> Result<(), BoxError> + 'static
{
}
