//! The exceptions of `pointstamp`, and the one place that turns errors of the other crates into them.
//!
//! The classes are declared in `python/pointstamp/_errors.py` (several have two bases, and readers
//! of Python look there); the names below import them when first raised. Every `match` here names
//! every variant: a new one does not compile until someone has decided what Python sees. A user's
//! own exception never comes through here; it stays the object that was raised.

use pointstamp_progress as progress;
use pyo3::{PyErr, import_exception};

import_exception!(pointstamp._errors, PointstampError);
import_exception!(pointstamp._errors, ConfigError);
import_exception!(pointstamp._errors, TimeError);
import_exception!(pointstamp._errors, CapabilityError);
import_exception!(pointstamp._errors, GraphError);
import_exception!(pointstamp._errors, ClusterError);
import_exception!(pointstamp._errors, CodecError);

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
            | Self::Cycle { .. }
            | Self::TooLarge { .. } => GraphError::new_err(message),
        }
    }
}
