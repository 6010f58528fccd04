//! The connections of this process to the others of its cluster, from the time when they are made.
//!
//! Forming a cluster waits for other processes, on a thread of the program's: that thread checks for signals
//! meanwhile, and passes the reports of the threads that answer strangers to Python's `logging`; those never attach
//! themselves.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pointstamp_channels::Transport;
use pointstamp_net::{Member, Tls, form};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::IntoException;
use crate::gil::{attached, detached};
use crate::observability::diagnostics;

/// The connections of one process to all others.
#[pyclass(frozen, module = "pointstamp._core")]
pub(crate) struct Connections(Mutex<Option<Arc<dyn Transport>>>);

impl Connections {
    pub(crate) fn of(transport: Arc<dyn Transport>) -> Self {
        Connections(Mutex::new(Some(transport)))
    }

    /// The connections, for the one cluster that they are made for.
    pub(crate) fn take(&self) -> PyResult<Arc<dyn Transport>> {
        let mut transport = self.0.lock();
        transport
            .take()
            .ok_or_else(|| PyValueError::new_err("these connections have a cluster already"))
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        let transport = self.0.get_mut();
        if let Some(transport) = transport.take() {
            transport.close(); // it never became a cluster's
        }
    }
}

#[pymethods]
impl Connections {
    /// Connects this process with all others of its cluster, and proves it to them and them to it.
    ///
    /// Takes the file descriptor of a socket that listens, if there is one. Calls `log` with each thing that an operator
    /// of the network may want to know.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "called in one place, by keyword")]
    #[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
    #[pyo3(signature = (*, process, addresses, secret, tls, facts, connect_timeout, stall_timeout, listener, log))]
    fn new(
        py: Python<'_>,
        process: usize,
        addresses: Vec<String>,
        secret: Vec<u8>,
        tls: Option<(Vec<u8>, Vec<u8>, Vec<u8>)>,
        facts: Vec<(String, String)>,
        connect_timeout: f64,
        stall_timeout: f64,
        listener: Option<i64>,
        log: Py<PyAny>,
    ) -> PyResult<Self> {
        let listener = listener.map(own::<TcpListener>).transpose()?;
        let member = Member {
            process,
            addresses,
            secret,
            tls: tls.map(|(certificate, key, authority)| Tls {
                certificate,
                key,
                authority,
            }),
            facts,
            connect_timeout: seconds(connect_timeout)?,
            stall_timeout: seconds(stall_timeout)?,
        };
        let said = Arc::new(Mutex::new(Vec::new()));
        let say = {
            let said = Arc::clone(&said);
            move |message: &str| {
                let mut said = said.lock();
                if said.len() < MANY {
                    said.push(message.to_owned());
                }
            }
        };
        let pass_on = |py: Python<'_>| -> PyResult<()> {
            let messages: Vec<String> = std::mem::take(&mut *said.lock());
            for message in messages {
                log.bind(py).call1((message,))?;
            }
            diagnostics::pass_on(py);
            Ok(())
        };
        let raised = Mutex::new(None);
        let cancelled = || {
            let outcome = attached(|py| py.check_signals().and_then(|()| pass_on(py)));
            let mut raised = raised.lock();
            raised.is_some() || outcome.map_err(|error| *raised = Some(error)).is_err()
        };
        let formed = detached(py, || form(member, listener, Arc::new(say), &cancelled));
        let raised = raised.into_inner();
        match (raised, formed) {
            (None, Ok(transport)) => {
                let connections = Connections(Mutex::new(Some(transport)));
                pass_on(py)?;
                Ok(connections)
            }
            (Some(error), formed) => {
                if let Ok(transport) = formed {
                    detached(py, || transport.close());
                }
                Err(error)
            }
            (None, Err(error)) => {
                pass_on(py)?;
                Err(error.into_exception())
            }
        }
    }
}

/// The maximum number of messages that are kept until they are reported.
const MANY: usize = 1000;

/// Converts a number of seconds; one that is finite and too large for the clock is taken for an infinite one.
pub(crate) fn seconds(seconds: f64) -> PyResult<Duration> {
    if !seconds.is_finite() || seconds < 0.0 {
        return Err(PyValueError::new_err(format!(
            "{seconds} is not a number of seconds"
        )));
    }
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// Takes over a socket, by its file descriptor.
#[cfg(unix)]
pub(crate) fn own<T: From<std::os::fd::OwnedFd>>(descriptor: i64) -> PyResult<T> {
    use std::os::fd::{FromRawFd, OwnedFd, RawFd};
    let descriptor = RawFd::try_from(descriptor)
        .ok()
        .filter(|&descriptor| descriptor >= 0)
        .ok_or_else(|| PyValueError::new_err("not the descriptor of a socket"))?;
    // SAFETY: `socket.detach()` has given the descriptor up, and it is used for nothing else.
    Ok(T::from(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

/// Takes over a socket, by its handle.
#[cfg(windows)]
pub(crate) fn own<T: From<std::os::windows::io::OwnedSocket>>(descriptor: i64) -> PyResult<T> {
    use std::os::windows::io::{FromRawSocket, OwnedSocket, RawSocket};
    let socket = RawSocket::try_from(descriptor)
        .map_err(|_| PyValueError::new_err("not the handle of a socket"))?;
    // SAFETY: `socket.detach()` has given the handle up, and it is used for nothing else.
    Ok(T::from(unsafe { OwnedSocket::from_raw_socket(socket) }))
}
