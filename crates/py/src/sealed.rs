//! One sealed conversation between two Python programs, for what is no cluster: Spark's driver, its resident processes and its tasks.
//!
//! It waits without the interpreter. Who receives on the main thread still hears of signals.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream;

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

#[pymethods]
impl SealedLink {
    /// Connects to who accepts there with the same secret and context.
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
        begun(py, &secret, context, patience, |party| {
            sealed::SealedLink::connect(host, port, party)
        })
    }

    /// Takes up a connection that was accepted, by the descriptor that its socket gave up.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn accept(
        py: Python<'_>,
        descriptor: i64,
        secret: PyBackedBytes,
        context: BTreeMap<String, String>,
        patience: f64,
    ) -> PyResult<Self> {
        let socket: TcpStream = own(descriptor)?;
        begun(py, &secret, context, patience, |party| {
            sealed::SealedLink::accept(socket, party)
        })
    }

    /// Sends a message; waits while the other end takes nothing.
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn send(&self, py: Python<'_>, message: PyBackedBytes) -> PyResult<()> {
        Ok(detached(py, || self.0.send(&[&message]))?)
    }

    /// The next message, of at most `most` bytes; None when the other end has closed.
    fn receive<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut interrupted = None;
        let received = detached(py, || {
            self.0.receive(most, &mut || {
                #[allow(
                    clippy::redundant_closure_for_method_calls,
                    reason = "the method alone is for one lifetime"
                )]
                let heard = attached(|py| py.check_signals());
                heard.map_err(|error| {
                    interrupted = Some(error);
                    io::ErrorKind::Interrupted.into()
                })
            })
        });
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
