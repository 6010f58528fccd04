//! Operators of the library whose work per record is done in Rust.
//!
//! Each file holds one operator as a function of a stream, which `pointstamp.Stream`'s method of that name
//! calls. An operator attaches once for all the batches that wait, and reads the frontier only if what it holds
//! waits for one.

pub(crate) mod count;
pub(crate) mod counts;
pub(crate) mod delay;
pub(crate) mod distinct;
pub(crate) mod event_time;
pub(crate) mod per_time;
pub(crate) mod running;
pub(crate) mod sketch;

use std::sync::Arc;

use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::{Notify, OperatorBuilder};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::{InputPort, OutputPort};
use pointstamp_engine::retention::Retention;
use pointstamp_engine::stream::Stream as EngineStream;
use pointstamp_order::Point;
use pyo3::prelude::*;

use crate::batch::Batch;
use crate::bound::Home;
use crate::errors::IntoException;
use crate::stream::Stream;

/// An operator with one input and one output, before its logic.
pub(crate) struct Unary {
    builder: OperatorBuilder<Batch>,
    input: InputPort<Batch>,
    output: OutputPort<Batch>,
    result: EngineStream<Batch>,
}

impl Unary {
    pub(crate) fn new(
        stream: &EngineStream<Batch>,
        name: &str,
        pact: Pact<Batch>,
    ) -> PyResult<Self> {
        let refused = IntoException::into_exception;
        let builder = stream.scope().operator(name).map_err(refused)?;
        let input = builder.new_input(stream, pact).map_err(refused)?;
        let (output, result) = builder.new_output().map_err(refused)?;
        Ok(Unary {
            builder,
            input,
            output,
            result,
        })
    }

    /// How many workers there are.
    fn peers(&self) -> usize {
        self.builder.scope().worker().peers()
    }

    /// Ends the construction with logic that runs while messages wait; its stream, at home with `stream`.
    pub(crate) fn on_messages(self, stream: &Stream, logic: impl Logic) -> Stream {
        self.on_messages_at(stream.home(), logic)
    }

    /// The same; the stream's home is given.
    pub(crate) fn on_messages_at(self, home: &Arc<Home>, mut logic: impl Logic) -> Stream {
        let (input, output) = (self.input, self.output);
        self.builder.build(move || {
            if input.has_messages() {
                logic(&input, &output)?;
            }
            Ok(false)
        });
        Stream::plain(home, self.result)
    }

    /// As [`on_messages`](Self::on_messages), of logic that keeps nothing and sends at later times than it receives.
    pub(crate) fn on_messages_moved(
        self,
        stream: &Stream,
        mut logic: impl Logic,
    ) -> PyResult<Stream> {
        let Some(retention) = self.retention()? else {
            return Ok(self.on_messages(stream, logic));
        };
        Ok(self.on_messages_and_frontier(stream, move |input, output| {
            // What is still to be read is not before the frontier, and what came before it has been sent.
            let needed = input.frontier().frontier().first().and_then(Point::last);
            retention.settle(output.latest(), needed);
            if input.has_messages() {
                logic(input, output)?;
            }
            Ok(())
        }))
    }

    /// What the operator says of the records that it still needs; none where nobody wants to know.
    pub(crate) fn retention(&self) -> PyResult<Option<Retention>> {
        let made = self.builder.retention(&[&self.result]);
        made.map_err(IntoException::into_exception)
    }

    /// Says that the operator may need any record for as long as it runs.
    pub(crate) fn retains_forever(&self) {
        self.builder.retains_forever();
    }

    /// As [`on_messages`](Self::on_messages), also when the input's frontier has changed.
    pub(crate) fn on_messages_and_frontier(self, stream: &Stream, logic: impl Logic) -> Stream {
        self.notified(Notify::Always, stream, logic)
    }

    /// The same, for logic that holds a capability for all that it waits with: without one it is left alone.
    pub(crate) fn on_messages_and_closing(self, stream: &Stream, logic: impl Logic) -> Stream {
        self.notified(Notify::WhileHolding, stream, logic)
    }

    fn notified(self, when: Notify, stream: &Stream, mut logic: impl Logic) -> Stream {
        let (input, output) = (self.input, self.output);
        self.builder.notify_of(input.port(), when);
        self.builder.build(move || {
            logic(&input, &output)?;
            Ok(false)
        });
        Stream::plain(stream.home(), self.result)
    }
}

/// What an operator does when it runs.
pub(crate) trait Logic:
    FnMut(&InputPort<Batch>, &OutputPort<Batch>) -> Result<(), BoxError> + 'static
{
}

impl<F> Logic for F where
    F: FnMut(&InputPort<Batch>, &OutputPort<Batch>) -> Result<(), BoxError> + 'static
{
}
