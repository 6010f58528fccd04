//! Connects a process to one with a lower number, and tries until that one is there.

use parking_lot::Mutex;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use super::handshake::{self, Established, Failure, Local};
use super::report::Report;

/// One attempt to connect takes at most this long.
const ATTEMPT: Duration = Duration::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// The attempts of a process to reach another one.
pub(crate) struct Dial {
    pub(crate) process: usize,
    pub(crate) address: String,
    pub(crate) local: Arc<Local>,
    pub(crate) until: Instant,
    pub(crate) stop: Arc<AtomicBool>,
    /// Why the last attempt failed.
    pub(crate) last: Arc<Mutex<Option<String>>>,
}

impl Dial {
    /// Tries until it succeeds, is stopped, or the time is over.
    pub(crate) fn run(&self, events: &Sender<Report>) {
        let mut pause = FIRST_PAUSE;
        while !self.stop.load(Ordering::Relaxed) && Instant::now() < self.until {
            let why = match self.attempt() {
                Ok(established) => {
                    let _ = events.send(Report::Established(Box::new(established)));
                    return;
                }
                Err(Failure::Refused(reason)) => {
                    let process = self.process;
                    let _ = events.send(Report::Refused { process, reason });
                    return;
                }
                Err(Failure::Broken(why) | Failure::Stranger(why)) => why,
            };
            let mut last = self.last.lock();
            if last.as_ref() != Some(&why) {
                let (process, address) = (self.process, &self.address);
                tracing::debug!(process, %address, %why, "a process is not reached yet: it is dialled again");
            }
            *last = Some(why);
            drop(last);
            thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn attempt(&self) -> Result<Established, Failure> {
        let addresses = self
            .address
            .to_socket_addrs()
            .map_err(|error| Failure::Broken(format!("its name cannot be resolved: {error}")))?;
        let mut last = Failure::Broken("its name has no address".to_owned());
        for address in addresses {
            let left = self
                .until
                .saturating_duration_since(Instant::now())
                .min(ATTEMPT);
            match TcpStream::connect_timeout(&address, left.max(FIRST_PAUSE)) {
                // A port of this host without a listener may, by chance, be connected to itself.
                Ok(socket) if socket.local_addr()? == socket.peer_addr()? => {
                    last = Failure::Broken("nothing listens there".to_owned());
                }
                Ok(socket) => {
                    let host = self.address.rsplit_once(':').map_or("", |(host, _)| host);
                    let host = host.trim_start_matches('[').trim_end_matches(']');
                    return handshake::connect(socket, &self.local, self.process, host);
                }
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                    last = Failure::Broken("nothing listens there".to_owned());
                }
                Err(error) => last = Failure::from(error),
            }
        }
        Err(last)
    }
}
