//! The arrangement of another dataflow, in a dataflow of its own operators.
//!
//! The operator sends the batches of the arrangement here, first those that are there already, and holds capabilities for
//! what is not complete. Nothing is copied; both dataflows read one trace.

use std::cell::RefCell;
use std::rc::Rc;

use pointstamp_arrange::Trace as Reader;
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::{BoxError, BuildError, Error};
use pointstamp_engine::port::{OutputPort, SendError};
use pointstamp_engine::scope::Scope as EngineScope;
use pointstamp_order::Point;
use pyo3::prelude::*;

use super::arrange::Arranged;
use super::follow::{Follower, Followers, Instruction};
use super::reducers::Form;
use super::sealed::SealedBatch;
use super::staged::delayed;
use super::time::ScopeTime;
use crate::batch::Batch;
use crate::errors::{GraphError, IntoException};
use pointstamp_rows::Cells;

/// The arrangement that a trace reads, in a scope of another dataflow.
pub(crate) fn import<T: ScopeTime>(
    scope: &EngineScope<Batch>,
    mut trace: Reader<Cells, Cells, T>,
    followers: &Followers<T>,
) -> PyResult<Arranged<T>> {
    let refused = IntoException::into_exception;
    if followers.are_lost() && !trace.upper().is_empty() {
        return Err(GraphError::new_err(
            "the dataflow of this trace was dropped before it was complete, so that nothing completes it: import the trace \
             before, and drop the dataflow that imports it first; or build it again, and import the trace of that",
        ));
    }
    let builder = scope.operator("import").map_err(refused)?;
    let (output, stream, capability) = builder.new_held_output().map_err(refused)?;
    builder.start();
    let follower = Follower::new(builder.activator());
    let least = Point::minimum(scope.dims());
    {
        let mut instructions = follower.instructions.borrow_mut();
        let there = trace.follow().into_iter();
        // Operators that are made later, when more may have come, follow from here, too.
        instructions.extend(there.map(|sealed| Instruction::Batch(least.clone(), sealed)));
        instructions.push_back(Instruction::Upper(
            trace.upper().iter().map(T::point).collect(),
        ));
    }
    followers.join(&follower);
    let origin = trace.origin();
    let template = Rc::new(RefCell::new(Some(trace)));
    let arranged = Arranged::new(
        stream,
        Form::Pair,
        Rc::clone(&template),
        followers.clone(), // those who import it in turn follow the arrangement itself: this operator may lag behind
        origin,
    );
    let mut capabilities = vec![capability];
    builder.build(move || {
        template.borrow_mut().take();
        run(&follower, &mut capabilities, &output)?;
        Ok(false)
    });
    Ok(arranged)
}

fn run<T: ScopeTime>(
    follower: &Follower<T>,
    capabilities: &mut Vec<Capability>,
    output: &OutputPort<Batch>,
) -> Result<(), BoxError> {
    loop {
        let Some(instruction) = follower.instructions.borrow_mut().pop_front() else {
            return Ok(());
        };
        match instruction {
            Instruction::Batch(time, sealed) => {
                let capability = delayed(capabilities, &time)?;
                output
                    .send(&capability, Batch::Sealed(SealedBatch::new(sealed)))
                    .map_err(SendError::into_cause)?;
            }
            Instruction::Upper(upper) => {
                let kept = upper.iter().map(|time| delayed(capabilities, time));
                *capabilities = kept.collect::<Result<_, _>>()?;
            }
            Instruction::Lost if capabilities.is_empty() => {}
            Instruction::Lost => {
                return Err(Error::from(BuildError::TraceDropped).into());
            }
        }
    }
}
