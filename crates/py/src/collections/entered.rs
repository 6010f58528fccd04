//! Arrangements of an outer scope in a scope inside it.
//!
//! A loop uses what does not change in its turns as it is kept outside: the columns of each batch are shared, and only its
//! few distinct times gain zeros. The inner scope's operators read the outer trace, and hold it back by the outer part of
//! their times.

use std::rc::Rc;
use std::sync::Arc;

use pointstamp_arrange::{Entered, Sealed, Source, Trace as Reader};
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::SendError;
use pointstamp_engine::scope::Scope as EngineScope;
use pointstamp_order::Point;
use pyo3::prelude::*;

use super::arrange::{Arranged, Arrangement, ByTime, Readers, sealed_of};
use super::follow::Followers;
use super::sealed::SealedBatch;
use super::time::ScopeTime;
use crate::batch::Batch;
use crate::bound::ThreadBound;
use crate::errors::{GraphError, IntoException};
use crate::scope::Scope;
use pointstamp_rows::Cells;

/// Makes readers of an outer arrangement for operators of a scope whose times have `dims` coordinates.
struct Within<T0: ScopeTime> {
    outer: Rc<dyn Readers<T0>>,
    outer_dims: usize,
    dims: usize,
}

impl<T0: ScopeTime, T: ScopeTime> Readers<T> for Within<T0> {
    fn source(&self) -> PyResult<Box<dyn Source<Cells, Cells, T>>> {
        let (outer, inner) = (self.outer_dims, self.dims);
        Ok(Box::new(Entered::new(
            self.outer.source()?,
            move |time: &T0| entered(time, inner),
            move |time: &T| T0::of(&Point::new(&time.point().coords()[..outer])),
        )))
    }

    fn trace(&self) -> PyResult<(Reader<Cells, Cells, T>, Followers<T>)> {
        Err(GraphError::new_err(
            "this arrangement is of the scope around and only entered this one: take the trace of the arrangement there",
        ))
    }
}

/// A time of an outer scope in one with so many coordinates.
fn entered<T0: ScopeTime, T: ScopeTime>(time: &T0, dims: usize) -> T {
    let point = time.point();
    let zeros = std::iter::repeat_n(0, dims - point.dims());
    T::of(&point.coords().iter().copied().chain(zeros).collect())
}

fn build<T0: ScopeTime, T: ScopeTime>(
    outer: &Arranged<T0>,
    scope: &EngineScope<Batch>,
) -> PyResult<Arranged<T>> {
    let refused = IntoException::into_exception;
    let (outer_dims, dims) = (outer.stream.scope().dims(), scope.dims());
    let inside = scope.enter(&outer.stream).map_err(refused)?;
    let builder = scope.operator("enter").map_err(refused)?;
    let input = builder
        .new_input(&inside, Pact::Pipeline)
        .map_err(refused)?;
    let (output, stream) = builder.new_output().map_err(refused)?;
    builder.build(move || {
        while let Some((message, batch)) = input.next()? {
            let Sealed { batch, number } = sealed_of::<T0>(&batch);
            let batch = Arc::new(batch.map_times(|time| entered::<T0, T>(time, dims)));
            let sealed = Batch::Sealed(SealedBatch::new(Sealed { batch, number }));
            output
                .send(&message, sealed)
                .map_err(SendError::into_cause)?;
        }
        Ok(false)
    });
    Ok(Arranged {
        stream,
        form: outer.form,
        readers: Rc::new(Within {
            outer: Rc::clone(&outer.readers),
            outer_dims,
            dims,
        }),
    })
}

/// The arrangement, which is kept once, in a scope directly inside its own.
#[pyfunction]
pub(crate) fn enter_arrangement(arrangement: &Arrangement, scope: &Scope) -> PyResult<Arrangement> {
    let inner = scope.scope.get()?;
    let by_time = match (arrangement.inner.get()?, inner.dims()) {
        (ByTime::One(outer), 1) => ByTime::One(build(outer, inner)?),
        (ByTime::One(outer), 2) => ByTime::Two(build(outer, inner)?),
        (ByTime::One(outer), 3) => ByTime::Three(build(outer, inner)?),
        (ByTime::One(outer), _) => ByTime::Many(build(outer, inner)?),
        (ByTime::Two(outer), 2) => ByTime::Two(build(outer, inner)?),
        (ByTime::Two(outer), 3) => ByTime::Three(build(outer, inner)?),
        (ByTime::Two(outer), _) => ByTime::Many(build(outer, inner)?),
        (ByTime::Three(outer), 3) => ByTime::Three(build(outer, inner)?),
        (ByTime::Three(outer), _) => ByTime::Many(build(outer, inner)?),
        (ByTime::Many(outer), _) => ByTime::Many(build(outer, inner)?),
    };
    Ok(Arrangement {
        inner: ThreadBound::new(arrangement.inner.home(), by_time),
    })
}
