//! Merging many streams into one.

use crate::build::scope::Scope;
use crate::build::stream::Stream;
use crate::error::Error;
use crate::operators::forward::pass_on;
use crate::payload::Payload;
use crate::run::pact::Pact;

/// One stream with the records of all of `streams`. A batch costs the same however many streams there are.
///
/// # Errors
///
/// [`Error::Build`] when a stream is of another scope.
pub fn concatenate<P: Payload>(
    scope: &Scope<P>,
    streams: impl IntoIterator<Item = Stream<P>>,
) -> Result<Stream<P>, Error> {
    let builder = scope.operator("concatenate")?;
    let inputs = streams
        .into_iter()
        .map(|stream| builder.new_input(&stream, Pact::Pipeline))
        .collect::<Result<Vec<_>, _>>()?;
    let (output, stream) = builder.new_output()?;
    let ready = builder.ready_inputs();
    builder.stateless();
    builder.build(move || {
        while let Some(input) = ready.next(&inputs) {
            pass_on(input, &output)?;
        }
        Ok(false)
    });
    Ok(stream)
}
