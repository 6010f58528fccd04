//! Progress of all workers of a process, combined before it is sent to the others.
//!
//! What a worker says goes into the channel's pot before its local peers hear of it, and the pots go out as one frame for
//! each channel and other process. Only whole messages are added up, and pots are emptied in one order: the frames
//! that another process has got are always the sum of a prefix of each worker's messages. That is all that the safety
//! of the progress protocol asks of a link. What cancels within a pot is never sent.
//!
//! When to send. With every message, there would be as many frames as workers; to wait would cost latency. So the pots
//! wait for those workers only that were in a step when the first message went in, or had been woken for one: each of
//! them is about to say something about the same round. They go out when the last of these has ended its step or
//! parks; when a worker ends a step and they are [`LINGER`] old; and a worker does not park for longer than that
//! while they are there. A worker alone in its process sends at the end of its step.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam::utils::CachePadded;

use crate::encode::{Encode, Encoder};
use crate::sender::{Sender, Uplink};
use crate::{ChannelId, Doorbell, Route};

/// How long combined messages wait for other workers at most, where a worker is at hand to send them.
pub const LINGER: Duration = Duration::from_micros(200);

/// Messages that can be added up.
pub trait Combine: Encode + Clone {
    /// Adds what another message says.
    fn add(&mut self, other: &Self);

    /// Whether nothing is said: what was added up has cancelled. Asked once, before it is sent.
    fn is_nothing(&mut self) -> bool;

    /// Writes the message, as [`Encode::encode`]; it cannot fail.
    fn put(&self, out: &mut Encoder);
}

/// What a worker is doing.
const OUTSIDE: u8 = 0;
const STEPPING: u8 = 1;
const PARKED: u8 = 2;

/// What the workers of one process have yet to tell the others.
pub(crate) struct Combiner {
    /// Whether a pot holds something.
    dirty: AtomicBool,
    doing: Vec<CachePadded<AtomicU8>>,
    doorbells: Vec<Doorbell>,
    pending: Mutex<Pending>,
    /// Held while frames are handed to the transport, so that those of a channel stay in order.
    wire: Mutex<()>,
    uplink: Arc<Uplink>,
    linger: Duration,
}

struct Pending {
    pots: Vec<Arc<dyn Flush>>,
    /// Workers that are waited for.
    waiting: Vec<bool>,
    since: Instant,
}

/// What waits in one channel.
pub(crate) struct Pot<T> {
    id: ChannelId,
    sum: Mutex<Option<T>>,
}

impl<T> Pot<T> {
    pub(crate) fn new(id: ChannelId) -> Arc<Self> {
        Arc::new(Pot {
            id,
            sum: Mutex::new(None),
        })
    }
}

trait Flush: Send + Sync {
    fn flush(&self, uplink: &Uplink);
}

impl<T: Combine> Flush for Pot<T> {
    fn flush(&self, uplink: &Uplink) {
        let sum = lock(&self.sum).take();
        let Some(mut sum) = sum else { return };
        if sum.is_nothing() {
            return;
        }
        let mut encoder = Encoder::new();
        sum.put(&mut encoder);
        let body = encoder.finish();
        uplink.send(
            uplink.others(),
            Route::Everyone(self.id),
            &body,
            &uplink.progress,
        );
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Combiner {
    pub(crate) fn new(doorbells: Vec<Doorbell>, uplink: Arc<Uplink>, linger: Duration) -> Self {
        let workers = doorbells.len();
        Combiner {
            dirty: AtomicBool::new(false),
            doing: (0..workers).map(|_| CachePadded::default()).collect(),
            doorbells,
            pending: Mutex::new(Pending {
                pots: Vec::new(),
                waiting: vec![false; workers],
                since: Instant::now(),
            }),
            wire: Mutex::new(()),
            uplink,
            linger,
        }
    }

    /// Adds a message of a worker that is in a step.
    fn push<T: Combine>(&self, worker: usize, pot: &Arc<Pot<T>>, message: &T) {
        let mut pending = lock(&self.pending);
        let mut sum = lock(&pot.sum);
        if let Some(sum) = &mut *sum {
            sum.add(message);
            return;
        }
        *sum = Some(message.clone());
        drop(sum);
        pending.pots.push(Arc::clone(pot) as Arc<dyn Flush>);
        if pending.pots.len() > 1 {
            return;
        }
        pending.since = Instant::now();
        // A worker that ends its step now either sees this, or is not waited for.
        self.dirty.store(true, Ordering::SeqCst);
        for other in 0..self.doing.len() {
            pending.waiting[other] = other == worker || self.is_about_to_speak(other);
        }
    }

    /// Whether a worker is in a step, or has been woken for one.
    fn is_about_to_speak(&self, worker: usize) -> bool {
        match self.doing[worker].load(Ordering::SeqCst) {
            STEPPING => true,
            PARKED => self.doorbells[worker].has_rung(),
            _ => false,
        }
    }

    pub(crate) fn step_begins(&self, worker: usize) {
        self.doing[worker].store(STEPPING, Ordering::SeqCst);
    }

    pub(crate) fn step_ended(&self, worker: usize) {
        self.doing[worker].store(OUTSIDE, Ordering::SeqCst);
        if !self.dirty.load(Ordering::SeqCst) {
            return;
        }
        let mut pending = lock(&self.pending);
        pending.waiting[worker] = false;
        if !pending.waiting.contains(&true) || pending.since.elapsed() >= self.linger {
            drop(pending);
            self.flush();
        }
    }

    /// A worker is going to sleep: until when at most?
    pub(crate) fn parks(&self, worker: usize) -> Option<Instant> {
        self.doing[worker].store(PARKED, Ordering::SeqCst);
        if !self.dirty.load(Ordering::SeqCst) {
            return None;
        }
        let mut pending = lock(&self.pending);
        pending.waiting[worker] = false;
        let until = pending.since + self.linger;
        if pending.waiting.contains(&true) && Instant::now() < until {
            return Some(until);
        }
        drop(pending);
        self.flush();
        None
    }

    /// A worker has slept.
    pub(crate) fn woke(&self, worker: usize) {
        self.doing[worker].store(OUTSIDE, Ordering::SeqCst);
        if self.dirty.load(Ordering::SeqCst) && lock(&self.pending).since.elapsed() >= self.linger {
            self.flush();
        }
    }

    /// Sends all that waits.
    pub(crate) fn flush(&self) {
        let _in_order = lock(&self.wire);
        let pots = {
            let mut pending = lock(&self.pending);
            self.dirty.store(false, Ordering::SeqCst);
            std::mem::take(&mut pending.pots)
        };
        for pot in pots {
            pot.flush(&self.uplink);
        }
    }
}

/// Sends messages to every worker but one's own: to those of this process as they are, to the other processes combined.
pub struct Combined<T> {
    pub(crate) pot: Option<(Arc<Combiner>, Arc<Pot<T>>, usize)>,
    pub(crate) local: Vec<Sender<T>>,
}

impl<T: Combine> Combined<T> {
    /// Sends a message.
    pub fn push(&self, message: T) {
        if let Some((combiner, pot, worker)) = &self.pot {
            combiner.push(*worker, pot, &message);
        }
        if let Some((last, others)) = self.local.split_last() {
            for sender in others {
                sender.push_here(message.clone());
            }
            last.push_here(message);
        }
    }

    /// Whether some of what arrives comes from other processes.
    pub fn is_remote(&self) -> bool {
        self.pot.is_some()
    }
}
