//! The exceptions of `pointstamp`, and the one place that turns errors of the other crates into them.
//!
//! The classes are declared in `python/pointstamp/errors.py` (several have two bases, and readers of Python look
//! there); the names below import them when first raised. Every `match` here names every variant: a new one does not
//! compile until its Python exception is decided. The engine's errors, which may hold a user's own exception, are in
//! `raised`.

use pointstamp_channels::ChannelError;
use pointstamp_columnar::Error as ColumnError;
use pointstamp_engine::payload::Malformed;
use pointstamp_net::FormError;
use pointstamp_progress as progress;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::import_exception;
use pyo3::prelude::*;

use crate::gil::attached;

import_exception!(pointstamp.errors, PointstampError);
import_exception!(pointstamp.errors, ConfigError);
import_exception!(pointstamp.errors, TimeError);
import_exception!(pointstamp.errors, CapabilityError);
import_exception!(pointstamp.errors, GraphError);
import_exception!(pointstamp.errors, ClusterError);
import_exception!(pointstamp.errors, CheckpointError);
import_exception!(pointstamp.errors, CodecError);
import_exception!(pointstamp.errors, TruncatedWarning);
import_exception!(pointstamp.errors, WorkerStopped);

/// Notes on a `ClusterError` the process that it is about, and whether its message has the exception that the
/// process raised.
pub(crate) fn of_process(error: PyErr, process: usize, raised: bool) -> PyErr {
    attached(|py| {
        let value = error.value(py);
        let set = value.setattr("process", process);
        let _an_exception_of_ours_has_attributes = set.and(value.setattr("raised", raised));
    });
    error
}

/// An error of another crate, as the exception that Python sees.
pub(crate) trait IntoException {
    /// The exception; its text is the error's own.
    fn into_exception(self) -> PyErr;
}

impl IntoException for progress::GraphError {
    fn into_exception(self) -> PyErr {
        let message = self.to_string();
        match self {
            Self::NoSuchNode { .. }
            | Self::NoSuchPort { .. }
            | Self::NoSuchPath { .. }
            | Self::GoesBack { .. }
            | Self::Cycle { .. }
            | Self::TooLarge { .. } => GraphError::new_err(message),
        }
    }
}

impl IntoException for pointstamp_arrange::Overflow {
    fn into_exception(self) -> PyErr {
        PyOverflowError::new_err(self.to_string())
    }
}

/// An error of columns, which may be an operator's cause.
impl IntoException for &ColumnError {
    fn into_exception(self) -> PyErr {
        let message = self.to_string();
        match self {
            ColumnError::NoColumn { .. }
            | ColumnError::Ambiguous { .. }
            | ColumnError::NoKey
            | ColumnError::Unhashable { .. }
            | ColumnError::NoAggregation { .. }
            | ColumnError::NoFew { .. }
            | ColumnError::NoShare { .. }
            | ColumnError::Unordered { .. }
            | ColumnError::Unaggregable { .. }
            | ColumnError::JoinTypes { .. }
            | ColumnError::Collision { .. }
            | ColumnError::NotTimes { .. }
            | ColumnError::NotBoolean { .. }
            | ColumnError::NotRunning { .. } => GraphError::new_err(message),
            ColumnError::NullTime
            | ColumnError::TimeBefore { .. }
            | ColumnError::TimeBeyond { .. } => TimeError::new_err(message),
            ColumnError::Schema(_) => PyTypeError::new_err(message),
            ColumnError::Beyond(_) => PyOverflowError::new_err(message),
            ColumnError::Unsendable { .. } | ColumnError::Unreadable { .. } => {
                CodecError::new_err(message)
            }
            ColumnError::TooManyKeys | ColumnError::Arrow(_) => PointstampError::new_err(message),
        }
    }
}

impl IntoException for ColumnError {
    fn into_exception(self) -> PyErr {
        (&self).into_exception()
    }
}

impl IntoException for ChannelError {
    fn into_exception(self) -> PyErr {
        let message = self.to_string();
        match self {
            // Workers find out here that they built different graphs.
            Self::TypeMismatch { .. } | Self::OpenedTwice { .. } => GraphError::new_err(message),
            Self::TooLong { .. } => CodecError::new_err(message),
        }
    }
}

impl IntoException for Malformed {
    fn into_exception(self) -> PyErr {
        CodecError::new_err(self.to_string())
    }
}

impl IntoException for FormError {
    fn into_exception(self) -> PyErr {
        let message = self.to_string();
        match self {
            Self::Timeout { .. } | Self::Bind { .. } | Self::Resources { .. } | Self::Cancelled => {
                ClusterError::new_err(message)
            }
            Self::Refused { process, .. } | Self::Abandoned { process, .. } => {
                of_process(ClusterError::new_err(message), process, false)
            }
            Self::Invalid(_) => ConfigError::new_err(message),
        }
    }
}
