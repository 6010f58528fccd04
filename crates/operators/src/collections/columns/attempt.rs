//! Rows of which an expression has no result.
//!
//! Owns [`attempt`], the operator of expressions that may fail. A row without a result is no error at once: joins make pairs
//! of rows that are never there together, and these are gone when the updates of their time are added up. So such rows wait
//! until their time is complete; those that are left then are errors.
//!
//! Invariant: the operator fails if and only if, at some time, the updates that this worker got of a row without a result
//! do not add up to zero.
//!
//! Cost: nothing but a look for every batch whose rows all have results; the others are sorted.

use std::cell::RefCell;
use std::rc::Rc;

use arrow_arith::boolean::not;
use arrow_array::BooleanArray;
use pointstamp_arrange::Rows;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::operator::Notify;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::MessageCapability;
use pointstamp_rows::Row;

use crate::collections::checkpoint::{Beginning, Keeper, Parts};
use crate::collections::memory::caused;
use crate::collections::staged::Staged;
use crate::collections::time::{ScopeTime, frontier_of};
use crate::collections::updates::Updates;
use crate::typed::{Input, Output, Typed};
use crate::{Error, by_dims};

/// The result of expressions for a batch of updates.
pub(super) struct Attempt {
    pub(super) made: Updates,
    /// The updates of rows without a result.
    failed: Option<Updates>,
}

impl Attempt {
    /// Returns the results of all rows.
    pub(super) fn whole(made: Updates) -> Self {
        Attempt { made, failed: None }
    }

    /// Returns the results of the rows of which a mask is true; the others have none.
    ///
    /// # Errors
    ///
    /// Errors of the function that makes the results of the rows that have some.
    pub(super) fn part(
        updates: &Updates,
        has_result: &BooleanArray,
        make: impl FnOnce(Updates) -> Result<Updates, BoxError>,
    ) -> Result<Self, BoxError> {
        let masked = |mask| updates.clone().filtered(mask);
        let others = not(has_result).map_err(pointstamp_columnar::Error::from)?;
        Ok(Attempt {
            made: make(masked(has_result)?)?,
            failed: Some(masked(&others)?),
        })
    }
}

/// Applies expressions to the updates of each message. `error_of` returns the error of a row, if it has no result.
///
/// # Errors
///
/// Errors of building an operator.
pub(super) fn attempt(
    stream: &Typed<Updates>,
    name: &str,
    mut apply: impl FnMut(Updates) -> Result<Attempt, BoxError> + 'static,
    error_of: impl Fn(Row<'_>) -> Option<Error> + 'static,
) -> Result<Typed<Updates>, Error> {
    let scope = stream.scope();
    let builder = scope.operator(name)?;
    let input = Input::new(&builder, stream, Pact::Pipeline)?;
    let (output, result) = Output::new(&builder)?;
    builder.notify_of(input.port().port(), Notify::WhileHolding);
    by_dims!(scope.dims(), T => {
        let mut keeper = Keeper::new(scope, None);
        let mut failed = Failed(Staged::<T>::new(scope.dims()));
        if let Some(mut restored) = Beginning::of(&builder, &mut keeper)? {
            failed.0 = Staged::restored(&mut restored.held, &mut restored.parts)?;
        }
        let failed = Rc::new(RefCell::new(failed));
        let kept = Rc::clone(&failed);
        builder.keeps(move || {
            let (staged, upper) = kept.borrow_mut().0.kept()?;
            let (arrangement, pending) = (None, None);
            Ok(keeper.take(Parts { arrangement, upper, staged, pending }))
        });
        builder.build(move || {
            let mut waiting = failed.borrow_mut();
            while let Some((message, updates)) = input.next()? {
                let Attempt { made, failed } = apply(updates)?;
                if let Some(failed) = failed {
                    waiting.push(&message, &failed)?;
                }
                if !made.is_empty() {
                    output.send(&message, made)?;
                }
            }
            waiting.check(&input, &error_of)?;
            Ok(false)
        });
    });
    Ok(result)
}

/// The updates of rows without a result, of times that are not complete.
struct Failed<T>(Staged<T>);

impl<T: ScopeTime> Failed<T> {
    #[cold]
    fn push(&mut self, message: &MessageCapability, failed: &Updates) -> Result<(), BoxError> {
        self.0.hold(message)?;
        let (at, dims) = (T::of(message.time()), message.time().dims());
        for update in failed.iter() {
            let time = update.time_in(&at, dims);
            self.0.push(update.row, Row::UNIT, &time, update.diff)?;
        }
        Ok(())
    }

    /// Fails for a row that is left at a time that is complete.
    fn check(
        &mut self,
        input: &Input<Updates>,
        error_of: &impl Fn(Row<'_>) -> Option<Error>,
    ) -> Result<(), BoxError> {
        if !self.0.is_holding() {
            return Ok(());
        }
        self.0
            .begin(&frontier_of(input.port().frontier().frontier()))?;
        let parts = loop {
            let mut fuel = usize::MAX;
            if let Some(parts) = self.0.seal(&mut fuel)? {
                break parts;
            }
        };
        for (_, run) in parts {
            for number in 0..run.pages() {
                let page = run.page(number).map_err(caused)?;
                let keys = page.keys();
                let mut errors = (0..keys.len()).filter_map(|index| error_of(keys.get(index)));
                if let Some(error) = errors.next() {
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }
}
