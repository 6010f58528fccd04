//! The end of a process with the one that has started it.
//!
//! The parent holds the other end of a socket and sends nothing on it. The socket is closed when the parent ends, also by `kill -9`. It
//! is watched by a thread that needs no interpreter: a function of the program's may keep that for long. (Linux has a signal for this,
//! `PR_SET_PDEATHSIG`, which the children of the process would not get; other systems do not.)

use pyo3::prelude::*;

/// Kills this process and its group once the parent's end of a socket is closed. The process must lead its group, and gives
/// the descriptor away.
#[pyfunction]
#[cfg(unix)]
pub(crate) fn end_with_parent(descriptor: i32) -> PyResult<()> {
    use std::io::{ErrorKind, Read};
    use std::os::fd::FromRawFd;
    use std::os::unix::net::UnixStream;

    // SAFETY: the descriptor is an open one of the caller's, which does not use it again.
    let mut parent = unsafe { UnixStream::from_raw_fd(descriptor) };
    let watch = move || {
        loop {
            match parent.read(&mut [0]) {
                Ok(1..) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
            }
        }
        // SAFETY: it sends a signal.
        unsafe { libc::kill(0, libc::SIGKILL) };
    };
    let thread = std::thread::Builder::new().name("pointstamp-parent".to_owned());
    thread.spawn(watch)?;
    Ok(())
}

/// Refuses: there are no process groups.
#[pyfunction]
#[cfg(not(unix))]
pub(crate) fn end_with_parent(_descriptor: i32) -> PyResult<()> {
    Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into())
}
