//! One connection of a formed cluster, and the two threads that serve it.
//!
//! All reports about the other process come from the reading thread, in order: its frames, and then once that it has
//! left or was lost. The writing thread leaves an error as a note and ends the connection, and the reading thread
//! reports it.

use parking_lot::{Mutex, RwLock};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;

use super::frame::{self, FrameReader, Kind, ReadError};
use super::outbox::{End, Outbox};
use super::wire::{Incoming, Wire};
use pointstamp_channels::{Farewell, Receive, Recipient};

/// State that the links of a cluster share.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) receiver: RwLock<Option<Arc<dyn Receive>>>,
    /// Nothing is reported after this is set.
    pub(crate) closed: AtomicBool,
}

impl Shared {
    pub(crate) fn receiver(&self) -> Option<Arc<dyn Receive>> {
        self.receiver.read().clone()
    }

    pub(crate) fn written(&self, bytes: usize) {
        if bytes > 0
            && let Some(receiver) = self.receiver()
        {
            receiver.written(bytes);
        }
    }
}

pub(crate) struct Link {
    pub(crate) process: usize,
    pub(crate) address: String,
    pub(crate) wire: Arc<Wire>,
    pub(crate) outbox: Outbox,
    stall: Duration,
    note: Mutex<Option<String>>,
}

/// A connection from which nothing has been read since the cluster formed.
pub(crate) struct Unread {
    pub(crate) link: Arc<Link>,
    pub(crate) incoming: Incoming,
    pub(crate) frames: FrameReader,
}

impl Link {
    pub(crate) fn new(process: usize, address: String, wire: Arc<Wire>, stall: Duration) -> Self {
        Link {
            process,
            address,
            outbox: Outbox::new(Arc::clone(&wire)),
            wire,
            stall,
            note: Mutex::default(),
        }
    }

    pub(crate) fn send(&self, route: Recipient, body: Vec<Bytes>) -> usize {
        self.outbox
            .send(Kind::Message(route), body)
            .unwrap_or_else(|| {
                self.end_with("was sent a message that is too long".to_owned());
                0
            })
    }

    /// Ends the connection for a reason that the reading thread will report.
    fn end_with(&self, note: String) {
        self.note.lock().get_or_insert(note);
        self.wire.cut();
    }

    /// The writing thread.
    pub(crate) fn write(&self, shared: &Shared) {
        let end = self
            .outbox
            .serve(self.stall / 4, &|bytes| shared.written(bytes));
        if let End::Broken(error) = end {
            // Where the connection broke, the other side's last bytes may still be read, and have more information.
            if matches!(
                error.kind(),
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
            ) {
                self.end_with(format!("took nothing for {}", seconds(self.stall)));
            }
        }
    }
}

impl Unread {
    /// The reading thread.
    pub(crate) fn read(mut self, shared: &Shared, receiver: &dyn Receive) {
        let link = Arc::clone(&self.link);
        let unless_closed = |call: &mut dyn FnMut()| {
            if !shared.closed.load(Ordering::Acquire) {
                call();
            }
        };
        let mut on_frame = |route: Recipient, body: &mut Bytes| {
            unless_closed(&mut || receiver.frame(link.process, route, std::mem::take(body)));
        };
        match read_frames(&mut self.frames, &mut self.incoming, &mut on_frame) {
            Ok(how) => {
                let dropped = match how {
                    Farewell::Done => link.outbox.abandon(),
                    Farewell::Failed { .. } => link.outbox.end(),
                };
                shared.written(dropped);
                unless_closed(&mut || receiver.left(link.process, how.clone()));
                drain(&mut self.incoming);
            }
            Err(error) => {
                link.wire.cut();
                shared.written(link.outbox.end());
                // Also after a failure: a process that waits for the others to leave must receive that this one has.
                let why = link.why(&error);
                unless_closed(&mut || receiver.lost(link.process, why.clone()));
            }
        }
    }
}

impl Link {
    fn why(&self, error: &ReadError) -> String {
        let note = self.note.lock().take();
        let what = note.unwrap_or_else(|| match error {
            ReadError::Ended {
                within_frame: false,
            } => "ended its connection without a farewell: it died or was killed".to_owned(),
            ReadError::Ended { within_frame: true } => {
                "ended its connection in the middle of a message: it died or was killed".to_owned()
            }
            ReadError::Malformed(malformed) => {
                format!("sent what this process cannot read: {malformed}")
            }
            ReadError::Io(error) => match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    format!(
                        "sent nothing for {}: it hangs, was stopped, or cannot be reached",
                        seconds(self.stall)
                    )
                }
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionAborted => {
                    "broke its connection off: it died or was killed".to_owned()
                }
                _ => format!("sends nothing more: {error}"),
            },
        });
        format!("process {} ({}) {what}", self.process, self.address)
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} seconds", duration.as_secs_f64())
}

/// Passes messages on until the other side says farewell.
fn read_frames<R: Read>(
    frames: &mut FrameReader,
    source: &mut R,
    on_frame: &mut dyn FnMut(Recipient, &mut Bytes),
) -> Result<Farewell, ReadError> {
    loop {
        let mut frame = frames.next(source)?;
        match frame.kind {
            Kind::Message(route) => on_frame(route, &mut frame.body),
            Kind::Heartbeat => {}
            Kind::Formed => return Err(frame::Malformed::Twice.into()),
            Kind::Done | Kind::Failed { .. } => {
                return Ok(frame::farewell(&frame).expect("it is one"));
            }
        }
    }
}

/// Waits for the end of a connection on which nothing comes any more.
fn drain(source: &mut impl Read) {
    let mut scratch = vec![0; 4096];
    loop {
        match source.read(&mut scratch) {
            Ok(0) => return,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
            _ => {}
        }
    }
}
