//! Exceptions that pass through the engine: unchanged, with the name of the operator whose function raised.

use std::fmt;

use pointstamp_channels::{ChannelError, Reason};
use pointstamp_columnar::Error as ColumnError;
use pointstamp_engine::error::{BoxError, Error};
use pointstamp_engine::payload::Malformed;
use pointstamp_engine::port::SendError;
use pointstamp_operators::captures::CaptureError;
use pointstamp_operators::collections::columns::ColumnsError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;

use crate::errors::{
    CapabilityError, CheckpointError, ClusterError, GraphError, IntoException, PointstampError,
    TimeError, WorkerStopped, of_process,
};
use crate::gil::attached;
use crate::hints;

/// An exception that a user's function raised in an operator.
#[derive(Debug)]
pub(crate) struct Raised {
    /// The operator, where it is not the one that the engine was running: an exchange's key function runs in
    /// the operator that sends, and one operator runs a whole chain of functions.
    pub(crate) operator: Option<String>,
    pub(crate) error: PyErr,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Raised {}

impl Raised {
    /// An exception of the named operator's function.
    pub(crate) fn by(operator: &str, error: PyErr) -> BoxError {
        Box::new(Raised {
            operator: Some(operator.to_owned()),
            error,
        })
    }

    /// An exception of the function of the operator that runs.
    pub(crate) fn here(error: PyErr) -> BoxError {
        Box::new(Raised {
            operator: None,
            error,
        })
    }
}

/// The engine's errors. An exception that a user's function raised is raised as it is: the same object.
impl IntoException for Error {
    fn into_exception(self) -> PyErr {
        attached(|py| exception(py, &self).0)
    }
}

/// The exception for an error of the engine, and the operator that it happened in.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> (PyErr, Option<String>) {
    let message = || error.to_string();
    let raised = match error {
        Error::Fatal(error) => return exception(py, error),
        Error::Operator { operator, cause } | Error::Route { operator, cause } => {
            let (error, inner) = cause_of(py, cause);
            let named = (!operator.is_empty()).then(|| operator.clone());
            return (error, inner.or(named));
        }
        Error::Encode { operator, cause } | Error::Decode { operator, cause } => {
            let (error, _) = cause_of(py, cause);
            return (error, Some(operator.clone()));
        }
        Error::Host { cause } => return cause_of(py, cause),
        Error::Graph(error) | Error::Cycle { cycle: error, .. } => error.clone().into_exception(),
        Error::Channel(error) => error.clone().into_exception(),
        Error::Build(error) => GraphError::new_err(hints::of_build(error)),
        Error::Disagreement(_) => GraphError::new_err(message()),
        Error::TimeGoesBack { .. } | Error::TimeDims { .. } | Error::TimeOverflow { .. } => {
            TimeError::new_err(message())
        }
        Error::Capability(error) => CapabilityError::new_err(hints::of_capability(error)),
        // A closed input has dropped its capability.
        Error::Closed => {
            CapabilityError::new_err("the input is closed: nothing can be sent after close()")
        }
        Error::Peer {
            process, reason, ..
        } => {
            let raised = matches!(reason, Reason::Raised(_));
            of_process(ClusterError::new_err(message()), *process, raised)
        }
        Error::Stopped => WorkerStopped::new_err(
            "the computation was stopped: another worker failed, or it was interrupted",
        ),
        Error::Restore(_) => CheckpointError::new_err(message()),
        Error::Reentrant | Error::Panic { .. } | Error::Ended { .. } => {
            PointstampError::new_err(message())
        }
    };
    (raised, None)
}

fn cause_of(py: Python<'_>, cause: &BoxError) -> (PyErr, Option<String>) {
    if let Some(raised) = cause.downcast_ref::<Raised>() {
        (raised.error.clone_ref(py), raised.operator.clone())
    } else if let Some(error) = cause.downcast_ref::<Error>() {
        exception(py, error)
    } else if let Some(error) = cause.downcast_ref::<SendError>() {
        match error {
            SendError::Denied(error) => exception(py, error),
            SendError::Route(cause) => cause_of(py, cause),
        }
    } else if let Some(error) = cause.downcast_ref::<PyErr>() {
        (error.clone_ref(py), None)
    } else if let Some(error) = cause.downcast_ref::<ChannelError>() {
        (error.clone().into_exception(), None)
    } else if let Some(error) = cause.downcast_ref::<Malformed>() {
        (error.into_exception(), None)
    } else if let Some(error) = cause.downcast_ref::<pointstamp_recovery::Error>() {
        match error {
            pointstamp_recovery::Error::Operator { cause, .. } if cause.is::<Raised>() => {
                cause_of(py, cause)
            }
            _ => (error.into_exception(), None),
        }
    } else if let Some(error) = cause.downcast_ref::<pointstamp_operators::Error>() {
        (error.into_exception(), error.operator().map(str::to_owned))
    } else if let Some(error) = cause.downcast_ref::<CaptureError>() {
        (error.into_exception(), None)
    } else if let Some(error) = cause.downcast_ref::<ColumnsError>() {
        (error.into_exception(), None)
    } else if let Some(overflow) = cause.downcast_ref::<pointstamp_arrange::Overflow>() {
        (overflow.into_exception(), None)
    } else if let Some(error) = cause.downcast_ref::<ColumnError>() {
        (error.into_exception(), None)
    } else {
        (PointstampError::new_err(cause.to_string()), None)
    }
}

