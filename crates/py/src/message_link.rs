//! Messages between two Python programs that are no cluster: a program, the processes that it starts, Spark's driver and its tasks.
//!
//! Waiting happens without the interpreter. Calls on the main thread run the handlers of signals meanwhile.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream;

use parking_lot::Mutex;
use pointstamp_net::message_link::{Party, Refusal};
use pointstamp_net::{Secret, message_link};
use pyo3::exceptions::{PyConnectionError, PyPermissionError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::connections::{own, seconds};
use crate::gil::{attached, detached};

/// One end of a link between two programs, which carries messages of bytes.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct MessageLink(message_link::MessageLink);

fn raised(refusal: &Refusal) -> PyErr {
    let why = refusal.to_string();
    match refusal {
        Refusal::Unreachable(_) => PyConnectionError::new_err(why),
        Refusal::Stranger(_) | Refusal::Differs(_) => PyPermissionError::new_err(why),
    }
}

/// Makes a link without the interpreter.
fn begun(
    py: Python<'_>,
    secret: &PyBackedBytes,
    context: BTreeMap<String, String>,
    patience: f64,
    begin: impl FnOnce(&Party) -> Result<message_link::MessageLink, Refusal> + Send,
) -> PyResult<MessageLink> {
    let patience = seconds(patience)?;
    let link = detached(py, || {
        begin(&Party {
            secret: Secret::new(secret),
            context,
            patience,
        })
    });
    link.map(MessageLink).map_err(|refusal| raised(&refusal))
}

/// Runs the handlers of signals while a call waits. Other threads than the main one run none, and do not attach for that.
struct Signals {
    on_main_thread: bool,
    raised: Option<PyErr>,
}

impl Signals {
    fn new(py: Python<'_>) -> PyResult<Self> {
        let threading = py.import("threading")?;
        let here = threading.call_method0("get_ident")?;
        let main = threading.call_method0("main_thread")?.getattr("ident")?;
        Ok(Signals {
            on_main_thread: here.eq(main)?,
            raised: None,
        })
    }

    /// Runs the handlers of pending signals; keeps the exception of one, and ends the wait.
    fn check(&mut self) -> io::Result<()> {
        if !self.on_main_thread {
            return Ok(());
        }
        #[allow(
            clippy::redundant_closure_for_method_calls,
            reason = "the method alone is for one lifetime"
        )]
        let checked = attached(|py| py.check_signals());
        checked.map_err(|error| {
            self.raised = Some(error);
            io::ErrorKind::Interrupted.into()
        })
    }

    /// Returns the exception of a handler, or else the outcome of the call.
    fn or<T, E: Into<PyErr>>(self, outcome: Result<T, E>) -> PyResult<T> {
        self.raised.map_or(outcome.map_err(Into::into), Err)
    }
}

#[pymethods]
impl MessageLink {
    /// Connects to the program that accepts there with the same secret and context. Signals interrupt it.
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
        let mut signals = Signals::new(py)?;
        let link = begun(py, &secret, context, patience, |party| {
            message_link::MessageLink::connect(host, port, party, &mut || signals.check())
        });
        signals.or(link)
    }

    /// Takes up a connection that was accepted, by the descriptor that its socket gave up.
    ///
    /// Calls `fresh` with the key that the other end made to greet with, once it has proved the secret; refuses it
    /// where that returns False: the greeting is a replay.
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
            message_link::MessageLink::accept(socket, party, &|key| {
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

    /// Takes one end of a socket pair, by the descriptor that its socket gave up.
    #[staticmethod]
    fn inherited(descriptor: i64) -> PyResult<Self> {
        Ok(MessageLink(message_link::MessageLink::inherited(own(
            descriptor,
        )?)?))
    }

    /// Sends a message; waits while the other end takes nothing.
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    fn send(&self, py: Python<'_>, message: PyBackedBytes) -> PyResult<()> {
        let mut signals = Signals::new(py)?;
        let sent = detached(py, || self.0.send(&[&message], &mut || signals.check()));
        signals.or(sent)
    }

    /// The next message, of at most `most` bytes; None when the other end has closed.
    fn receive<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut signals = Signals::new(py)?;
        let received = detached(py, || self.0.receive(most, &mut || signals.check()));
        let message = signals.or(received)?;
        Ok(message.map(|message| PyBytes::new(py, &message)))
    }

    /// Ends the link, for both ends and for the threads that wait in it.
    fn close(&self, py: Python<'_>) {
        detached(py, || self.0.close());
    }
}
