//! Reductions of an arrangement, themselves arrangements.
//!
//! The kernel says which keys are to be reduced at which times; it works in rounds, each of which ends with batches of the
//! output. A round is worked on in instalments: the operator asks to run again while one is under way, and holds
//! capabilities for the least times at which it owes output.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use pointstamp_arrange::{Error, Reduce};
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::{InputPort, OutputPort, SendError};
use pointstamp_order::{Antichain, Point};
use pyo3::prelude::*;

use super::arrange::{Arranged, Arrangement, ByTime, kept_by, sealed_of};
use super::follow::{Followers, Publisher};
use super::fuel::{Allowance, instalment};
use super::reducers::{Form, Rows, of_kind};
use super::sealed::SealedBatch;
use super::staged::{delayed, hold};
use super::time::{ScopeTime, frontier_of};
use crate::batch::Batch;
use crate::bound::{Home, ThreadBound};
use crate::errors::IntoException;
use crate::kinds::Reduction;
use pointstamp_rows::Cells;

/// An arrangement's reduction.
#[pyfunction]
pub(crate) fn reduce_arranged(
    arrangement: &Arrangement,
    kind: Reduction,
    argument: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<Arrangement> {
    let (reducer, form) = of_kind(kind, argument, name)?;
    let by_time = match arrangement.inner.get()? {
        ByTime::One(input) => {
            ByTime::One(build(input, arrangement.inner.home(), reducer, form, name)?)
        }
        ByTime::Two(input) => {
            ByTime::Two(build(input, arrangement.inner.home(), reducer, form, name)?)
        }
        ByTime::Three(input) => {
            ByTime::Three(build(input, arrangement.inner.home(), reducer, form, name)?)
        }
        ByTime::Many(input) => {
            ByTime::Many(build(input, arrangement.inner.home(), reducer, form, name)?)
        }
    };
    Ok(Arrangement {
        inner: ThreadBound::new(arrangement.inner.home(), by_time),
    })
}

fn build<T: ScopeTime>(
    input: &Arranged<T>,
    home: &Arc<Home>,
    reducer: Rows,
    form: Form,
    name: &str,
) -> PyResult<Arranged<T>> {
    let refused = IntoException::into_exception;
    let scope = input.stream.scope();
    let builder = scope.operator(name).map_err(refused)?;
    let port = builder
        .new_input(&input.stream, Pact::Pipeline)
        .map_err(refused)?;
    let (output, result) = builder.new_output().map_err(refused)?;
    builder.notify();
    let activator = builder.activator();
    let least = Antichain::from_elem(T::of(&Point::minimum(scope.dims())));
    let mut reduce = Reduce::new(input.readers.source()?, least, reducer);
    let remote = activator.remote();
    reduce.when_stale(move || remote.activate());
    let trace = reduce.trace();
    let origin = trace.origin();
    let template = Rc::new(RefCell::new(Some(trace)));
    let reduce = Rc::new(RefCell::new(reduce));
    let followers = Followers::default();
    let publisher = Publisher(followers.clone());
    let kept = Rc::downgrade(&reduce);
    kept_by(home, builder.id(), move || {
        let trace = kept.upgrade()?.borrow().trace();
        Some((trace.len(), trace.bytes()))
    });
    let arranged = Arranged::new(result, form, Rc::clone(&template), followers, origin);
    let mut reducing = Reducing {
        reduce,
        capabilities: Vec::new(),
        publisher,
        allowance: Allowance::default(),
    };
    builder.build(move || {
        template.borrow_mut().take();
        if reducing.run(&port, &output)? {
            activator.activate();
        }
        Ok(false)
    });
    Ok(arranged)
}

/// The kernel's reduction, which the arrangement of its output shares for readers to come.
type Shared<T> = Rc<RefCell<Reduce<Cells, Cells, Cells, T, Rows>>>;

struct Reducing<T: ScopeTime> {
    reduce: Shared<T>,
    capabilities: Vec<Capability>,
    publisher: Publisher<T>,
    allowance: Allowance,
}

impl<T: ScopeTime> Reducing<T> {
    /// Works for a while; whether there is more to do.
    fn run(
        &mut self,
        input: &InputPort<Batch>,
        output: &OutputPort<Batch>,
    ) -> Result<bool, BoxError> {
        let mut reduce = self.reduce.borrow_mut();
        let mut came = false;
        while let Some((message, batch)) = input.next()? {
            hold(&mut self.capabilities, &message)?;
            reduce.push(sealed_of::<T>(&batch));
            came = true;
        }
        self.allowance.begin(came);
        reduce.advance(&frontier_of(input.frontier().frontier()));
        let mut fuel = self.allowance.fuel();
        while !reduce.is_idle() {
            if fuel == 0 {
                self.allowance.end(true);
                return Ok(true);
            }
            let Some(batches) = reduce.work(&mut fuel).map_err(caused)? else {
                continue;
            };
            for (time, sealed) in batches {
                let capability = delayed(&self.capabilities, &time.point())?;
                self.publisher.0.added(capability.time(), &sealed);
                output
                    .send(&capability, Batch::Sealed(SealedBatch::new(sealed)))
                    .map_err(SendError::into_cause)?;
            }
            self.publisher.0.complete(&reduce.trace().upper());
            let owed = reduce.frontier();
            let kept = owed
                .iter()
                .map(|time| delayed(&self.capabilities, &time.point()));
            self.capabilities = kept.collect::<Result<_, _>>()?;
        }
        self.allowance.end(false);
        Ok(!reduce.compact(&mut instalment())?)
    }
}

/// The error of the operator.
fn caused(error: Error) -> BoxError {
    match error {
        Error::Overflow => pointstamp_arrange::Overflow.into(),
        Error::Caller(cause) => cause,
    }
}
