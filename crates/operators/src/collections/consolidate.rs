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

use pointstamp_arrange::{Page, Rows};
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;

use super::checkpoint::{Beginning, Keeper, Parts};
use super::memory::{Memory, caused};
use super::route::{By, exchange};
use super::staged::Run;
use super::staging::Staging;
use super::time::ScopeTime;
use super::updates::{Builder, Updates};
use super::{give, send};
use crate::typed::{Input, Output, Typed};
use crate::{Error, by_dims};
use pointstamp_rows::Cells;

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
        let memory = Memory::of(&builder, name);
        let mut staging = Staging::<T>::new(By::Record, scope.dims(), name);
        let mut keeper = Keeper::new(scope, memory.storage());
        if let Some(mut restored) = Beginning::of(&builder, &mut keeper)? {
            staging.restore(&mut restored.held, &mut restored.parts)?;
        }
        staging.store_in(memory.storage());
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
                waiting.parts.extend(parts.into_iter().map(|(capability, run)| Part::new(capability, run)));
                waiting.send(&mut fuel, &output)?;
            }
            if memory.is_to_store(|| staging.size()) {
                staging.store()?;
            }
            if staging.has_more(&input) || !waiting.is_empty() {
                activator.resume();
            }
            Ok(false)
        });
    });
    Ok(result)
}

/// Sorted updates on their way out.
struct Part<T> {
    capability: Capability,
    run: Run<T>,
    /// The page that is being sent, its number, and the next of its records.
    page: Option<Page<Cells, Cells, T>>,
    number: usize,
    next: usize,
}

impl<T: ScopeTime> Part<T> {
    fn new(capability: Capability, run: Run<T>) -> Self {
        Part {
            capability,
            run,
            page: None,
            number: 0,
            next: 0,
        }
    }

    /// Sends updates until the fuel is used up; whether all are sent.
    fn send(&mut self, fuel: &mut usize, output: &Output<Updates>) -> Result<bool, BoxError> {
        let mut builder = Builder::default();
        while self.number < self.run.pages() && *fuel > 0 {
            let page = match self.page.take() {
                Some(page) => page,
                None => self.run.page(self.number).map_err(caused)?,
            };
            let (keys, count) = (page.keys(), page.keys().len());
            while self.next < count && *fuel > 0 {
                for val in page.vals_of(self.next) {
                    for (time, diff) in page.updates_of(val) {
                        let (key, time) = (keys.get(self.next), time.point());
                        give(&mut builder, key, &time, diff, &self.capability, output)?;
                        *fuel = fuel.saturating_sub(1);
                    }
                }
                self.next += 1;
            }
            if self.next < count {
                self.page = Some(page);
            } else {
                self.number += 1;
                self.next = 0;
            }
        }
        send(&mut builder, &self.capability, output)?;
        Ok(self.number == self.run.pages())
    }
}

/// Parts on their way out, one after the other.
struct Waiting<T> {
    parts: VecDeque<Part<T>>,
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
        while let Some(part) = self.parts.front_mut()
            && part.send(fuel, output)?
        {
            self.parts.pop_front();
        }
        Ok(())
    }
}
