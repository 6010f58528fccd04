//! Forms a cluster: every process listens, and connects to the processes with lower numbers.
//!
//! A process that is connected to all others says so to each of them, and the cluster has formed for it once all have said so:
//! no process begins while another may still fail to come. A process that gives up says why, and then all give up.

use parking_lot::Mutex;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use super::dial::Dial;
use super::error::{FormError, Invalid};
use super::frame::{self, FrameReader, Kind, ReadError};
use super::gate::Gate;
use super::handshake::{Established, Local, PATIENCE};
use super::introduction::Introduction;
use super::mesh::Mesh;
use super::noise::VERSION;
use super::report::{Log, Report};
use super::secret::Secret;
use super::tls::{Identity, Tls};
use super::wire::{Incoming, Wire};
use pointstamp_channels::{Farewell, Reason, Transport};

/// The interval at which the thread polls sources that do not wake it: the listener, the connections, the
/// caller's wish to stop.
const TICK: Duration = Duration::from_millis(5);

/// The time that other processes have to report why a process ended without a farewell.
const CAUSE: Duration = Duration::from_secs(1);

/// Practically for ever: 30 years.
pub(crate) const FOREVER: Duration = Duration::from_secs(30 * 365 * 86400);
/// The purpose of a cluster's connections, as a term of the handshake.
pub(crate) const PURPOSE: &str = "the connections of a cluster";

/// A process that is to be a member of a cluster.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its number.
    pub process: usize,
    /// The address of every process, as `host:port`, in the order of their numbers.
    pub addresses: Vec<String>,
    /// The secret that the processes share.
    pub secret: Vec<u8>,
    /// Certificates, where the network is not trusted.
    pub tls: Option<Tls>,
    /// Facts that must be equal on all processes, by name: a difference is refused, with a sentence that
    /// names it.
    pub facts: Vec<(String, String)>,
    /// The time to wait for all processes.
    pub connect_timeout: Duration,
    /// The time that a process may send nothing, or take nothing, before it counts as lost.
    pub stall_timeout: Duration,
}

/// Forms the cluster, and waits until all of its processes are connected to all others.
///
/// Listens at this process's own address, or with `listener` where one is given; either way it is closed when this
/// returns. Events of strangers are logged to `log`. `cancelled` is called repeatedly while this waits.
///
/// # Errors
///
/// [`FormError`]; the other processes get the reason, as far as they are connected.
pub fn form(
    member: Member,
    listener: Option<TcpListener>,
    log: Log,
    cancelled: &dyn Fn() -> bool,
) -> Result<Arc<dyn Transport>, FormError> {
    form_as(member, VERSION, listener, log, cancelled)
}

/// Forms a cluster as [`form`] does, with a version of the wire format that may be another one.
pub(crate) fn form_as(
    mut member: Member,
    version: u16,
    listener: Option<TcpListener>,
    log: Log,
    cancelled: &dyn Fn() -> bool,
) -> Result<Arc<dyn Transport>, FormError> {
    // No clock and no socket counts further than this.
    member.connect_timeout = member.connect_timeout.min(FOREVER);
    member.stall_timeout = member.stall_timeout.min(FOREVER);
    let local = Arc::new(local(&member, version)?);
    let mut forming = Forming::begin(member, &local, listener, log)?;
    match forming.run(cancelled) {
        Ok(()) => {}
        Err(error) => {
            forming.give_up(&error);
            return Err(error);
        }
    }
    let peers = std::mem::take(&mut forming.peers);
    let member = forming.member.clone();
    drop(forming); // and with it the listener
    let connections = peers.into_iter().enumerate().filter_map(|(process, peer)| {
        let Peer {
            incoming, frames, ..
        } = peer?;
        Some((process, incoming, frames))
    });
    Mesh::new(
        member.process,
        member.addresses,
        connections.collect(),
        member.stall_timeout,
    )
    .map(|mesh| Arc::new(mesh) as Arc<dyn Transport>)
    .map_err(|source| FormError::Resources {
        what: "the connections cannot be served",
        source,
    })
}

/// Checks a configuration.
fn local(member: &Member, version: u16) -> Result<Local, FormError> {
    let processes = member.addresses.len();
    let process = member.process;
    if process >= processes {
        return Err(Invalid::NoSuchProcess { process, processes }.into());
    }
    if member.secret.is_empty() {
        return Err(Invalid::NoSecret.into());
    }
    if member.stall_timeout < Duration::from_millis(10) {
        return Err(Invalid::StallTimeout.into());
    }
    let introduction = Introduction {
        process: u32::try_from(member.process).unwrap_or(u32::MAX),
        expects: None,
        processes: u32::try_from(processes).unwrap_or(u32::MAX),
        facts: member.facts.iter().cloned().collect(),
    };
    if introduction.to_bytes().is_none() {
        return Err(Invalid::Facts.into());
    }
    let identity = member
        .tls
        .as_ref()
        .map(Identity::new)
        .transpose()
        .map_err(Invalid::Tls)?;
    Ok(Local {
        secret: Secret::new(&member.secret),
        purpose: PURPOSE,
        identity,
        introduction,
        version,
        patience: PATIENCE,
    })
}

