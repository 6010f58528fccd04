//! Classes that take type arguments in annotations.

use pyo3::prelude::*;
use pyo3::types::PyType;

/// `class[item]`, as annotations write generic classes.
pub(crate) fn generic_alias<'py>(
    class: &Bound<'py, PyType>,
    item: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    class
        .py()
        .import("types")?
        .getattr("GenericAlias")?
        .call1((class, item))
}
