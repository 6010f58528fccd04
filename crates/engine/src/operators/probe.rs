//! Watching a frontier from outside the dataflow.

use pointstamp_order::Point;

use crate::build::stream::Stream;
use crate::error::Error;
use crate::operators::forward::pass_on;
use crate::payload::Payload;
use crate::run::pact::Pact;
use crate::run::probe::Probe;

impl Probe {
    /// Attaches the probe to a stream; the result is the same stream, behind the probe.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the scope is no longer being built.
    pub fn attach<P: Payload>(&self, stream: &Stream<P>) -> Result<Stream<P>, Error> {
        let scope = stream.scope();
        let builder = scope.operator("probe")?;
        let input = builder.new_input(stream, Pact::Pipeline)?;
        let (output, behind) = builder.new_output()?;
        builder.notify();
        builder.start();
        let attached = Attached {
            place: self.place(Point::minimum(scope.dims())),
            probe: self.clone(),
        };
        builder.stateless();
        builder.build(move || {
            let Attached { probe, place } = &attached;
            probe.set(*place, input.frontier().frontier());
            pass_on(&input, &output)?;
            Ok(false)
        });
        Ok(behind)
    }
}

/// A place of a probe. When its operator goes, because the dataflow is dropped or was never installed, nothing can
/// appear there any more, and no program waits for it.
struct Attached {
    probe: Probe,
    place: usize,
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.probe.forget(self.place);
    }
}
