//! Running aggregates of each key after each of its records: a count, a sum, an extreme or a mean so far.
//!
//! The loop over records is here, so that no function of Python's is called for one: the remaining cost of a record
//! is a look-up of its key, an operation on its value and a pair. The state is a `dict`, which a `KeyedState` lists.

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList, PyTuple};

use crate::kinds::Reduction;

/// Whether a value that Python does not hold better is so, because NaN is the greatest number.
fn is_new_by_nan(
    value: &Bound<'_, PyAny>,
    best: &Bound<'_, PyAny>,
    better: CompareOp,
) -> PyResult<bool> {
    if let (Ok(value), Ok(best)) = (value.cast::<PyFloat>(), best.cast::<PyFloat>()) {
        let (value, best) = (value.value().is_nan(), best.value().is_nan());
        return Ok(value != best && value == matches!(better, CompareOp::Gt));
    }
    let (worse, function) = match better {
        CompareOp::Gt => (CompareOp::Lt, intern!(value.py(), "is_greater")),
        _ => (CompareOp::Gt, intern!(value.py(), "is_less")),
    };
    if value.rich_compare(best, worse)?.is_truthy()? || value.eq(best)? {
        return Ok(false);
    }
    // Neither is before the other: there is a NaN in one, or there is no order.
    let module = value.py().import("pointstamp._nan_order")?;
    module.getattr(function)?.call1((value, best))?.is_truthy()
}

/// Takes values in, and returns the pairs of key and result after each.
#[pyfunction]
pub(crate) fn running<'py>(
    kind: Reduction,
    states: &Bound<'py, PyDict>,
    keys: &Bound<'py, PyList>,
    values: &Bound<'py, PyList>,
) -> PyResult<Bound<'py, PyList>> {
    let py = states.py();
    let one = 1_i64.into_pyobject(py)?;
    let mut results = Vec::with_capacity(keys.len());
    for (key, value) in keys.iter().zip(values.iter()) {
        let known = states.get_item(&key)?;
        let mut is_new = true;
        let result = match (kind, known) {
            (Reduction::Count, None) => one.clone().into_any(),
            (Reduction::Count, Some(count)) => count.add(&one)?,
            (Reduction::Sum | Reduction::Min | Reduction::Max, None) => value,
            (Reduction::Sum, Some(sum)) => sum.add(&value)?,
            (Reduction::Min | Reduction::Max, Some(best)) => {
                let better = if kind == Reduction::Max {
                    CompareOp::Gt
                } else {
                    CompareOp::Lt
                };
                is_new = value.rich_compare(&best, better)?.is_truthy()?
                    || is_new_by_nan(&value, &best, better)?;
                if is_new { value } else { best }
            }
            (Reduction::Mean, known) => {
                let (sum, count) = match known {
                    None => (value, one.clone().into_any()),
                    Some(known) => {
                        let known = known.cast::<PyTuple>()?;
                        (
                            known.get_item(0)?.add(&value)?,
                            known.get_item(1)?.add(&one)?,
                        )
                    }
                };
                let mean = sum.div(&count)?;
                states.set_item(&key, PyTuple::new(py, [sum, count])?)?;
                results.push(PyTuple::new(py, [key, mean])?);
                continue;
            }
            _ => {
                return Err(PyValueError::new_err(
                    "a running function is count, sum, min, max or mean",
                ));
            }
        };
        if is_new {
            states.set_item(&key, &result)?;
        }
        results.push(PyTuple::new(py, [key, result])?);
    }
    PyList::new(py, results)
}
