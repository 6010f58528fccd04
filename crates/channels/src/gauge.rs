//! How many bytes are on their way.
//!
//! A [`Gauge`] is the sum of what waits in queues between workers, of what the transport has not written yet, and of what arrived and
//! was not consumed. Every thread that counts has a stripe of its own, so that counting never makes workers
//! wait for each other's caches; a message is added to the stripe of who sends it and taken from the stripe of who consumes it,
//! so that only the sum means anything.

use crossbeam::utils::CachePadded;

use crate::sync::atomic::{AtomicI64, Ordering};

/// Counts bytes in flight.
#[derive(Debug)]
pub(crate) struct Gauge {
    stripes: Vec<CachePadded<AtomicI64>>,
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

    /// Counts bytes that set out.
    #[inline]
    pub(crate) fn add(&self, stripe: usize, bytes: usize) {
        if bytes > 0 {
            self.stripes[stripe].fetch_add(bytes as i64, Ordering::Relaxed);
        }
    }

    /// Counts bytes that came to their end. Ordered before what the thread then reads of the pressure.
    #[inline]
    pub(crate) fn sub(&self, stripe: usize, bytes: usize) {
        if bytes > 0 {
            self.stripes[stripe].fetch_sub(bytes as i64, Ordering::SeqCst);
        }
    }

    /// Bytes in flight now, about: what is counted while this looks may be seen in part.
    pub(crate) fn level(&self) -> usize {
        let sum: i64 = self
            .stripes
            .iter()
            .map(|stripe| stripe.load(Ordering::SeqCst))
            .sum();
        usize::try_from(sum).unwrap_or(0)
    }
}
