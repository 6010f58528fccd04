//! The listener of a process while its cluster forms.
//!
//! Whoever connects is heard on a thread of his own, for a few seconds at most. There is a limit to how many are heard at once:
//! beyond it the one that came first is sent away, since those that belong here are done within milliseconds. Who has not
//! said who he is when the cluster has formed, or will not, is sent away too. All strangers are logged, up to a number.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
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
    /// Somebody has seen to it that this stranger is logged.
    told: Arc<AtomicBool>,
}

impl Heard {
    fn is_stranger(&self) -> bool {
        !self.proved.load(Ordering::Acquire)
    }
}

/// Says who was turned away.
struct Strangers {
    log: Log,
    count: Mutex<usize>,
}

impl Strangers {
    fn turned_away(&self, from: &str, why: &str) {
        let mut count = self.count.lock();
        *count += 1;
        if *count <= LOGGED {
            (self.log)(&format!("a stranger at {from} was turned away: {why}"));
        }
        if *count == LOGGED {
            (self.log)("further strangers are turned away without a word");
        }
    }
}

/// Where the other end of a connection is.
fn origin(socket: &TcpStream) -> String {
    let address = socket.peer_addr();
    address.map_or_else(|_| "nowhere".to_owned(), |address| address.to_string())
}

pub(crate) struct Gate {
    listener: TcpListener,
    local: Arc<Local>,
    events: Sender<Event>,
    strangers: Arc<Strangers>,
    heard: VecDeque<Heard>,
    next: u64,
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
            strangers: Arc::new(Strangers {
                log,
                count: Mutex::default(),
            }),
            heard: VecDeque::new(),
            next: 0,
            claimed: Arc::new(Mutex::new(vec![false; processes])),
        })
    }

    /// Begins to hear everybody who waits.
    pub(crate) fn admit(&mut self) {
        loop {
            match self.listener.accept() {
                Ok((socket, _)) => {
                    if let Err(error) = self.hear(socket) {
                        (self.strangers.log)(&format!("a connection could not be served: {error}"));
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
        let (proved, told) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        self.heard.push_back(Heard {
            number,
            socket: socket.try_clone()?,
            proved: Arc::clone(&proved),
            told: Arc::clone(&told),
        });
        let (local, events) = (Arc::clone(&self.local), self.events.clone());
        let (claimed, strangers) = (Arc::clone(&self.claimed), Arc::clone(&self.strangers));
        let thread = thread::Builder::new()
            .name("ptstamp-gate".to_owned())
            .spawn(move || {
                let from = origin(&socket);
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
                        if !told.swap(true, Ordering::AcqRel) {
                            strangers.turned_away(&from, &why);
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
            // Here: nobody may listen to the log any more when the thread finds the connection closed.
            if !heard.told.swap(true, Ordering::AcqRel) {
                let why = "it had not said who it is when the listener was closed";
                self.strangers.turned_away(&origin(&heard.socket), why);
            }
            let _ = heard.socket.shutdown(Shutdown::Both);
        }
    }
}

/// Makes a process's number its own, or says why not.
fn claim(claimed: &Mutex<Vec<bool>>, process: usize) -> Option<String> {
    let mut claimed = claimed.lock();
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
