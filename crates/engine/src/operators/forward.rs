//! Passing a stream on unchanged, perhaps to other workers.

use crate::build::stream::Stream;
use crate::error::Error;
use crate::payload::Payload;
use crate::run::pact::Pact;
use crate::run::port::{InputPort, OutputPort};

impl<P: Payload> Stream<P> {
    /// The same records, moved between workers by `pact`.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the scope is no longer being built.
    pub fn forward(&self, name: &str, pact: Pact<P>) -> Result<Stream<P>, Error> {
        let builder = self.scope().operator(name)?;
        let input = builder.new_input(self, pact)?;
        let (output, stream) = builder.new_output()?;
        builder.build(move || {
            pass_on(&input, &output)?;
            Ok(false)
        });
        Ok(stream)
    }
}

/// Sends everything that waits at an input to an output.
pub(crate) fn pass_on<P: Payload>(
    input: &InputPort<P>,
    output: &OutputPort<P>,
) -> Result<(), crate::error::BoxError> {
    while let Some((capability, data)) = input.next()? {
        output
            .send(&capability, data)
            .map_err(crate::run::port::SendError::into_cause)?;
    }
    Ok(())
}
