//! The line of the user's program that runs now.
//!
//! The innermost frame that is not this package's own. The properties of a code object (its file, and whether that is
//! ours) are kept by its address, with a weak reference, which shows whether the address is still its own. A program
//! that makes code as it runs, as every cell of a notebook does, keeps none of it here. Costs a few hundred
//! nanoseconds, most of them for the line's number.

use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyWeakrefMethods, PyWeakrefReference};
use rustc_hash::FxHashMap;

use crate::gil::Held;

/// The number of code objects that are remembered before those that no longer exist are removed.
const SWEEP: usize = 256;

/// The maximum number of frames of our own that are searched.
const DEPTH: usize = 12;

/// A line of a program; line 0 where it is not known.
#[pyclass(frozen, eq, hash, module = "pointstamp._core")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Line {
    pub(crate) file: Arc<str>,
    pub(crate) number: i32,
}

impl Line {
    /// No line.
    pub(crate) fn unknown() -> Self {
        Line {
            file: Arc::from(""),
            number: 0,
        }
    }
}

#[pymethods]
impl Line {
    /// The name of its file; empty where it is not known.
    #[getter]
    fn file(&self) -> &str {
        &self.file
    }

    /// Its number in the file, from 1; 0 where it is not known.
    #[getter]
    fn number(&self) -> i32 {
        self.number
    }

    /// Formats the line as `"file.py:12"`; empty where it is not known.
    #[getter]
    pub(crate) fn text(&self) -> String {
        match self.number {
            0 => String::new(),
            number => format!("{}:{number}", self.file),
        }
    }

    fn __repr__(&self) -> String {
        format!("<Line {}>", self.text())
    }
}

/// The owner of code.
#[derive(Clone)]
enum Whose {
    Theirs(Arc<str>),
    /// Code of this package: its caller is examined.
    Ours,
    /// Code of this package that steps or starts a worker: its caller did not make the object.
    Loop,
}

/// The code objects that are remembered.
#[derive(Default)]
pub(crate) struct Codes {
    known: FxHashMap<usize, (Whose, Held)>,
    sweep_at: usize,
}

impl Codes {
    /// The line of the user's program that this thread runs now.
    pub(crate) fn line(&mut self, py: Python<'_>) -> Line {
        // SAFETY: attached. The result is borrowed, or null where no Python code runs.
        let frame = unsafe { ffi::PyEval_GetFrame() };
        // SAFETY: as above; it becomes a reference of our own, while the thread stays attached and the frame runs.
        let frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, frame.cast()) };
        let mut frame = frame;
        for _ in 0..DEPTH {
            let Some(found) = frame else { break };
            // SAFETY: a frame object; the result is a new reference, and never null.
            let code = unsafe {
                Bound::from_owned_ptr(py, ffi::PyFrame_GetCode(found.as_ptr().cast()).cast())
            };
            match self.whose(&code) {
                Whose::Theirs(file) => {
                    // SAFETY: a frame object.
                    let number = unsafe { ffi::PyFrame_GetLineNumber(found.as_ptr().cast()) };
                    return Line { file, number };
                }
                Whose::Loop => break,
                Whose::Ours => {
                    let outer = found.getattr("f_back").ok();
                    frame = outer.filter(|outer| !outer.is_none());
                }
            }
        }
        Line::unknown()
    }

    fn whose(&mut self, code: &Bound<'_, PyAny>) -> Whose {
        let key = code.as_ptr() as usize;
        if let Some((whose, weak)) = self.known.get(&key)
            && is_there(code.py(), weak)
        {
            return whose.clone();
        }
        let name = code.getattr("co_filename").ok();
        let name = name.and_then(|name| Some(name.cast::<PyString>().ok()?.to_string()));
        let name = name.unwrap_or_default();
        let whose = match ours(&name) {
            Some("worker.py" | "execution.py") => Whose::Loop,
            Some(_) => Whose::Ours,
            None => Whose::Theirs(Arc::from(name.as_str())),
        };
        if self.known.len() >= self.sweep_at {
            self.known.retain(|_, (_, weak)| is_there(code.py(), weak));
            self.sweep_at = 2 * self.known.len() + SWEEP;
        }
        if let Ok(weak) = PyWeakrefReference::new(code) {
            let weak = Held::new(weak.into_any().unbind());
            self.known.insert(key, (whose.clone(), weak));
        }
        whose
    }
}

/// Whether the referent of a weak reference still exists.
fn is_there(py: Python<'_>, weak: &Held) -> bool {
    let weak = weak.get().bind(py).cast::<PyWeakrefReference>();
    weak.is_ok_and(|weak| weak.upgrade().is_some())
}

/// The name of a file within this package, if it is there.
fn ours(file: &str) -> Option<&str> {
    let (folder, name) = file.rsplit_once(['/', '\\'])?;
    let at = folder.rfind("pointstamp")?;
    // The package's own folder or one in it, not a folder of a clone of the repository.
    let rest = &folder[at + "pointstamp".len()..];
    let inner = rest.is_empty() || rest.starts_with(['/', '\\']);
    let before = &folder[..at];
    let package = before.ends_with("python/") || before.ends_with("site-packages/");
    (inner && package).then_some(name)
}
