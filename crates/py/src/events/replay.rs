//! Playing captures into a scope.

use pointstamp_engine::error::UserResult;
use pointstamp_operators::captures::{self, Source};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::feed::EventFeed;
use crate::capture::EventQueue;
use crate::errors::{IntoException, TruncatedWarning};
use crate::gil::attached;
use crate::kinds::StreamKind;
use crate::raised::Raised;
use crate::scope::Scope;
use crate::stream::Stream;

/// Plays captures into a scope: feeds, which were claimed for it, and queues in memory.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn replay(
    scope: &Scope,
    captures: Vec<Bound<'_, PyAny>>,
    kind: StreamKind,
) -> PyResult<Stream> {
    let sources = captures.iter().map(|capture| {
        if let Ok(queue) = capture.cast::<EventQueue>() {
            Ok(Source::Memory(queue.get().queue.clone()))
        } else if let Ok(feed) = capture.cast::<EventFeed>() {
            Ok(Source::Feed(feed.get().feed.clone()))
        } else {
            Err(PyTypeError::new_err("a capture is a queue or a feed"))
        }
    });
    let sources = sources.collect::<PyResult<Vec<_>>>()?;
    let played = captures::replay(scope.scope.get()?, sources, warn);
    let played = played.map_err(IntoException::into_exception)?;
    Ok(Stream::plain(scope.scope.home(), kind.into(), played))
}

/// Warns of a capture that ends before its stream.
#[allow(clippy::needless_pass_by_value, reason = "what a replay hands over")]
fn warn(text: String) -> UserResult<()> {
    let warned = attached(|py| {
        let category = py.get_type::<TruncatedWarning>();
        let text = std::ffi::CString::new(text.replace('\0', " ")).unwrap_or_default();
        PyErr::warn(py, &category, &text, 1)
    });
    warned.map_err(Raised::here)
}
