//! Progress of all workers of a process, combined before it is sent to the others.
//!
//! The progress of a worker goes into the channel's accumulator before its local peers receive it, and the accumulators are sent as
//! one frame for each channel and other process. Only whole messages are added up, and accumulators are emptied in one order:
//! the frames that another process has received are always the sum of a prefix of each worker's messages. That is the
//! only property that the safety of the progress protocol requires of a link. Changes that cancel within an accumulator are
//! never sent.
//!
//! When to send. Sending with every message would make as many frames as workers; waiting would cost latency. So the
//! accumulators wait for the workers that are likely to send progress about the same round: all that were awake when the
//! first message went in. They are sent when each of these has sent something, or parks, or has made two steps (in
//! one it receives the news, and `main` acts on them before the next), or when they are `LINGER` old. A worker that
//! sent nothing in that time is not waited for again before it has begun another step. While something waits, no
//! worker parks for longer than that; and where every worker is busy with something else, a thread of its own sends
//! them. A worker alone in its process sends at the end of its step.
//!
//! Frames go to every other process, or by [relays](crate::relay). The thread that sends where no worker does also sends what has waited
//! in a relay.

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use crossbeam::utils::CachePadded;

use crate::activity::Activity;
use crate::combine::Combine;
use crate::encode::{CodecError, Encoder};
use crate::lock::lock;
use crate::relay::{Place, Relay};
use crate::sender::{Sender, Uplink};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Mutex, Parker, Unparker};
use crate::transport::joined;
use crate::{ChannelId, Recipient};

/// The longest time that combined messages wait for other workers, where a worker is available to send them.
pub const LINGER: Duration = Duration::from_micros(500);

/// The longest time that combined messages wait where no worker is available.
const TICK: Duration = Duration::from_millis(1);

/// The messages of the workers of one process that are not sent yet.
pub(crate) struct Combiner {
    /// Whether an accumulator holds something.
    dirty: AtomicBool,
    activity: Arc<Activity>,
    /// Workers that were waited for without result, and have begun no step since.
    absent: Vec<CachePadded<AtomicBool>>,
    pending: Mutex<Pending>,
    /// Held while frames are passed to the transport, so that the frames of a channel stay in order.
    wire: Mutex<()>,
    uplink: Arc<Uplink>,
    route: Route,
    linger: Duration,
    /// The thread that sends where no worker does; present where there is something to wait for.
    clock: OnceLock<Clock>,
}

/// The processes that frames go to.
pub(crate) enum Route {
    /// Every other one.
    Straight,
    /// The process that relays for this one.
    Relay(usize),
    /// The processes that this process's relay serves.
    Relays(Relays),
}

/// The relay of this process.
pub(crate) struct Relays {
    relay: Mutex<Box<dyn Relay>>,
    waits: AtomicBool,
}

impl Route {
    /// The route of a process, with the relay that it has if it is one.
    pub(crate) fn of(place: &Place, relay: impl FnOnce() -> Box<dyn Relay>) -> Self {
        match place.relay() {
            Some(process) => Route::Relay(process),
            None => Route::Relays(Relays {
                relay: Mutex::new(relay()),
                waits: AtomicBool::new(false),
            }),
        }
    }
}

struct Pending {
    accumulators: Vec<Arc<dyn Flush>>,
    /// The number of ends of a step for which each worker is waited for.
    waiting: Vec<u8>,
    since: Instant,
}

/// The messages that wait in one channel.
pub(crate) struct Accumulator<T> {
    id: ChannelId,
    sum: Mutex<Option<T>>,
}

impl<T> Accumulator<T> {
    pub(crate) fn new(id: ChannelId) -> Arc<Self> {
        Arc::new(Accumulator {
            id,
            sum: Mutex::new(None),
        })
    }
}

pub(crate) trait Flush: Send + Sync {
    fn flush(&self, combiner: &Combiner);
}

