//! The arrangement of another dataflow, in a dataflow of its own operators.
//!
//! The operator sends the batches of the arrangement here, first the existing ones, and holds capabilities for
//! incomplete times.
//!
//! Owns the capabilities, and the queue of the arrangement's changes.
//!
//! Invariant: the capabilities are at the frontier of the arrangement as far as the queue was worked off.
//!
//! Cost: constant for each batch. Nothing is copied; both dataflows read one trace.

use std::cell::RefCell;
use std::rc::Rc;

use pointstamp_arrange::Trace as Reader;
use pointstamp_engine::capability::Capability;
use pointstamp_engine::cut::State;
use pointstamp_engine::error::{BoxError, BuildError, Error as EngineError};
use pointstamp_engine::scope::Scope;
use pointstamp_order::Point;

use super::arrange::{Arranged, Form};
use super::follow::{Follower, Followers, Instruction};
use super::sealed::Sealed;
use super::staged::delayed;
use super::time::ScopeTime;
use crate::Error;
use crate::batch::Batch;
use crate::typed::{Output, Typed};
use pointstamp_rows::Cells;

/// The arrangement that a trace reads, in a scope of another dataflow.
pub(crate) fn import<T: ScopeTime>(
    scope: &Scope<Batch>,
    mut trace: Reader<Cells, Cells, T>,
    followers: &Followers<T>,
    form: Form,
) -> Result<Arranged<T>, Error> {
    let builder = scope.operator("import")?;
    if followers.are_lost() && !trace.upper().is_empty() && !builder.has_ended() {
        return Err(Error::TraceDropped);
    }
    let (output, stream, capability) = builder.new_held_output()?;
    let (output, stream) = (Output::assume(output), Typed::assume(stream));
    builder.start();
    builder.pauses(false); // it follows a change of an arrangement, as a message does
    builder.keeps(|| Ok(State::Parts(Vec::new()))); // the arrangement has all but the times that are held
    let follower = Follower::new(builder.activator());
    let restored = builder.restored();
    {
        let mut instructions = follower.instructions.borrow_mut();
        // Operators that are made later, when more may have come, follow from here, too.
        if restored.is_some() {
            for sealed in trace.follow_restored() {
                let times = sealed.batch.times().iter().cloned();
                let least = times.reduce(|a, b| a.meet(&b));
                let least = least.map_or_else(|| Point::minimum(scope.dims()), |time| time.point());
                instructions.push_back(Instruction::Batch(least, sealed));
            }
        } else {
            let least = Point::minimum(scope.dims());
            let there = trace.follow().into_iter();
            instructions.extend(there.map(|sealed| Instruction::Batch(least.clone(), sealed)));
        }
        instructions.push_back(Instruction::Upper(
            trace.upper().iter().map(T::point).collect(),
        ));
    }
    followers.join(&follower);
    let origin = trace.origin();
    let template = Rc::new(RefCell::new(Some(trace)));
    let arranged = Arranged::new(
        stream,
        form,
        &template,
        restored.is_some() || builder.has_ended(),
        followers.clone(), // importers in turn follow the arrangement itself: this operator may lag behind
        origin,
        None,
    );
    let is_restored = restored.is_some();
    let activator = builder.activator();
    let mut capabilities = vec![capability];
    capabilities.extend(restored.into_iter().flat_map(|restored| restored.held));
    builder.build(move || {
        if !is_restored || !activator.awaits_dataflows() {
            template.borrow_mut().take();
        }
        run(&follower, &mut capabilities, &output)?;
        Ok(false)
    });
    Ok(arranged)
}

fn run<T: ScopeTime>(
    follower: &Follower<T>,
    capabilities: &mut Vec<Capability>,
    output: &Output<Sealed>,
) -> Result<(), BoxError> {
    loop {
        let Some(instruction) = follower.instructions.borrow_mut().pop_front() else {
            return Ok(());
        };
        match instruction {
            Instruction::Batch(time, sealed) => {
                let capability = delayed(capabilities, &time)?;
                output.send(&capability, T::seal(sealed))?;
            }
            Instruction::Upper(upper) => {
                let kept = upper.iter().map(|time| delayed(capabilities, time));
                *capabilities = kept.collect::<Result<_, _>>()?;
            }
            Instruction::Lost if capabilities.is_empty() => {}
            Instruction::Lost => {
                return Err(EngineError::from(BuildError::TraceDropped).into());
            }
        }
    }
}
