//! The listener of a process while its cluster forms.
//!
//! Whoever connects is heard on a thread of his own, for a few seconds at most. There is a limit to how many are heard at once:
//! beyond it the one that came first is sent away, since those that belong here are done within milliseconds.

use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use socket2::SockRef;

use super::form::{Event, Log};
use super::handshake::{self, Failure, Local};

/// Connections that are heard at once.
const HEARD: usize = 64;
/// Strangers that are logged one by one.
const LOGGED: usize = 100;

/// A connection whose other end says who it is.
struct Heard {
    number: u64,
    socket: TcpStream,
    /// It has: the connection is not the gate's to end any more.
    proved: Arc<AtomicBool>,
}

impl Heard {
    fn is_stranger(&self) -> bool {
        !self.proved.load(Ordering::Acquire)
    }
}

pub(crate) struct Gate {
    listener: TcpListener,
    local: Arc<Local>,
    events: Sender<Event>,
    log: Log,
    heard: VecDeque<Heard>,
    next: u64,
    turned_away: Arc<Mutex<usize>>,
    claimed: Arc<Mutex<Vec<bool>>>,
}

impl Gate {
    /// A gate for as many processes as `local` says that there are.
    pub(crate) fn new(
        listener: TcpListener,
        local: Arc<Local>,
        events: Sender<Event>,
        log: Log,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        // What is accepted inherits it: the port can be bound again while old connections linger.
        #[cfg(unix)]
        SockRef::from(&listener).set_reuse_address(true)?;
        let processes = local.introduction.processes as usize;
        Ok(Gate {
            listener,
            local,
            events,
            log,
            heard: VecDeque::new(),
            next: 0,
            turned_away: Arc::default(),
            claimed: Arc::new(Mutex::new(vec![false; processes])),
        })
    }

    /// Begins to hear everybody who waits.
    pub(crate) fn admit(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => {
                    if let Err(error) = self.hear(socket) {
                        (self.log)(&format!("a connection could not be served: {error}"));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Whoever broke his connection off before it was accepted, or too many open files: try again later.
                Err(_) => return,
            }
        }
    }

    /// A connection has been heard to the end.
    pub(crate) fn done(&mut self, number: u64) {
        self.heard.retain(|heard| heard.number != number);
    }

    fn hear(&mut self, socket: TcpStream) -> io::Result<()> {
        socket.set_nonblocking(false)?;
        let mut strangers = (0..self.heard.len()).filter(|&at| self.heard[at].is_stranger());
        let oldest = strangers.next();
        if strangers.count() >= HEARD
            && let Some(oldest) = oldest.and_then(|at| self.heard.remove(at))
        {
            let _ = oldest.socket.shutdown(Shutdown::Both);
        }
        let number = self.next;
        self.next += 1;
        let proved = Arc::<AtomicBool>::default();
        self.heard.push_back(Heard {
            number,
            socket: socket.try_clone()?,
            proved: Arc::clone(&proved),
        });
        let (local, events, log) = (
            Arc::clone(&self.local),
            self.events.clone(),
            Arc::clone(&self.log),
        );
        let (claimed, turned_away) = (Arc::clone(&self.claimed), Arc::clone(&self.turned_away));
        let thread = thread::Builder::new()
            .name("ptstamp-gate".to_owned())
            .spawn(move || {
                let from = socket
                    .peer_addr()
                    .map_or_else(|_| "nowhere".to_owned(), |address| address.to_string());
                let claim = |process: usize| {
                    proved.store(true, Ordering::Release);
                    claim(&claimed, process)
                };
                let result = handshake::accept(socket, &local, &claim);
                let _ = events.send(Event::Heard(number));
                match result {
                    Ok(established) => {
                        let _ = events.send(Event::Established(established));
                    }
                    Err((
                        Some(process),
                        Failure::Broken(reason)
                        | Failure::Stranger(reason)
                        | Failure::Refused(reason),
                    )) => {
                        let _ = events.send(Event::Refused { process, reason });
                    }
                    Err((
                        None,
                        Failure::Broken(why) | Failure::Stranger(why) | Failure::Refused(why),
                    )) => {
                        let mut count = turned_away.lock().unwrap_or_else(PoisonError::into_inner);
                        *count += 1;
                        if *count <= LOGGED {
                            log(&format!("a stranger at {from} was turned away: {why}"));
                        }
                        if *count == LOGGED {
                            log("further strangers are turned away without a word");
                        }
                    }
                }
            });
        if thread.is_err() {
            self.done(number);
        }
        thread.map(drop)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        for heard in self.heard.iter().filter(|heard| heard.is_stranger()) {
            let _ = heard.socket.shutdown(Shutdown::Both);
        }
    }
}

/// Makes a process's number its own, or says why not.
fn claim(claimed: &Mutex<Vec<bool>>, process: usize) -> Option<String> {
    let mut claimed = claimed.lock().unwrap_or_else(PoisonError::into_inner);
    match claimed.get_mut(process) {
        None => Some(format!("there is no process {process}")),
        Some(true) => Some(format!(
            "another process is process {process} already: give every process a number of its own"
        )),
        Some(taken) => {
            *taken = true;
            None
        }
    }
}
