//! Joins of two arrangements, and the functions of Python that they call.

use pointstamp_arrange::Rows;
use pointstamp_engine::error::UserResult;
use pointstamp_operators::collections::{Combine, JoinResult};
use pointstamp_rows::expressions::{Expr, Nulls, Projection, Source};
use pointstamp_rows::{Cells, Row, RowBuf};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::arrange::Arrangement;
use super::expression::expr_of;
use super::failure::unresolved;
use super::values::{FromPython, ToPython};
use crate::errors::IntoException;
use crate::gil::{Held, attached};
use crate::kinds::JoinKind;
use crate::raised::{Raised, shown};
use crate::stream::Stream;
use crate::tools::Tools;

/// Pairs the values of two arrangements with equal keys: as `(key, (left, right))`, `(key, left)`, or through a function.
#[pyfunction]
#[pyo3(signature = (left, right, kind, function, name))]
pub(crate) fn join_arranged(
    py: Python<'_>,
    left: &Arrangement,
    right: &Arrangement,
    kind: JoinKind,
    function: Option<Py<PyAny>>,
    name: &str,
) -> PyResult<Stream> {
    let result = match (kind, function) {
        (JoinKind::Pairs, None) => JoinResult::Pairs,
        (JoinKind::Left, None) => {
            let name = name.to_owned();
            JoinResult::Left(Box::new(move |left, right| {
                attached(|py| warn_of_pairs(py, left, right))
                    .map_err(|error| Raised::by(&name, error))
            }))
        }
        (JoinKind::Fields, Some(fields)) => {
            let fields = joined(fields.bind(py))?;
            JoinResult::Expression(Box::new(Projection::new(fields, Nulls::Value)))
        }
        (JoinKind::Function, Some(function)) => {
            JoinResult::Function(Box::new(Function(Held::new(function))))
        }
        (JoinKind::Function | JoinKind::Fields, None)
        | (JoinKind::Pairs | JoinKind::Left, Some(_)) => {
            return Err(PyTypeError::new_err(format!(
                "a join of kind {} goes with a function if and only if it is of kind function",
                kind.label()
            )));
        }
    };
    let joined = (left.inner.get()?).join(right.inner.get()?, result, name);
    let joined = joined.map_err(IntoException::into_exception)?;
    Ok(Stream::of(left.inner.home(), joined))
}

/// Refuses fields that are of neither the key nor a side of a join.
#[pyfunction]
pub(crate) fn check_join_fields(fields: &Bound<'_, PyAny>) -> PyResult<()> {
    joined(fields).map(drop)
}

/// The expression of a Python object, over the key and both sides.
fn joined(fields: &Bound<'_, PyAny>) -> PyResult<Expr> {
    expr_of(fields)?
        .resolved(&[Source::Key, Source::Left, Source::Right], &[])
        .map_err(|error| unresolved(&error))
}

/// Warns where the right side has a pair as a record and the left side the first of such a pair: pairs instead of
/// keys match nothing. A program may have keys of both kinds, so that this is no error.
fn warn_of_pairs(py: Python<'_>, left: Row<'_>, right: Row<'_>) -> PyResult<()> {
    let (left, right) = (left.decode(py)?, right.decode(py)?);
    let Ok(pair) = right.cast::<PyTuple>() else {
        return Ok(());
    };
    if left.is_instance_of::<PyTuple>() || pair.len() != 2 {
        return Ok(());
    }
    if !pair.get_item(0)?.get_type().is(left.get_type()) {
        return Ok(());
    }
    let message = format!(
        "semijoin and antijoin take a collection of keys, such as {}, and got the pair {}, which is no key of the left \
         side: pass keys.map(lambda pair: pair[0])",
        shown(&left),
        shown(&right)
    );
    let warn = py.import("pointstamp._validation")?.getattr("warn_usage")?;
    warn.call1((message,)).map(drop)
}

/// A function of a key and two values.
struct Function(Held);

impl Combine for Function {
    fn combine(
        &mut self,
        keys: &Cells,
        [left, right]: [&Cells; 2],
        results: &mut Cells,
    ) -> UserResult<()> {
        attached(|py| self.call(py, [keys, left, right], results)).map_err(Raised::here)
    }
}

impl Function {
    fn call(&self, py: Python<'_>, columns: [&Cells; 3], results: &mut Cells) -> PyResult<()> {
        let lists = [PyList::empty(py), PyList::empty(py), PyList::empty(py)];
        // Neighbours share keys and values: each is made once.
        for (column, list) in columns.into_iter().zip(&lists) {
            let mut last: Option<(Row<'_>, Bound<'_, PyAny>)> = None;
            for row in (0..column.len()).map(|index| column.get(index)) {
                let value = match &last {
                    Some((same, value)) if same.is(row) => value.clone(),
                    _ => row.decode(py)?,
                };
                list.append(&value)?;
                last = Some((row, value));
            }
        }
        let function = self.0.get().bind(py);
        let made = Tools::get(py)?.map_three(function, [&lists[0], &lists[1], &lists[2]])?;
        let mut row = RowBuf::default();
        for record in &made {
            results.push(row.encode(&record)?);
        }
        Ok(())
    }
}
