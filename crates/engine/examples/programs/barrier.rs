//! The barrier that benches measure: no records, progress alone.

use pointstamp_engine::error::Error;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::worker::Worker;
use pointstamp_order::{Point, Summary};

/// A loop of one operator that holds a capability for the next round until the frontier of the loop has reached it.
pub(crate) fn barrier(worker: &Worker<Vec<u64>>, rounds: u64) -> Result<(), Error> {
    worker.dataflow("barrier", 1, |scope| {
        let (handle, cycle) = scope.feedback(Summary::step(1, 1))?;
        let builder = scope.operator("barrier")?;
        let input = builder.new_input(&cycle, Pact::Pipeline)?;
        let (_output, stream, capability) = builder.new_held_output()?;
        let mut held = Some(capability);
        builder.notify();
        builder.start();
        builder.build(move || {
            while input.next()?.is_some() {}
            while let Some(capability) = &mut held {
                if input.frontier().less_equal(capability.time()) {
                    break;
                }
                let next = capability.time().get(0).unwrap_or(0) + 1;
                if next < rounds {
                    capability.downgrade(&Point::new(&[next]))?;
                } else {
                    held = None;
                }
            }
            Ok(false)
        });
        handle.connect(&stream)
    })
}
