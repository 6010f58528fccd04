//! Counts of bytes and messages in flight.
//!
//! A [`Gauge`] is the sum of the bytes that wait in queues between workers, that the transport has not written yet,
//! and that arrived and were not consumed. Every thread that counts has a stripe of its own, so that counting never
//! makes workers wait for each other's caches. A message is added to the stripe of its sender and taken from the
//! stripe of its consumer, so that only the sum has a meaning.
//!
//! It also counts messages, for the drain of a checkpoint: see [`Tally`].

use crossbeam::utils::CachePadded;

use crate::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The numbers of messages that a worker has sent to others, and has taken out of its queues from others.
///
/// Over all workers the two sums are equal exactly when no message is queued or in flight. A message to every worker
/// of a process counts once for each of them, and a message that is dropped because its reader was dropped counts as
/// taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages sent.
    pub sent: u64,
    /// Messages taken.
    pub taken: u64,
}

/// Counts bytes in flight.
#[derive(Debug)]
pub(crate) struct Gauge {
    stripes: Vec<CachePadded<Stripe>>,
}

#[derive(Debug, Default)]
struct Stripe {
    bytes: AtomicI64,
    sent: AtomicU64,
    taken: AtomicU64,
}

impl Gauge {
    /// A gauge for `workers`, and one more stripe for all other threads.
    pub(crate) fn new(workers: usize) -> Self {
        Gauge {
            stripes: (0..=workers).map(|_| CachePadded::default()).collect(),
        }
    }

    /// The stripe of the threads that are no workers.
    pub(crate) fn others(&self) -> usize {
        self.stripes.len() - 1
    }

    /// The number of workers.
    pub(crate) fn workers(&self) -> usize {
        self.stripes.len() - 1
    }

    /// Counts bytes that set out.
    #[inline]
    pub(crate) fn add(&self, stripe: usize, bytes: usize) {
        if bytes > 0 {
            self.stripes[stripe]
                .bytes
                .fetch_add(bytes as i64, Ordering::Relaxed);
        }
    }

    /// Counts bytes that came to their end. Ordered before the thread's next read of the pressure.
    #[inline]
    pub(crate) fn sub(&self, stripe: usize, bytes: usize) {
        if bytes > 0 {
            self.stripes[stripe]
                .bytes
                .fetch_sub(bytes as i64, Ordering::SeqCst);
        }
    }

    /// Returns the bytes in flight, approximately: counts that change during the call may be seen in part.
    pub(crate) fn level(&self) -> usize {
        let sum: i64 = self
            .stripes
            .iter()
            .map(|stripe| stripe.bytes.load(Ordering::SeqCst))
            .sum();
        usize::try_from(sum).unwrap_or(0)
    }

    /// Counts messages that are sent. Relaxed, as the next: a reader of another thread's tally has synchronised with
    /// it.
    #[inline]
    pub(crate) fn sent(&self, stripe: usize, messages: usize) {
        self.count(stripe, &self.stripes[stripe].sent, messages);
    }

    /// Counts messages that are taken out of queues, or dropped.
    #[inline]
    pub(crate) fn taken(&self, stripe: usize, messages: usize) {
        self.count(stripe, &self.stripes[stripe].taken, messages);
    }

    /// A worker alone counts messages in its stripe, and so needs no atomic addition.
    #[inline]
    fn count(&self, stripe: usize, count: &AtomicU64, messages: usize) {
        if stripe == self.others() {
            count.fetch_add(messages as u64, Ordering::Relaxed);
        } else {
            let before = count.load(Ordering::Relaxed);
            count.store(before + messages as u64, Ordering::Relaxed);
        }
    }

    /// The messages that a stripe has counted.
    pub(crate) fn tally(&self, stripe: usize) -> Tally {
        let stripe = &self.stripes[stripe];
        Tally {
            sent: stripe.sent.load(Ordering::SeqCst),
            taken: stripe.taken.load(Ordering::SeqCst),
        }
    }
}