impl<T: Combine> Flush for Accumulator<T> {
    fn flush(&self, combiner: &Combiner) {
        let sum = lock(&self.sum).take();
        let Some(mut sum) = sum else { return };
        if sum.is_nothing() {
            return;
        }
        combiner.send_message(combiner.uplink.stripe_of_others(), self.id, &sum, false);
    }
}

impl Combiner {
    pub(crate) fn new(
        activity: Arc<Activity>,
        uplink: Arc<Uplink>,
        route: Route,
        linger: Duration,
    ) -> Arc<Self> {
        let workers = activity.workers();
        let relays = matches!(route, Route::Relays(_)) && !uplink.transport().keeps_time();
        let combiner = Arc::new(Combiner {
            dirty: AtomicBool::new(false),
            activity,
            absent: (0..workers).map(|_| CachePadded::default()).collect(),
            pending: Mutex::new(Pending {
                accumulators: Vec::new(),
                waiting: vec![0; workers],
                since: Instant::now(),
            }),
            wire: Mutex::new(()),
            uplink,
            route,
            linger,
            clock: OnceLock::new(),
        });
        if workers > 1 || relays {
            let clock = Clock::start(Arc::downgrade(&combiner));
            let _first = combiner.clock.set(clock);
        }
        combiner
    }

    /// Adds a message of a worker that is in a step.
    fn push<T: Combine>(&self, worker: usize, accumulator: &Arc<Accumulator<T>>, message: &T) {
        let mut pending = lock(&self.pending);
        let mut sum = lock(&accumulator.sum);
        pending.waiting[worker] = 1;
        if let Some(sum) = &mut *sum {
            sum.add(message);
            return;
        }
        *sum = Some(message.clone());
        drop(sum);
        pending
            .accumulators
            .push(Arc::clone(accumulator) as Arc<dyn Flush>);
        if pending.accumulators.len() > 1 {
            return;
        }
        pending.since = Instant::now();
        // A worker that ends its step now, or parks, either sees this or is seen.
        self.dirty.store(true, Ordering::SeqCst);
        for (other, waiting) in pending.waiting.iter_mut().enumerate() {
            let absent = self.absent[other].load(Ordering::SeqCst);
            *waiting = if other == worker {
                1
            } else if absent || self.activity.sleeps(other) {
                0
            } else {
                2
            };
        }
    }

    /// Sends a message of a worker without combining it, behind all that waits.
    fn push_at_once<T: Combine>(&self, worker: usize, id: ChannelId, message: &T) {
        let _in_order = lock(&self.wire);
        for accumulator in self.take() {
            self.send(&*accumulator);
        }
        self.send_message(worker, id, message, true);
    }

    /// Sends a message on its way to every other process. Called with the wire.
    fn send_message<T: Combine>(&self, stripe: usize, id: ChannelId, message: &T, at_once: bool) {
        let mut encoder = Encoder::new();
        message.put(&mut encoder);
        let body = encoder.finish();
        let uplink = &self.uplink;
        let count = 1;
        let route = Recipient::Sum { id, count, at_once };
        uplink.count(stripe, uplink.others().count(), route);
        match &self.route {
            Route::Straight => uplink.send(uplink.others(), route, &body, &uplink.progress),
            Route::Relay(relay) => uplink.send([*relay], route, &body, &uplink.progress),
            Route::Relays(_) => {
                let here = uplink.transport().process();
                let read = self.relay(here, id, count, at_once, joined(&body));
                read.expect("what was written just now can be read");
            }
        }
    }

    pub(crate) fn step_begins(&self, worker: usize) {
        if self.absent[worker].load(Ordering::Relaxed) {
            self.absent[worker].store(false, Ordering::SeqCst);
        }
    }

    pub(crate) fn step_ended(&self, worker: usize) {
        if !self.dirty.load(Ordering::SeqCst) {
            return;
        }
        if self.speaks(worker, 1).is_some()
            && let Some(clock) = self.clock.get()
        {
            clock.set(); // the worker may not come back soon
        }
    }

    /// A worker is going to sleep: until when at most?
    pub(crate) fn parks(&self, worker: usize) -> Option<Instant> {
        if !self.dirty.load(Ordering::SeqCst) {
            return None;
        }
        self.speaks(worker, u8::MAX)
    }

