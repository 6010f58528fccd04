//! Not-a-number as a key: one for all.
//!
//! No NaN equals another, or itself; a `dict` finds one by its identity only, and every float that is unpickled is an
//! object of its own. Operators by key examine keys on arrival, and replace every NaN of type float by `math.nan`, in
//! tuples too. Of other types whose objects do not equal themselves (`Decimal`, NumPy's, a subclass of float, a class
//! with a NaN among its parts), the first represents all of its type that have its stable hash. It is kept for as
//! long as anything else refers to it, where the type allows weak references.
//!
//! Cost: a look at the type of each key; for a float a compare, for a tuple its elements. A list without any stays as it is.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Tuples nested deeper than this have no hash either.
const MAX_DEPTH: usize = 100;

/// The keys, with one NaN: the list itself where it has no other.
#[pyfunction]
pub(crate) fn with_one_nan<'py>(keys: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyList>> {
    let mut made: Option<Bound<'py, PyList>> = None;
    for (place, key) in keys.iter().enumerate() {
        if let Some(other) = one_nan(&key)? {
            let copy = match &made {
                Some(copy) => copy,
                None => made.insert(keys.get_slice(0, keys.len())),
            };
            copy.set_item(place, other)?;
        }
    }
    Ok(made.unwrap_or_else(|| keys.clone()))
}

/// Returns pairs of a key and a value, whose keys have one NaN: the list itself where they have no other.
/// Items that are not pairs stay.
#[pyfunction]
pub(crate) fn pairs_with_one_nan<'py>(pairs: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyList>> {
    let py = pairs.py();
    let mut made: Option<Bound<'py, PyList>> = None;
    for (place, pair) in pairs.iter().enumerate() {
        let Ok(tuple) = pair.cast::<PyTuple>() else {
            continue;
        };
        if tuple.len() != 2 {
            continue;
        }
        if let Some(key) = one_nan(&tuple.get_item(0)?)? {
            let copy = match &made {
                Some(copy) => copy,
                None => made.insert(pairs.get_slice(0, pairs.len())),
            };
            copy.set_item(place, PyTuple::new(py, [key, tuple.get_item(1)?])?)?;
        }
    }
    Ok(made.unwrap_or_else(|| pairs.clone()))
}

/// Returns the representative of a key that does not equal itself, or contains a value that does not.
pub(crate) fn one_nan<'py>(key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    within(key, 0)
}

fn within<'py>(key: &Bound<'py, PyAny>, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
    if key.is_exact_instance_of::<PyString>()
        || key.is_exact_instance_of::<PyInt>()
        || key.is_exact_instance_of::<PyBytes>()
        || key.is_exact_instance_of::<PyBool>()
        || key.is_none()
    {
        return Ok(None);
    }
    // One of a subclass is more than its number, and stays of its type.
    if let Ok(float) = key.cast_exact::<PyFloat>() {
        if !float.value().is_nan() {
            return Ok(None);
        }
        let nan = the_nan(key.py())?;
        return Ok((!nan.is(key)).then(|| nan.clone()));
    }
    if let Ok(tuple) = key.cast::<PyTuple>() {
        return if depth < MAX_DEPTH {
            in_tuple(tuple, depth)
        } else {
            Ok(None)
        };
    }
    if equals_itself(key)? {
        return Ok(None);
    }
    first_alike(key)
}

/// Whether a key equals itself. A key whose comparison fails is found by its identity, as in a `dict`: an `==` that
/// raises, or whose result has no truth value (`pandas.NA`, an expression of SQLAlchemy or Polars).
fn equals_itself(key: &Bound<'_, PyAny>) -> PyResult<bool> {
    match key.eq(key) {
        Err(error) if error.is_instance_of::<PyException>(key.py()) => Ok(true),
        // Other exceptions than `Exception` end a program, and not only a comparison.
        said => said,
    }
}

fn in_tuple<'py>(tuple: &Bound<'py, PyTuple>, depth: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut elements: Option<Vec<Bound<'py, PyAny>>> = None;
    for (place, element) in tuple.iter().enumerate() {
        if let Some(other) = within(&element, depth + 1)? {
            elements.get_or_insert_with(|| tuple.iter().collect())[place] = other;
        }
    }
    let Some(elements) = elements else {
        return Ok(None);
    };
    let plain = PyTuple::new(tuple.py(), elements)?;
    if tuple.is_exact_instance_of::<PyTuple>() {
        return Ok(Some(plain.into_any()));
    }
    // A named tuple makes one of its own.
    match tuple.get_type().getattr_opt("_make")? {
        Some(make) => make.call1((plain,)).map(Some),
        None => Ok(None),
    }
}

fn the_nan(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static NAN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    NAN.import(py, "math", "nan")
}

/// The first key of its type with its parts. A key that neither has a stable hash nor can be pickled is a key of its
/// own.
fn first_alike<'py>(key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static FIRST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let first = FIRST.import(key.py(), "pointstamp._nan_keys", "first_alike")?;
    let known = first.call1((key,))?;
    Ok((!known.is(key)).then_some(known))
}
