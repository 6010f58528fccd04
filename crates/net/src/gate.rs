//! The listener of a process while its cluster forms.
//!
//! Each stranger that connects is handled on a thread of its own, for [`PATIENCE`](crate::handshake::PATIENCE) at most.
//! At most [`INTRODUCTIONS`] strangers are handled at once. Beyond that the oldest is closed, but not before it has had
//! [`GRACE`]: until then further ones wait in the operating system's queue, so that a flood makes legitimate peers
//! wait, and does not make them fail. A peer that has proved the secret is no stranger, and is not closed; a greeting
//! counts once, so that replays of it do not either. A stranger that has not introduced itself when the cluster has
//! formed, or will not, is closed, too. Strangers are logged: the first ones one by one, then in sums.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use socket2::SockRef;

use crate::handshake::{self, Admission, Failure, Local};
use crate::report::{Log, Report};

/// The number of strangers that are handled at once.
const INTRODUCTIONS: usize = 64;
/// The time that each stranger has to prove the secret, however many there are.
const GRACE: Duration = Duration::from_millis(200);
/// Strangers that are logged one by one.
const LOGGED: usize = 20;
/// The interval of the log line that counts further strangers.
const SUMMED: Duration = Duration::from_secs(10);

/// A connection that is being introduced.
struct Introduction {
    number: u64,
    since: Instant,
    socket: TcpStream,
    /// It has shown the secret: the connection is not the gate's to end any more.
    proved: Arc<AtomicBool>,
    /// A thread has seen to it that this stranger is logged.
    reported: Arc<AtomicBool>,
}

impl Introduction {
    fn is_stranger(&self) -> bool {
        !self.proved.load(Ordering::Acquire)
    }
}

/// Logs the connections that were refused.
struct Strangers {
    log: Log,
    count: Mutex<Count>,
}

struct Count {
    /// In all.
    all: usize,
    /// Since the last sum.
    unsaid: usize,
    said: Instant,
}

impl Strangers {
    fn new(log: Log) -> Self {
        let count = Count {
            all: 0,
            unsaid: 0,
            said: Instant::now(),
        };
        Strangers {
            log,
            count: Mutex::new(count),
        }
    }

    fn turned_away(&self, from: &str, why: &str) {
        let mut count = self.count.lock();
        count.all += 1;
        if count.all <= LOGGED {
            (self.log)(&format!("a stranger at {from} was turned away: {why}"));
            count.said = Instant::now();
            return;
        }
        count.unsaid += 1;
        if count.said.elapsed() >= SUMMED {
            self.sum(&mut count, &format!("; the last at {from}: {why}"));
        }
    }

    fn sum(&self, count: &mut Count, last: &str) {
        if count.unsaid > 0 {
            let more = count.unsaid;
            (self.log)(&format!("{more} more strangers were turned away{last}"));
            (count.unsaid, count.said) = (0, Instant::now());
        }
    }
}

/// The address of the other end of a connection.
fn origin(socket: &TcpStream) -> String {
    let address = socket.peer_addr();
    address.map_or_else(|_| "nowhere".to_owned(), |address| address.to_string())
}

/// State that the accepting threads share.
struct Shared {
    /// Fresh keys of greetings that showed the secret: there are as many as members have tried to come.
    greetings: Mutex<HashSet<[u8; 32]>>,
    claimed: Mutex<Vec<bool>>,
}

/// One connection's view of that.
struct Entry<'a> {
    shared: &'a Shared,
    proved: &'a AtomicBool,
}