/// Another process that is there.
struct Peer {
    incoming: Incoming,
    frames: FrameReader,
    /// It has said that it is connected to all.
    formed: bool,
}

struct Forming {
    member: Member,
    /// By process; none for this one.
    peers: Vec<Option<Peer>>,
    /// The reasons why the processes to connect to could not be reached.
    failures: Vec<Arc<Mutex<Option<String>>>>,
    gate: Gate,
    events: Receiver<Report>,
    stop: Arc<AtomicBool>,
    began: Instant,
    /// This process has said that it is connected to all.
    announced: bool,
    /// A connection that ended without a word, and since when that is known: others may still say why.
    wordless: Option<(FormError, Instant)>,
}

impl Drop for Forming {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Forming {
    /// Listens, and begins to connect.
    fn begin(
        member: Member,
        local: &Arc<Local>,
        listener: Option<TcpListener>,
        log: Log,
    ) -> Result<Self, FormError> {
        let began = Instant::now();
        let address = &member.addresses[member.process];
        tracing::info!(
            process = member.process,
            processes = member.addresses.len(),
            address = %address,
            tls = member.tls.is_some(),
            "a cluster forms"
        );
        let (sender, events) = mpsc::channel();
        let gate = listener
            .map_or_else(|| TcpListener::bind(address), Ok)
            .and_then(|listener| Gate::new(listener, Arc::clone(local), sender.clone(), log))
            .map_err(|source| FormError::Bind {
                process: member.process,
                address: address.clone(),
                source,
            })?;
        let forming = Forming {
            peers: member.addresses.iter().map(|_| None).collect(),
            failures: member.addresses.iter().map(|_| Arc::default()).collect(),
            gate,
            events,
            stop: Arc::default(),
            began,
            announced: false,
            wordless: None,
            member,
        };
        for process in 0..forming.member.process {
            forming.dial(process, local, &sender)?;
        }
        Ok(forming)
    }

    /// Connects to a process on a thread of its own, which outlives this call by no more than an attempt.
    fn dial(
        &self,
        process: usize,
        local: &Arc<Local>,
        events: &Sender<Report>,
    ) -> Result<(), FormError> {
        let dial = Dial {
            process,
            address: self.member.addresses[process].clone(),
            local: Arc::clone(local),
            until: self.began + self.member.connect_timeout,
            stop: Arc::clone(&self.stop),
            last: Arc::clone(&self.failures[process]),
        };
        thread::Builder::new()
            .name(format!("ptstamp-dial-{process}"))
            .spawn({
                let events = events.clone();
                move || dial.run(&events)
            })
            .map(drop)
            .map_err(|source| FormError::Resources {
                what: "no thread can be started to connect",
                source,
            })
    }