    /// A worker has slept.
    pub(crate) fn woke(&self) {
        if self.dirty.load(Ordering::SeqCst) && lock(&self.pending).since.elapsed() >= self.linger {
            self.flush();
        }
    }

    /// A worker need be waited for less. Sends, unless there is a worker to wait for: then until when.
    fn speaks(&self, worker: usize, less: u8) -> Option<Instant> {
        let mut pending = lock(&self.pending);
        if pending.accumulators.is_empty() {
            return None;
        }
        pending.waiting[worker] = pending.waiting[worker].saturating_sub(less);
        let until = pending.since + self.linger;
        if pending.waiting.iter().any(|&steps| steps > 0) && Instant::now() < until {
            return Some(until);
        }
        drop(pending);
        self.flush();
        None
    }

    /// Sends all that waits.
    pub(crate) fn flush(&self) {
        let _in_order = lock(&self.wire);
        for accumulator in self.take() {
            self.send(&*accumulator);
        }
    }

    /// All that waits. The thread that takes it holds the wire until it is sent.
    pub(crate) fn take(&self) -> Vec<Arc<dyn Flush>> {
        let mut pending = lock(&self.pending);
        self.dirty.store(false, Ordering::SeqCst);
        for (waiting, absent) in pending.waiting.iter_mut().zip(&self.absent) {
            if std::mem::take(waiting) > 0 {
                absent.store(true, Ordering::SeqCst);
            }
        }
        std::mem::take(&mut pending.accumulators)
    }

    pub(crate) fn send(&self, accumulator: &dyn Flush) {
        accumulator.flush(self);
    }
}

impl Combiner {
    /// Passes a sum of a process on to those that this one relays to, or lets it wait for others.
    pub(crate) fn relay(
        &self,
        from: usize,
        id: ChannelId,
        count: u32,
        at_once: bool,
        body: Bytes,
    ) -> Result<(), CodecError> {
        self.with_relay(|relay| relay.receive(&self.uplink, from, id, count, at_once, body))
            .unwrap_or(Ok(()))
    }

    /// Passes on all that waits in the relay.
    pub(crate) fn flush_relay(&self) {
        self.with_relay(|relay| relay.flush(&self.uplink));
    }

    /// Passes on what has waited in the relay for as long as `linger`.
    pub(crate) fn relay_time_passes(&self, linger: Duration) {
        if self.relay_waits() {
            self.with_relay(|relay| relay.time_passes(&self.uplink, linger));
        }
    }

    /// Whether something waits in the relay.
    pub(crate) fn relay_waits(&self) -> bool {
        match &self.route {
            Route::Relays(relays) => relays.waits.load(Ordering::SeqCst),
            Route::Straight | Route::Relay(_) => false,
        }
    }

    fn with_relay<R>(&self, act: impl FnOnce(&mut dyn Relay) -> R) -> Option<R> {
        let Route::Relays(relays) = &self.route else {
            return None;
        };
        let mut relay = lock(&relays.relay);
        let result = act(&mut **relay);
        let waits = relay.waits();
        relays.waits.store(waits, Ordering::SeqCst);
        drop(relay);
        if waits && let Some(clock) = self.clock.get() {
            clock.set();
        }
        Some(result)
    }
}

impl Combiner {
    /// Ends the thread that sends where no worker does: an object that keeps a failure of the computation may
    /// keep this one, too.
    pub(crate) fn close(&self) {
        if let Some(clock) = self.clock.get() {
            clock.end();
        }
    }
}

impl Drop for Combiner {
    fn drop(&mut self) {
        self.close();
    }
}

