//! The mailbox, on which a worker sleeps and by which it is woken.
//!
//! A [`Mailbox`] belongs to one worker; any number of [`Doorbell`]s ring it, from any thread. A ring that arrives
//! between the worker's last look and its sleep is not lost: a ring first leaves the event and then checks whether
//! the worker sleeps, and the worker first marks that it sleeps and then checks whether there is an event. Ringing a
//! worker that is awake costs an enqueue and a load, and does not cut its next sleep short.

use std::sync::Arc;
use std::time::Instant;

use crate::ChannelId;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Parker, SegQueue, Unparker};

/// The reason why a doorbell rings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ring {
    /// A channel that was empty has messages.
    Channel(ChannelId),
    /// The operator registered under this number was activated.
    Activate(u64),
}

struct Shared {
    events: SegQueue<Ring>,
    /// Whether the worker sleeps, or is about to.
    asleep: AtomicBool,
    unparker: Unparker,
}

/// The receiving end: one per worker.
pub struct Mailbox {
    shared: Arc<Shared>,
    parker: Parker,
}

/// The ringing end; cheap to clone, usable from any thread.
#[derive(Clone)]
pub struct Doorbell {
    shared: Arc<Shared>,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Mailbox {
    /// A mailbox with no events.
    pub fn new() -> Self {
        let parker = Parker::new();
        let shared = Arc::new(Shared {
            events: SegQueue::new(),
            asleep: AtomicBool::new(false),
            unparker: parker.unparker().clone(),
        });
        Mailbox { shared, parker }
    }

    /// A doorbell that rings this mailbox.
    pub fn doorbell(&self) -> Doorbell {
        Doorbell {
            shared: Arc::clone(&self.shared),
        }
    }

    /// The next event, if there is one.
    #[allow(clippy::should_implement_trait)] // not an iterator: `None` now says nothing of later
    pub fn next(&mut self) -> Option<Ring> {
        self.shared.events.pop()
    }

    /// Whether no event waits.
    pub fn is_empty(&self) -> bool {
        self.shared.events.is_empty()
    }

    /// Sleeps until a doorbell rings, or until `deadline`. May return early without a reason.
    pub fn park(&self, deadline: Option<Instant>) {
        // One order of all these operations, and of the queue's: of two threads that write and then look, one sees
        // the other's write.
        self.shared.asleep.store(true, Ordering::SeqCst);
        if self.is_empty() {
            match deadline {
                None => self.parker.park(),
                Some(deadline) => {
                    self.parker.park_deadline(deadline);
                }
            }
        }
        self.shared.asleep.store(false, Ordering::Relaxed);
    }
}

impl Doorbell {
    /// Leaves an event, and wakes the worker if it sleeps.
    pub fn ring(&self, event: Ring) {
        self.leave(event);
        if self.shared.asleep.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Leaves an event for a worker that is woken otherwise.
    pub(crate) fn leave(&self, event: Ring) {
        self.shared.events.push(event);
    }

    /// Whether the worker has an event to look at.
    pub fn has_rung(&self) -> bool {
        !self.shared.events.is_empty()
    }

    /// Wakes the worker without a reason: it looks at its queues as usual.
    pub fn wake(&self) {
        self.shared.unparker.unpark();
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_ring_before_the_sleep_is_not_lost() {
        let mailbox = Mailbox::new();
        mailbox.doorbell().wake();
        mailbox.park(None); // would hang for ever if the wake were lost
    }

    #[test]
    fn a_ring_that_is_heard_does_not_cut_the_next_sleep_short() {
        let mut mailbox = Mailbox::new();
        mailbox.doorbell().ring(Ring::Activate(7));
        assert_eq!(mailbox.next(), Some(Ring::Activate(7)));
        let end = Instant::now() + Duration::from_millis(5);
        mailbox.park(Some(end));
        assert!(Instant::now() >= end);
    }

    #[test]
    fn a_ring_from_another_thread_wakes() {
        let mut mailbox = Mailbox::new();
        let doorbell = mailbox.doorbell();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            doorbell.ring(Ring::Activate(7));
        });
        while mailbox.is_empty() {
            mailbox.park(None);
        }
        assert_eq!(mailbox.next(), Some(Ring::Activate(7)));
        thread.join().unwrap();
    }

    #[test]
    fn a_deadline_ends_the_sleep() {
        let mailbox = Mailbox::new();
        mailbox.park(Some(Instant::now() + Duration::from_millis(5)));
        assert!(mailbox.is_empty());
    }
}