/// The exception for whatever a send raised.
#[allow(clippy::needless_pass_by_value, reason = "what `map_err` hands over")]
pub(crate) fn exception_of(py: Python<'_>, cause: BoxError) -> PyErr {
    let (error, operator) = cause_of(py, &cause);
    if let Some(operator) = operator {
        mark(py, &error, &operator);
    }
    error
}

/// Converts the error that ends the computation to an exception with a note of the operator that raised it,
/// and to the text for other processes, if there are any.
pub(crate) fn describe_error(
    py: Python<'_>,
    worker: usize,
    error: &Error,
    others: bool,
) -> (Error, String) {
    let (error, operator) = exception(py, error);
    add_note(py, &error, worker, operator.as_deref());
    let reason = if others {
        in_words(py, &error)
    } else {
        String::new()
    };
    let cause = Box::new(Raised { operator, error });
    (Error::Host { cause }, reason)
}

/// The attribute of an exception with the operator whose function raised it, until the note is made.
const MARK: &str = "__pointstamp_operator__";
/// The attribute with the note of the place that raised it; `pointstamp.errors` reads it.
const PLACE: &str = "__pointstamp_place__";

/// Remembers on an exception which operator's function raised it, for the note at the end.
fn mark(py: Python<'_>, error: &PyErr, operator: &str) {
    let _an_exception_without_attributes_gets_no_mark = error.value(py).setattr(MARK, operator);
}

/// Adds the note that says where an exception was raised, once.
fn add_note(py: Python<'_>, error: &PyErr, worker: usize, operator: Option<&str>) {
    static NOTES: PyOnceLock<Py<pyo3::types::PyString>> = PyOnceLock::new();
    let value = error.value(py);
    let marked = value
        .getattr(MARK)
        .ok()
        .and_then(|name| name.extract::<String>().ok());
    if marked.is_some() {
        let _gone = value.delattr(MARK);
    }
    let place = match marked.as_deref().or(operator) {
        Some(operator) => format!("in operator '{operator}'"),
        None => "in main".to_owned(),
    };
    if value.hasattr(PLACE).unwrap_or(false) {
        return;
    }
    let note = format!("raised {place} on worker {worker}");
    let name = NOTES
        .get_or_init(py, || pyo3::types::PyString::new(py, "__notes__").unbind())
        .bind(py);
    let present = value.getattr(name).ok();
    let notes = if let Some(notes) = present.and_then(|notes| notes.cast_into::<PyList>().ok()) {
        notes
    } else {
        let notes = PyList::empty(py);
        if value.setattr(name, &notes).is_err() {
            return; // an exception that takes no attributes takes no note
        }
        notes
    };
    let _a_list_takes_anything = notes.append(&note);
    let _it_has_taken_the_list = value.setattr(PLACE, note);
}

/// Formats an exception for readers without the object: a sentence, and under it the traceback.
fn in_words(py: Python<'_>, error: &PyErr) -> String {
    let described = || -> PyResult<String> {
        let describe = py.import("pointstamp.errors")?.getattr("in_words")?;
        describe
            .call1((error.value(py), error.traceback(py)))?
            .extract()
    };
    // An exception may have a `__str__` that raises.
    described().unwrap_or_else(|_| error.get_type(py).to_string())
}

/// A record in a message: shortened, and present even when its `repr` raises.
pub(crate) fn shown(record: &Bound<'_, PyAny>) -> String {
    const LONG: usize = 100;
    let Ok(text) = record.repr() else {
        return format!("<{}>", record.get_type());
    };
    let text = text.to_string();
    match text.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