    /// Waits until all have said that they are connected to all.
    fn run(&mut self, cancelled: &dyn Fn() -> bool) -> Result<(), FormError> {
        loop {
            self.gate.admit();
            self.listen()?;
            if !self.announced && self.others().all(|process| self.peers[process].is_some()) {
                self.announce()?;
            }
            let formed =
                |process: usize| self.peers[process].as_ref().is_some_and(|peer| peer.formed);
            if self.announced && self.others().all(formed) {
                let after = self.began.elapsed();
                tracing::info!(
                    process = self.member.process,
                    ?after,
                    "the cluster has formed"
                );
                return self.wait_again();
            }
            let late = self.began.elapsed() >= self.member.connect_timeout;
            let wordless = &mut self.wordless;
            if let Some((error, _)) =
                wordless.take_if(|(_, since)| late || since.elapsed() >= CAUSE)
            {
                return Err(error);
            }
            if late {
                return Err(self.timed_out());
            }
            if cancelled() {
                return Err(FormError::Cancelled);
            }
            match self.events.recv_timeout(TICK) {
                Ok(event) => self.on_event(event)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.member.process;
        (0..self.member.addresses.len()).filter(move |&process| process != own)
    }

    fn on_event(&mut self, event: Report) -> Result<(), FormError> {
        match event {
            Report::Established(established) => {
                let Established { process, incoming } = *established;
                tracing::info!(process, address = %self.address(process), "a process has joined");
                let ready = incoming.wire().socket().set_nonblocking(true);
                ready.map_err(|error| self.abandoned(process, error.to_string()))?;
                self.peers[process] = Some(Peer {
                    incoming,
                    frames: FrameReader::new(),
                    formed: false,
                });
                Ok(())
            }
            Report::Refused { process, reason } => Err(FormError::Refused {
                process,
                address: self.address(process),
                reason,
            }),
            Report::Done(number) => {
                self.gate.done(number);
                Ok(())
            }
        }
    }

    fn address(&self, process: usize) -> String {
        let address = self.member.addresses.get(process);
        address.map_or_else(|| "at no known address".to_owned(), Clone::clone)
    }

    fn abandoned(&self, process: usize, reason: String) -> FormError {
        FormError::Abandoned {
            process,
            address: self.address(process),
            reason,
        }
    }

    /// Takes the greetings of connected processes.
    fn listen(&mut self) -> Result<(), FormError> {
        for process in self.others() {
            let Some(peer) = self.peers[process].as_mut().filter(|peer| !peer.formed) else {
                continue;
            };
            let (origin, why) = match peer.frames.next(&mut peer.incoming) {
                Ok(frame) if frame.kind == Kind::Formed => {
                    peer.formed = true;
                    continue;
                }
                Ok(frame) => match frame::farewell(&frame) {
                    Some(Farewell::Failed { origin, reason }) => {
                        (origin as usize, reason.text().to_owned())
                    }
                    _ => (
                        process,
                        "it sent what belongs into a formed cluster".to_owned(),
                    ),
                },
                Err(ReadError::Io(error)) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error @ ReadError::Malformed(_)) => (process, error.to_string()),
                Err(error) => {
                    // It has left before it could report the reason, or its report was lost with the connection. The
                    // others will report the failed process: they have left for the same reason.
                    let error = self.abandoned(process, error.to_string());
                    self.peers[process] = None;
                    self.wordless.get_or_insert((error, Instant::now()));
                    continue;
                }
            };
            // The process that reports it has lost this one, or has the report of another one, which failed.
            let known = self.others().any(|other| other == origin);
            let why = if origin == self.member.process {
                format!("it lost this process: {why}")
            } else {
                why
            };
            return Err(self.abandoned(if known { origin } else { process }, why));
        }
        Ok(())
    }

    fn announce(&mut self) -> Result<(), FormError> {
        self.announced = true;
        for process in self.others() {
            if let Some(peer) = &self.peers[process]
                && let Err(error) = peer
                    .incoming
                    .wire()
                    .write_all(&frame::header(Kind::Formed, 0))
            {
                return Err(self.abandoned(process, error.to_string()));
            }
        }
        Ok(())
    }

    /// Makes reads and writes blocking.
    fn wait_again(&self) -> Result<(), FormError> {
        for process in self.others() {
            if let Some(peer) = &self.peers[process] {
                let result = peer.incoming.wire().socket().set_nonblocking(false);
                result.map_err(|error| self.abandoned(process, error.to_string()))?;
            }
        }
        Ok(())
    }

    fn timed_out(&self) -> FormError {
        let absent = |process: &usize| self.peers[*process].is_none();
        let mut missing: Vec<_> = self
            .others()
            .filter(absent)
            .map(|process| {
                let last = self.failures[process].lock();
                let why = last
                    .as_ref()
                    .map_or_else(String::new, |why| format!(": {why}"));
                format!(
                    "process {process} ({}{why})",
                    self.member.addresses[process]
                )
            })
            .collect();
        if missing.is_empty() {
            let waits = |process: &usize| {
                self.peers[*process]
                    .as_ref()
                    .is_some_and(|peer| !peer.formed)
            };
            let name = |process| {
                format!(
                    "process {process} ({}: it waits for others)",
                    self.member.addresses[process]
                )
            };
            missing = self.others().filter(waits).map(name).collect();
        }
        FormError::Timeout {
            after: self.member.connect_timeout,
            missing,
        }
    }

    /// Sends the connected processes a farewell with the reason: the failure of another process, in its own
    /// words, where that is the cause.
    fn give_up(&mut self, error: &FormError) {
        tracing::info!(process = self.member.process, %error, "the cluster does not form");
        while let Ok(event) = self.events.try_recv() {
            let _told_below = self.on_event(event); // a peer that has just connected must receive it, too
        }
        let (origin, why) = match error {
            FormError::Abandoned {
                process, reason, ..
            } => (*process, reason.clone()),
            error => (self.member.process, error.to_string()),
        };
        let (kind, body) = frame::of_farewell(&Farewell::Failed {
            origin: u32::try_from(origin).unwrap_or(u32::MAX),
            reason: Reason::Lost(why),
        });
        let len = u32::try_from(body.len()).expect("limited");
        let bytes = [&frame::header(kind, len)[..], &body].concat();
        for peer in self.peers.iter().flatten() {
            let wire: &Wire = peer.incoming.wire();
            let _ = wire.write_all(&bytes);
            wire.end_writing();
        }
    }
}
