//! Errors of captures as exceptions.

use pointstamp_operators::captures::CaptureError;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::errors::{CodecError, GraphError, IntoException};
use crate::gil::attached;
use crate::raised::{exception, exception_of};

impl IntoException for CaptureError {
    fn into_exception(self) -> PyErr {
        match self {
            CaptureError::Host(cause) => attached(|py| exception_of(py, cause)),
            other => (&other).into_exception(),
        }
    }
}

/// An error of a capture, which may be an operator's cause.
impl IntoException for &CaptureError {
    fn into_exception(self) -> PyErr {
        match self {
            CaptureError::File { error, path } => {
                let text = error.to_string();
                let text = text.split(" (os error").next().unwrap_or(&text).to_owned();
                PyOSError::new_err((error.raw_os_error(), text, path.clone()))
            }
            CaptureError::Link { error, path } => {
                let said = "A symbolic link is not written through: name the file that it leads to";
                PyOSError::new_err((error.raw_os_error(), said, path.clone()))
            }
            CaptureError::Busy { .. } => GraphError::new_err(self.to_string()),
            CaptureError::Damaged { .. }
            | CaptureError::Changed { .. }
            | CaptureError::Hollow { .. }
            | CaptureError::TooLong(_)
            | CaptureError::Host(_) => CodecError::new_err(self.to_string()),
            CaptureError::Columns(error) => error.into_exception(),
            CaptureError::Kind(error) => error.into_exception(),
            CaptureError::Engine(error) => attached(|py| exception(py, error).0),
        }
    }
}
