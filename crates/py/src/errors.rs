//! The exceptions of `pointstamp`, and the one place that turns errors of the other crates into them.
//!
//! The classes are declared in `python/pointstamp/_errors.py` (several have two bases, and readers
//! of Python look there); the names below import them when first raised. Every `match` here names
//! every variant: a new one does not compile until someone has decided what Python sees. A user's
//! own exception never comes through here; it stays the object that was raised.

use pyo3::import_exception;

import_exception!(pointstamp._errors, PointstampError);
import_exception!(pointstamp._errors, ConfigError);
import_exception!(pointstamp._errors, TimeError);
import_exception!(pointstamp._errors, CapabilityError);
import_exception!(pointstamp._errors, GraphError);
import_exception!(pointstamp._errors, ClusterError);
import_exception!(pointstamp._errors, CodecError);