impl Admission for Entry<'_> {
    fn greeted(&self, ephemeral: &[u8; 32]) -> bool {
        let fresh = self.shared.greetings.lock().insert(*ephemeral);
        self.proved.fetch_or(fresh, Ordering::AcqRel);
        fresh
    }

    fn claimed(&self, process: usize) -> Option<String> {
        match self.shared.claimed.lock().get_mut(process) {
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
}

pub(crate) struct Gate {
    listener: TcpListener,
    local: Arc<Local>,
    events: Sender<Report>,
    strangers: Arc<Strangers>,
    introductions: VecDeque<Introduction>,
    next: u64,
    shared: Arc<Shared>,
}

impl Gate {
    /// A gate for as many processes as `local` says that there are.
    pub(crate) fn new(
        listener: TcpListener,
        local: Arc<Local>,
        events: Sender<Report>,
        log: Log,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        // Accepted sockets inherit it: the port can be bound again while old connections linger.
        #[cfg(unix)]
        SockRef::from(&listener).set_reuse_address(true)?;
        let processes = local.introduction.processes as usize;
        Ok(Gate {
            listener,
            local,
            events,
            strangers: Arc::new(Strangers::new(log)),
            introductions: VecDeque::new(),
            next: 0,
            shared: Arc::new(Shared {
                greetings: Mutex::default(),
                claimed: Mutex::new(vec![false; processes]),
            }),
        })
    }

    /// Begins to read from waiting connections, as many as the limit permits.
    pub(crate) fn admit(&mut self) {
        while self.make_room() {
            match self.listener.accept() {
                Ok((socket, _)) => {
                    if let Err(error) = self.introduce(socket) {
                        (self.strangers.log)(&format!("a connection could not be served: {error}"));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // A connection that was broken off before it was accepted, or too many open files: try again later.
                Err(_) => return,
            }
        }
    }

    /// Whether another connection can be handled: the oldest of too many strangers is closed, once its time is
    /// over.
    fn make_room(&mut self) -> bool {
        let mut strangers =
            (0..self.introductions.len()).filter(|&at| self.introductions[at].is_stranger());
        let Some(oldest) = strangers
            .next()
            .filter(|_| strangers.count() + 1 >= INTRODUCTIONS)
        else {
            return true;
        };
        if self.introductions[oldest].since.elapsed() < GRACE {
            return false;
        }
        if let Some(oldest) = self.introductions.remove(oldest) {
            self.send_away(&oldest, "it said nothing while others waited");
        }
        true
    }

    fn send_away(&self, introduction: &Introduction, why: &str) {
        // Logged here: the log may have no listener any more when the thread finds the connection closed.
        if !introduction.reported.swap(true, Ordering::AcqRel) {
            self.strangers
                .turned_away(&origin(&introduction.socket), why);
        }
        let _ = introduction.socket.shutdown(Shutdown::Both);
    }

    /// Removes a connection whose introduction has ended.
    pub(crate) fn done(&mut self, number: u64) {
        self.introductions
            .retain(|introduction| introduction.number != number);
    }

    fn introduce(&mut self, socket: TcpStream) -> io::Result<()> {
        socket.set_nonblocking(false)?;
        let number = self.next;
        self.next += 1;
        let introduction = Introduction {
            number,
            since: Instant::now(),
            socket: socket.try_clone()?,
            proved: Arc::default(),
            reported: Arc::default(),
        };
        let (proved, reported) = (
            Arc::clone(&introduction.proved),
            Arc::clone(&introduction.reported),
        );
        let (local, events) = (Arc::clone(&self.local), self.events.clone());
        let (shared, strangers) = (Arc::clone(&self.shared), Arc::clone(&self.strangers));
        thread::Builder::new()
            .name("ptstamp-gate".to_owned())
            .spawn(move || {
                let from = origin(&socket);
                let entry = Entry {
                    shared: &shared,
                    proved: &proved,
                };
                let result = handshake::accept(socket, &local, &entry);
                let _ = events.send(Report::Done(number));
                match result {
                    Ok(established) => {
                        let _ = events.send(Report::Established(Box::new(established)));
                    }
                    Err((
                        process,
                        Failure::Broken(reason)
                        | Failure::Stranger(reason)
                        | Failure::Refused(reason),
                    )) => {
                        if let Some(process) = process {
                            let _ = events.send(Report::Refused { process, reason });
                        } else if !reported.swap(true, Ordering::AcqRel) {
                            strangers.turned_away(&from, &reason);
                        }
                    }
                }
            })?;
        self.introductions.push_back(introduction);
        Ok(())
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        for introduction in self
            .introductions
            .iter()
            .filter(|introduction| introduction.is_stranger())
        {
            self.send_away(
                introduction,
                "it had not said who it is when the listener was closed",
            );
        }
        self.strangers.sum(&mut self.strangers.count.lock(), "");
    }
}
