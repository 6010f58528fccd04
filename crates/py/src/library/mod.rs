//! Operators of the library whose work per record is done in Rust.
//!
//! Each file holds one operator as a function of a stream, which `pointstamp.Stream`'s method of that name
//! calls. An operator attaches once for all the batches that wait, and reads the frontier only if what it holds
//! waits for one.

pub(crate) mod delay;

use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::{InputPort, OutputPort};
use pointstamp_engine::stream::Stream as EngineStream;
use pyo3::prelude::*;

use crate::batch::Batch;
use crate::errors::IntoException;
use crate::stream::Stream;

/// An operator with one input and one output, before its logic.
struct Unary {
    builder: OperatorBuilder<Batch>,
    input: InputPort<Batch>,
    output: OutputPort<Batch>,
    result: EngineStream<Batch>,
}

impl Unary {
    fn new(stream: &EngineStream<Batch>, name: &str, pact: Pact<Batch>) -> PyResult<Self> {
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

    /// Ends the construction with logic that runs while messages wait; its stream, at home with `stream`.
    fn on_messages(
        self,
        stream: &Stream,
        mut logic: impl FnMut(&InputPort<Batch>, &OutputPort<Batch>) -> Result<(), BoxError> + 'static,
    ) -> Stream {
        let (input, output) = (self.input, self.output);
        self.builder.build(move || {
            if input.has_messages() {
                logic(&input, &output)?;
            }
            Ok(false)
        });
        Stream::plain(stream.home(), self.result)
    }
}
