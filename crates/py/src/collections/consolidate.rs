//! Consolidation: each time's updates added up, when it is complete.

use std::collections::VecDeque;

use pointstamp_arrange::Rows;
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::OutputPort;
use pyo3::prelude::*;

use super::route::{By, exchange};
use super::staged::Run;
use super::staging::Staging;
use super::time::{ScopeTime, by_dims};
use super::updates::Builder;
use super::{give, send};
use crate::batch::Batch;
use crate::errors::IntoException;
use crate::stream::Stream;

/// The same updates, each time's added up, when it is complete.
#[pyfunction]
pub(crate) fn consolidate(stream: &Stream) -> PyResult<Stream> {
    let refused = IntoException::into_exception;
    let engine = stream.engine()?;
    let (scope, name) = (engine.scope(), "consolidate");
    let builder = scope.operator(name).map_err(refused)?;
    let pact: Pact<Batch> = exchange(By::Record, name);
    let input = builder.new_input(&engine, pact).map_err(refused)?;
    let (output, result) = builder.new_output().map_err(refused)?;
    builder.notify();
    let activator = builder.activator();
    by_dims!(scope.dims(), T => {
        let mut staging = Staging::<T>::new(By::Record, scope.dims(), name);
        let mut waiting = Waiting::<T>::default();
        builder.build(move || {
            let mut fuel = staging.receive(&input)?;
            waiting.send(&mut fuel, &output)?;
            while waiting.is_empty()
                && let Some((_, parts)) = staging.seal(&input, &mut fuel)?
            {
                waiting.parts.extend(parts.into_iter().map(|(capability, run)| (capability, run, 0)));
                waiting.send(&mut fuel, &output)?;
            }
            if staging.has_more(&input) || !waiting.is_empty() {
                activator.activate();
            }
            Ok(false)
        });
    });
    Ok(Stream::plain(stream.home(), result))
}

/// Sorted updates on their way out: each part with the right to send it, and the next of its records.
struct Waiting<T> {
    parts: VecDeque<(Capability, Run<T>, usize)>,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Waiting {
            parts: VecDeque::new(),
        }
    }
}

impl<T: ScopeTime> Waiting<T> {
    fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Sends updates until the fuel is used up.
    fn send(&mut self, fuel: &mut usize, output: &OutputPort<Batch>) -> Result<(), BoxError> {
        let mut builder = Builder::default();
        while let Some((capability, run, next)) = self.parts.front_mut() {
            let (keys, count) = (run.keys(), run.keys().len());
            while *next < count && *fuel > 0 {
                for val in run.vals_of(*next) {
                    for (time, diff) in run.updates_of(val) {
                        give(
                            &mut builder,
                            keys.get(*next),
                            &time.point(),
                            diff,
                            capability,
                            output,
                        )?;
                        *fuel = fuel.saturating_sub(1);
                    }
                }
                *next += 1;
            }
            send(&mut builder, capability, output)?;
            if *next < count {
                break;
            }
            self.parts.pop_front();
        }
        Ok(())
    }
}
