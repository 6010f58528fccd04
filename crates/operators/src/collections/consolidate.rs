//! Consolidation: each time's updates added up, when it is complete.
//!
//! Owns the updates that are staged, and sorted ones on their way out, each part with the right to send it.
//!
//! Invariant: a record has at most one update at a time in the output, with a diff other than 0.
//!
//! Cost: `O(n log n)` for `n` updates, in instalments; memory for the updates of times that are not complete.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use pointstamp_arrange::Rows;
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;

use super::kept::{Beginning, Keeper, Parts};
use super::route::{By, exchange};
use super::staged::Run;
use super::staging::Staging;
use super::time::ScopeTime;
use super::updates::{Builder, Updates};
use super::{give, send};
use crate::typed::{Input, Output, Typed};
use crate::{Error, by_dims};

/// Adds up the updates of each time, when the time is complete.
///
/// # Errors
///
/// Errors of building an operator.
pub fn consolidate(stream: &Typed<Updates>) -> Result<Typed<Updates>, Error> {
    let (scope, name) = (stream.scope(), "consolidate");
    let builder = scope.operator(name)?;
    let input = Input::new(&builder, stream, exchange(By::Record, name))?;
    let (output, result) = Output::new(&builder)?;
    builder.notify();
    let activator = builder.activator();
    by_dims!(scope.dims(), T => {
        let mut staging = Staging::<T>::new(By::Record, scope.dims(), name);
        let mut keeper = Keeper::new(scope);
        if let Some(mut restored) = Beginning::of(&builder, &mut keeper)? {
            staging.restore(&mut restored.held, &mut restored.parts)?;
        }
        let staging = Rc::new(RefCell::new(staging));
        let kept = Rc::clone(&staging);
        builder.keeps(move || {
            let (staged, upper) = kept.borrow_mut().kept()?;
            let (arrangement, pending) = (None, None);
            Ok(keeper.take(Parts { arrangement, upper, staged, pending }))
        });
        let mut waiting = Waiting::<T>::default();
        builder.build(move || {
            let mut staging = staging.borrow_mut();
            let mut fuel = staging.receive(&input)?;
            waiting.send(&mut fuel, &output)?;
            while waiting.is_empty()
                && let Some((_, parts)) = staging.seal(&input, &mut fuel)?
            {
                waiting.parts.extend(parts.into_iter().map(|(capability, run)| (capability, run, 0)));
                waiting.send(&mut fuel, &output)?;
            }
            if staging.has_more(&input) || !waiting.is_empty() {
                activator.resume();
            }
            Ok(false)
        });
    });
    Ok(result)
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
    fn send(&mut self, fuel: &mut usize, output: &Output<Updates>) -> Result<(), BoxError> {
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
