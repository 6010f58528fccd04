//! Iterables of records, as programs give them and as functions return them.
//!
//! Text, dicts, named tuples and data frames are iterable, too, but by letters, keys, fields and columns, which a
//! program never means by records. They are refused with a text that names the call to use, before any record is
//! taken.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyIterator, PyList, PyString, PyTuple};

use crate::raised::shown;

/// The source of an iterable.
#[derive(Clone, Copy)]
pub(crate) enum Giver<'a> {
    /// A program, to a method of this name.
    Call(&'a str),
    /// A function that a program gave to an operator of this name.
    Function(&'a str),
}

impl Giver<'_> {
    /// Returns the error for an object that is no iterable of records; `parts` names the items that an
    /// iteration would yield.
    fn refuses(self, given: &str, parts: &str, cure: &str) -> PyErr {
        let parts = if parts.is_empty() {
            String::new()
        } else {
            format!(", {parts}")
        };
        PyTypeError::new_err(match self {
            Giver::Call(call) => {
                format!("{call} takes an iterable of records, not {given}{parts}: write {cure}")
            }
            Giver::Function(operator) => format!(
                "the function given to {operator} returns an iterable of records, not {given}{parts}: return {cure}"
            ),
        })
    }

    /// Refuses an object whose iteration yields parts of one record, and an object that cannot be iterated.
    pub(crate) fn check(self, records: &Bound<'_, PyAny>) -> PyResult<()> {
        let plain = records.is_exact_instance_of::<PyList>()
            || records.is_exact_instance_of::<PyTuple>()
            || records.cast::<PyIterator>().is_ok();
        if plain {
            return Ok(());
        }
        if records.is_instance_of::<PyString>() {
            let text = shown(records);
            let cure = format!("[{text}] for one record, or list({text}) for the letters");
            return Err(self.refuses(&text, "whose letters would be the records", &cure));
        }
        if records.is_instance_of::<PyBytes>() || records.is_instance_of::<PyByteArray>() {
            let text = shown(records);
            let cure = format!("[{text}] for one record, or list({text}) for its numbers");
            return Err(self.refuses(&text, "whose numbers would be the records", &cure));
        }
        if records.is_instance_of::<PyDict>() {
            let text = shown(records);
            let cure = format!("[{text}] for one record, or its items() for pairs");
            return Err(self.refuses(&text, "whose keys would be the records", &cure));
        }
        if records.is_instance_of::<PyTuple>() && records.hasattr("_fields")? {
            let text = shown(records);
            let cure = format!("[{text}] for one record");
            return Err(self.refuses(&text, "whose fields would be the records", &cure));
        }
        if let Some(rows) = rows_of_frame(records)? {
            let kind = records.get_type().name()?.to_string();
            let cure = format!(
                "{rows} for its rows; columns have scope.to_stream(frame), ArrowInput and new_collection(schema=...)"
            );
            let parts = "which iterates over its columns";
            return Err(self.refuses(&format!("a {kind}"), parts, &cure));
        }
        let kind = records.get_type(); // which has the special methods, and not the object
        if !kind.hasattr("__iter__")? && !kind.hasattr("__getitem__")? {
            let text = shown(records);
            let cure = if kind.module()?.to_string().starts_with("pointstamp") {
                "the records themselves: a stream or a collection is made of them".to_owned()
            } else if records.is_none() {
                "a list, which may be empty".to_owned()
            } else if records.is_callable() {
                "its result, by calling it".to_owned()
            } else {
                format!("[{text}] for one record")
            };
            return Err(self.refuses(&text, "", &cure));
        }
        Ok(())
    }
}

/// The iterator over records, unless they are refused.
pub(crate) fn records_of<'py>(
    giver: Giver<'_>,
    records: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyIterator>> {
    giver.check(records)?;
    records.try_iter()
}

/// The iterator over the results of a reduction, of which a tuple is one and not several.
pub(crate) fn results_of<'py>(
    operator: &str,
    results: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyIterator>> {
    let giver = Giver::Function(operator);
    if results.is_instance_of::<PyTuple>() {
        let text = shown(results);
        let cure = format!("[{text}] for one result, or a list of several");
        return Err(giver.refuses(&text, "whose parts would be the results", &cure));
    }
    records_of(giver, results)
}

/// Refuses an iterator where one record is taken; `many` names the method that takes several.
pub(crate) fn refuse_iterator(call: &str, many: &str, record: &Bound<'_, PyAny>) -> PyResult<()> {
    if record.cast::<PyIterator>().is_err() {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "{call} takes one record, not {}, which is an iterator: {many} takes every record of it",
        shown(record)
    )))
}

/// For a data frame, a table or a record batch: the expression of its rows as dicts.
fn rows_of_frame(object: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
    let kind = object.get_type();
    let module = kind.module()?.to_string();
    let is_frame = kind.name()? == "DataFrame" || module.starts_with("pyarrow");
    let speaks = object.hasattr("__arrow_c_stream__")? || object.hasattr("__arrow_c_array__")?;
    let columns = object.hasattr("columns")? || object.hasattr("schema")?;
    if !columns || !(speaks || is_frame) {
        return Ok(None);
    }
    Ok(Some(match module.split('.').next() {
        Some("pandas") => "frame.to_dict('records')",
        Some("polars") => "frame.to_dicts()",
        Some("pyarrow") => "table.to_pylist()",
        _ => "pyarrow.table(frame).to_pylist()",
    }))
}

/// Refuses an object that is no iterable of records, in the name of the method that takes it.
#[pyfunction]
pub(crate) fn check_records(call: &str, records: &Bound<'_, PyAny>) -> PyResult<()> {
    Giver::Call(call).check(records)
}

/// Refuses an iterator where a method takes one record, in its name.
#[pyfunction]
pub(crate) fn check_record(call: &str, many: &str, record: &Bound<'_, PyAny>) -> PyResult<()> {
    refuse_iterator(call, many, record)
}
