//! A typed queue into one worker.
//!
//! Invariant: while the queue holds a message that the receiver has not been told of, an event for
//! it is in the receiver's mailbox. `signalled` is true from the push that rings until the receiver
//! acknowledges, so a burst rings once. The receiver acknowledges before it pops: a message pushed
//! after that rings again.
//!
//! Messages to a receiver that is gone are dropped: the dataflow that would read them is complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam::queue::SegQueue;

use crate::{ChannelId, Doorbell, Event};

pub(crate) struct Queue<T> {
    messages: SegQueue<T>,
    signalled: AtomicBool,
    closed: AtomicBool,
    doorbell: Doorbell,
    id: ChannelId,
}

impl<T> Queue<T> {
    pub(crate) fn new(id: ChannelId, doorbell: Doorbell) -> Arc<Self> {
        Arc::new(Queue {
            messages: SegQueue::new(),
            signalled: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            doorbell,
            id,
        })
    }
}

/// Pushes messages to one worker. Clones push to the same queue; messages of one sender stay in order.
pub struct Sender<T>(pub(crate) Arc<Queue<T>>);

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Sender(Arc::clone(&self.0))
    }
}

impl<T> Sender<T> {
    /// Enqueues a message and wakes the receiver if this starts a burst.
    pub fn push(&self, message: T) {
        let queue = &*self.0;
        if queue.closed.load(Ordering::Acquire) {
            return;
        }
        queue.messages.push(message);
        // AcqRel pairs with `acknowledge`: whoever clears the flag afterwards sees the message.
        if !queue.signalled.swap(true, Ordering::AcqRel) {
            queue.doorbell.ring(Event::Channel(queue.id));
        }
    }
}

/// Takes messages out of a queue; there is one for each worker.
pub struct Receiver<T>(pub(crate) Arc<Queue<T>>);

impl<T> Receiver<T> {
    /// Says that the event for this channel has been seen. Call it before the pops that follow.
    pub fn acknowledge(&self) {
        self.0.signalled.swap(false, Ordering::AcqRel);
    }

    /// The next message, if one is there.
    pub fn pop(&self) -> Option<T> {
        self.0.messages.pop()
    }

    /// Whether no message is there now.
    pub fn is_empty(&self) -> bool {
        self.0.messages.is_empty()
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
        while self.0.messages.pop().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mailbox;

    const ID: ChannelId = ChannelId {
        dataflow: 1,
        channel: 2,
    };

    #[test]
    fn nothing_is_lost_and_every_burst_rings() {
        const MESSAGES: u64 = 20_000;
        let mut mailbox = Mailbox::new();
        let queue = Queue::new(ID, mailbox.doorbell());
        let (sender, receiver) = (Sender(Arc::clone(&queue)), Receiver(queue));
        let thread = std::thread::spawn(move || (0..MESSAGES).for_each(|i| sender.push(i)));
        let mut expected = 0;
        while expected < MESSAGES {
            // The receiver reads only when an event told it to: a lost ring would hang here.
            let Some(event) = mailbox.next() else {
                mailbox.park(None);
                continue;
            };
            assert_eq!(event, Event::Channel(ID));
            receiver.acknowledge();
            while let Some(message) = receiver.pop() {
                assert_eq!(message, expected);
                expected += 1;
            }
        }
        thread.join().unwrap();
    }

    #[test]
    fn a_queue_without_a_receiver_keeps_nothing() {
        let mailbox = Mailbox::new();
        let queue = Queue::new(ID, mailbox.doorbell());
        let sender = Sender(Arc::clone(&queue));
        let token = Arc::new(());
        sender.push(Arc::clone(&token));
        drop(Receiver(queue));
        assert_eq!(Arc::strong_count(&token), 1);
        sender.push(Arc::clone(&token));
        assert_eq!(Arc::strong_count(&token), 1);
    }
}
