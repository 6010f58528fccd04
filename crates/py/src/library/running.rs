//! What is known of each key after each of its records: a count, a sum, an extreme or a mean so far.
//!
//! The loop over records is here, so that no function of Python's is called for one: what is left of a record is a look-up of its
//! key, an operation on its value and a pair. The state is a `dict`, which a `KeyedState` lists.

use pyo3::basic::CompareOp;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::kinds::Reduction;

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
                is_new = value.rich_compare(&best, better)?.is_truthy()?;
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
