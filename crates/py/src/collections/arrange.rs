//! Arrangements, as `pointstamp.Arranged` holds them.

use std::sync::Arc;

use pointstamp_operators::collections::{self, By, Total};
use pyo3::prelude::*;

use crate::bound::{Home, ThreadBound};
use crate::errors::{GraphError, IntoException};
use crate::kinds::Reduction;
use crate::observability::notes::Kept;
use crate::scope::Scope;
use crate::stream::Stream;

/// An arrangement.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Arrangement {
    pub(crate) inner: ThreadBound<collections::Arrangement>,
}

impl Arrangement {
    /// Wraps an arrangement, and notes the size of its operator's state.
    pub(crate) fn new(home: &Arc<Home>, inner: collections::Arrangement) -> Self {
        if let Some(keeps) = inner.keeps().cloned()
            && let Some(noted) = home.notes().operator(keeps.operator)
        {
            let keeps = ThreadBound::new(home, keeps);
            noted.keeps(Kept::Native(Arc::new(move || keeps.get().ok()?.size())));
        }
        Arrangement {
            inner: ThreadBound::new(home, inner),
        }
    }
}

/// Sorts and keeps the updates of a collection: by the first of two things in a record, or by the record.
#[pyfunction]
pub(crate) fn arrange(stream: &Stream, by_key: bool, name: &str) -> PyResult<Arrangement> {
    let by = if by_key { By::Key } else { By::Record };
    // The operator's name is in its errors, too.
    let name = &*stream.home().naming().named(name);
    let arranged = collections::arrange(&stream.typed()?, by, name);
    let arranged = arranged.map_err(IntoException::into_exception)?;
    Ok(Arrangement::new(stream.home(), arranged))
}

/// Returns the records of an arrangement as a collection.
#[pyfunction]
pub(crate) fn arrangement_updates(arrangement: &Arrangement) -> PyResult<Stream> {
    let updates = arrangement.inner.get()?.updates();
    let updates = updates.map_err(IntoException::into_exception)?;
    Ok(Stream::of(arrangement.inner.home(), updates))
}

/// Returns the arrangement, which is kept once, in a scope directly inside its own.
#[pyfunction]
pub(crate) fn enter_arrangement(arrangement: &Arrangement, scope: &Scope) -> PyResult<Arrangement> {
    let entered = arrangement.inner.get()?.enter(scope.scope.get()?);
    let entered = entered.map_err(IntoException::into_exception)?;
    Ok(Arrangement::new(arrangement.inner.home(), entered))
}

/// Returns the counts of an arrangement's keys, or each key that is there once, in a scope of one coordinate.
#[pyfunction]
pub(crate) fn total_updates(
    arrangement: &Arrangement,
    kind: Reduction,
    name: &str,
) -> PyResult<Stream> {
    let total = match kind {
        Reduction::Distinct => Total::Distinct,
        Reduction::Count | Reduction::CountByKey => Total::Count,
        _ => {
            return Err(GraphError::new_err(format!(
                "{} is no function of a count",
                kind.label()
            )));
        }
    };
    let updates = arrangement.inner.get()?.totals(total, name);
    let updates = updates.map_err(IntoException::into_exception)?;
    Ok(Stream::of(arrangement.inner.home(), updates))
}
