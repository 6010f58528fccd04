//! Aggregates of columns, as Python writes them: `col("price").sum()`.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// An aggregate of the values of an expression, or of rows.
///
/// Examples:
///     >>> import pointstamp as ps
///     >>> ps.col("price").sum()
///     col("price").sum()
#[pyclass(frozen, get_all, name = "Aggregate", module = "pointstamp._core")]
pub(crate) struct Aggregate {
    /// The function's name.
    function: String,
    /// The expression; `None` where rows are counted.
    of: Option<Py<PyAny>>,
    /// The other argument of the function, which is a number of values or a share.
    argument: Option<Py<PyAny>>,
}

#[pymethods]
impl Aggregate {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let argument = match &self.argument {
            Some(argument) => argument.bind(py).repr()?.to_string(),
            None => String::new(),
        };
        let of = match &self.of {
            Some(of) => format!("{}.", of.bind(py).repr()?),
            None => String::new(),
        };
        Ok(format!("{of}{}({argument})", self.function))
    }

    /// A function and its arguments that make the same aggregate elsewhere.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.import("pointstamp._core")?.getattr("aggregate_expr")?;
        let arguments = (
            &self.function,
            self.of.as_ref().map(|of| of.clone_ref(py)),
            self.argument
                .as_ref()
                .map(|argument| argument.clone_ref(py)),
        );
        Ok((make, arguments.into_pyobject(py)?))
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Err(PyTypeError::new_err(format!(
            "{} is an aggregate, which has a value for each group and not by itself",
            self.__repr__(py)?
        )))
    }
}

/// The aggregate of a name.
#[pyfunction]
#[pyo3(signature = (function, of=None, argument=None))]
pub(crate) fn aggregate_expr(
    function: String,
    of: Option<Py<PyAny>>,
    argument: Option<Py<PyAny>>,
) -> Aggregate {
    Aggregate {
        function,
        of,
        argument,
    }
}
