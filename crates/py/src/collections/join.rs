//! Joins of two arrangements, and the functions of Python that they call.

use pointstamp_arrange::Rows;
use pointstamp_engine::error::UserResult;
use pointstamp_operators::collections::{Combine, JoinResult};
use pointstamp_rows::expressions::{Expr, Nulls, Projection, Source};
use pointstamp_rows::{Cells, Row, RowBuf};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::arrange::Arrangement;
use super::expression::expr_of;
use super::failure::unresolved;
use super::values::{FromPython, ToPython};
use crate::errors::IntoException;
use crate::gil::{Held, attached};
use crate::kinds::JoinKind;
use crate::raised::Raised;
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
        (JoinKind::Left, None) => JoinResult::Left,
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
