//! Passing a stream on unchanged, perhaps to other workers.

use crate::build::stream::Stream;
use crate::error::{BoxError, Error};
use crate::payload::Payload;
use crate::run::pact::Pact;
use crate::run::port::{InputPort, OutputPort, SendError};

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
        builder.stateless();
        builder.build(move || {
            pass_some(&input, &output, AT_ONCE)?;
            Ok(false)
        });
        Ok(stream)
    }
}

/// Bytes after which a forwarding operator lets its reader take them first.
///
/// Batches that wait for another worker are counted, and press sources; batches that wait between operators of one
/// worker are not. An exchange that took all batches at once would make space for as many again, while a slow
/// operator behind it has just begun.
const AT_ONCE: usize = 1 << 20;

/// Sends everything that waits at an input to an output.
pub(crate) fn pass_on<P: Payload>(
    input: &InputPort<P>,
    output: &OutputPort<P>,
) -> Result<(), BoxError> {
    pass_some(input, output, usize::MAX)
}

/// Sends batches that wait at an input to an output, up to a number of bytes. The rest is for the next run.
fn pass_some<P: Payload>(
    input: &InputPort<P>,
    output: &OutputPort<P>,
    most: usize,
) -> Result<(), BoxError> {
    let mut bytes = 0;
    while bytes < most
        && let Some((capability, data)) = input.next()?
    {
        bytes += data.footprint();
        output
            .send(&capability, data)
            .map_err(SendError::into_cause)?;
    }
    Ok(())
}
