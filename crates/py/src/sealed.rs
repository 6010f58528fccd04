//! One sealed conversation between two Python programs, for what is no cluster: Spark's driver, its resident processes and its tasks.
//!
//! It waits without the interpreter. Who connects or receives on the main thread still hears of signals.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream;

use parking_lot::Mutex;
use pointstamp_net::sealed::{Party, Refusal};
use pointstamp_net::{Secret, sealed};
use pyo3::exceptions::{PyConnectionError, PyPermissionError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::connections::{own, seconds};
use crate::gil::{attached, detached};

/// A conversation, both ends of which have proved themselves; all that is said is encrypted and authenticated.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct SealedLink(sealed::SealedLink);

fn raised(refusal: &Refusal) -> PyErr {
    let why = refusal.to_string();
    match refusal {
        Refusal::Unreachable(_) => PyConnectionError::new_err(why),
        Refusal::Stranger(_) | Refusal::Differs(_) => PyPermissionError::new_err(why),
    }
}

/// Makes a conversation without the interpreter.
fn begun(
    py: Python<'_>,
    secret: &PyBackedBytes,
    context: BTreeMap<String, String>,
    patience: f64,
    begin: impl FnOnce(&Party) -> Result<sealed::SealedLink, Refusal> + Send,
) -> PyResult<SealedLink> {
    let patience = seconds(patience)?;
    let link = detached(py, || {
        begin(&Party {
            secret: Secret::new(secret),
            context,
            patience,
        })
    });
    link.map(SealedLink).map_err(|refusal| raised(&refusal))
}

/// Runs the handlers of signals that have come; keeps what one raised, and says that it did.
fn heard(interrupted: &mut Option<PyErr>) -> io::Result<()> {
    #[allow(
        clippy::redundant_closure_for_method_calls,
        reason = "the method alone is for one lifetime"
    )]
    let heard = attached(|py| py.check_signals());
    heard.map_err(|error| {
        *interrupted = Some(error);
        io::ErrorKind::Interrupted.into()
    })
}

#[pymethods]
impl SealedLink {
    /// Connects to who accepts there with the same secret and context. It hears of signals.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn connect(
        py: Python<'_>,
        host: &str,
        port: u16,
        secret: PyBackedBytes,
        context: BTreeMap<String, String>,
        patience: f64,
    ) -> PyResult<Self> {
        let mut interrupted = None;
        let link = begun(py, &secret, context, patience, |party| {
            sealed::SealedLink::connect(host, port, party, &mut || heard(&mut interrupted))
        });
        interrupted.map_or(link, Err)
    }

    /// Takes up a connection that was accepted, by the descriptor that its socket gave up.
    ///
    /// Calls `fresh` with the key that the other end made to greet with, once it has shown the secret; refuses it where that says
    /// False: what it said was said before.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn accept(
        py: Python<'_>,
        descriptor: i64,
        secret: PyBackedBytes,
        context: BTreeMap<String, String>,
        patience: f64,
        fresh: Py<PyAny>,
    ) -> PyResult<Self> {
        let socket: TcpStream = own(descriptor)?;
        let raised = Mutex::new(None);
        let link = begun(py, &secret, context, patience, |party| {
            sealed::SealedLink::accept(socket, party, &|key| {
                let answer =
                    attached(|py| fresh.bind(py).call1((PyBytes::new(py, key),))?.is_truthy());
                answer.unwrap_or_else(|error| {
                    *raised.lock() = Some(error);
                    false
                })
            })
        });
        let raised = raised.into_inner();
        raised.map_or(link, Err)
    }

    /// Sends a message; waits while the other end takes nothing.
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn send(&self, py: Python<'_>, message: PyBackedBytes) -> PyResult<()> {
        Ok(detached(py, || self.0.send(&[&message]))?)
    }

    /// The next message, of at most `most` bytes; None when the other end has closed.
    fn receive<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut interrupted = None;
        let received = detached(py, || self.0.receive(most, &mut || heard(&mut interrupted)));
        match (interrupted, received) {
            (Some(error), _) => Err(error),
            (None, received) => Ok(received?.map(|message| PyBytes::new(py, &message))),
        }
    }

    /// Ends the conversation, for both ends and for who waits in it.
    fn close(&self, py: Python<'_>) {
        detached(py, || self.0.close());
    }
}