/// Sends waiting messages if no worker does. It sleeps until it is set.
struct Clock {
    state: Arc<ClockState>,
    unparker: Unparker,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct ClockState {
    set: AtomicBool,
    ended: AtomicBool,
}

impl Clock {
    fn start(combiner: Weak<Combiner>) -> Self {
        let parker = Parker::new();
        let unparker = parker.unparker().clone();
        let state = Arc::<ClockState>::default();
        let seen = Arc::clone(&state);
        let thread = thread::Builder::new()
            .name("pointstamp-progress".to_owned())
            .spawn(move || tick(&combiner, &seen, &parker))
            .expect("a thread for the progress of a process");
        Clock {
            state,
            unparker,
            thread: Mutex::new(Some(thread)),
        }
    }

    fn set(&self) {
        let set = &self.state.set;
        if !set.load(Ordering::SeqCst) && !set.swap(true, Ordering::SeqCst) {
            self.unparker.unpark();
        }
    }

    fn end(&self) {
        self.state.ended.store(true, Ordering::SeqCst);
        self.unparker.unpark();
        // The thread itself may be the one that drops the combiner.
        if let Some(thread) = lock(&self.thread).take()
            && thread.thread().id() != thread::current().id()
        {
            let _panicked = thread.join();
        }
    }
}

fn tick(combiner: &Weak<Combiner>, state: &ClockState, parker: &Parker) {
    loop {
        let set = state.set.load(Ordering::SeqCst) || {
            parker.park();
            state.set.load(Ordering::SeqCst)
        };
        if state.ended.load(Ordering::SeqCst) {
            return;
        }
        if set {
            thread::sleep(TICK);
        }
        let Some(combiner) = combiner.upgrade() else {
            return;
        };
        combiner.woke();
        let keeps_time = combiner.uplink.transport().keeps_time();
        if !keeps_time {
            combiner.relay_time_passes(combiner.linger);
        }
        state.set.store(false, Ordering::SeqCst);
        if combiner.dirty.load(Ordering::SeqCst) || (!keeps_time && combiner.relay_waits()) {
            state.set.store(true, Ordering::SeqCst);
        }
    }
}

/// Sends messages to every other worker: to workers of this process as they are, to other processes combined.
pub struct Combined<T> {
    pub(crate) accumulator: Option<(Arc<Combiner>, Arc<Accumulator<T>>, usize)>,
    pub(crate) local: Vec<Sender<T>>,
}

impl<T: Combine> Combined<T> {
    /// Sends a message.
    pub fn push(&self, message: T) {
        if let Some((combiner, accumulator, worker)) = &self.accumulator {
            combiner.push(*worker, accumulator, &message);
        }
        self.push_to_local(message);
    }

    fn push_to_local(&self, message: T) {
        if let Some((last, others)) = self.local.split_last() {
            for sender in others {
                sender.push_here(message.clone());
            }
            last.push_here(message);
        }
    }

    /// Sends a message by itself, behind all that is combined already.
    pub fn push_at_once(&self, message: T) {
        if let Some((combiner, accumulator, worker)) = &self.accumulator {
            combiner.push_at_once(*worker, accumulator.id, &message);
        }
        self.push_to_local(message);
    }

    /// Whether some of the messages that arrive come from other processes.
    pub fn is_remote(&self) -> bool {
        self.accumulator.is_some()
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::Mailbox;
    use crate::gauge::Gauge;
    use crate::transport::nowhere::NoWhere;

    #[test]
    fn its_thread_ends_with_it_or_before() {
        for closed in [false, true] {
            let mailboxes = [Mailbox::new(), Mailbox::new()];
            let doorbells = mailboxes.iter().map(Mailbox::doorbell).collect();
            let uplink = Uplink::new(Arc::new(NoWhere), Arc::new(Gauge::new(2)));
            let activity = Arc::new(Activity::new(doorbells));
            let combiner = Combiner::new(activity, Arc::new(uplink), Route::Straight, LINGER);
            let state = Arc::clone(&combiner.clock.get().expect("two workers").state);
            assert_eq!(Arc::strong_count(&state), 3, "the thread has one");
            if closed {
                combiner.close();
                assert_eq!(Arc::strong_count(&state), 2);
            }
            drop(combiner);
            assert_eq!(Arc::strong_count(&state), 1);
        }
    }
}
