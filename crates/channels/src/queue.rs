//! A typed queue into one worker.
//!
//! Invariant: while the queue holds a message that the receiver has not been told of, an event for
//! it is in the receiver's mailbox. `signalled` is true from the push that rings until the receiver
//! acknowledges, so a burst rings once. The receiver acknowledges before it pops: a message pushed
//! after that rings again.
//!
//! A message of another process waits as the bytes that arrived, and is decoded where it is popped: on
//! the worker's own thread. What waits is counted in the process's gauge.
//!
//! Messages to a receiver that is gone are dropped: the dataflow that would read them is complete.

use std::sync::Arc;

use bytes::Bytes;

use crate::encode::{CodecError, Encode};
use crate::gauge::Gauge;
use crate::sync::SegQueue;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::{ChannelId, Doorbell, Ring};

/// What waits, with the bytes that the gauge counts for it.
enum Slot<T> {
    Message(T, usize),
    Frame(Bytes),
}

pub(crate) struct Queue<T> {
    slots: SegQueue<Slot<T>>,
    signalled: AtomicBool,
    closed: AtomicBool,
    doorbell: Doorbell,
    id: ChannelId,
    gauge: Arc<Gauge>,
    /// The receiver's.
    stripe: usize,
}

impl<T> Queue<T> {
    pub(crate) fn new(
        id: ChannelId,
        doorbell: Doorbell,
        gauge: Arc<Gauge>,
        stripe: usize,
    ) -> Arc<Self> {
        Arc::new(Queue {
            slots: SegQueue::new(),
            signalled: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            doorbell,
            id,
            gauge,
            stripe,
        })
    }

    /// Enqueues a message and rings if this starts a burst.
    #[inline]
    pub(crate) fn push(&self, message: T, footprint: usize, stripe: usize) {
        self.enqueue(Slot::Message(message, footprint), footprint, stripe);
    }

    /// Enqueues a message of another process.
    pub(crate) fn push_frame(&self, frame: Bytes) {
        let bytes = frame.len();
        self.enqueue(Slot::Frame(frame), bytes, self.gauge.others());
    }

    #[inline]
    fn enqueue(&self, slot: Slot<T>, bytes: usize, stripe: usize) {
        if self.closed.load(Ordering::Acquire) {
            return;
        }
        self.gauge.add(stripe, bytes);
        self.slots.push(slot);
        // AcqRel pairs with `acknowledge`: the thread that clears the flag afterwards sees the message.
        if !self.signalled.swap(true, Ordering::AcqRel) {
            self.doorbell.ring(Ring::Channel(self.id));
        }
    }

    fn take(&self) -> Option<Slot<T>> {
        let slot = self.slots.pop()?;
        let bytes = match &slot {
            Slot::Message(_, footprint) => *footprint,
            Slot::Frame(frame) => frame.len(),
        };
        self.gauge.sub(self.stripe, bytes);
        Some(slot)
    }

    fn clear(&self) {
        while self.take().is_some() {}
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        self.clear(); // a message that was pushed while the receiver went
    }
}

/// Takes messages out of a queue; there is one for each worker.
pub struct Receiver<T>(pub(crate) Arc<Queue<T>>);

impl<T: Encode> Receiver<T> {
    /// The next message, if one is there.
    ///
    /// # Errors
    ///
    /// When a message of another process cannot be decoded; it is gone then.
    #[inline]
    pub fn pop(&self) -> Result<Option<T>, CodecError> {
        match self.0.take() {
            None => Ok(None),
            Some(Slot::Message(message, _)) => Ok(Some(message)),
            Some(Slot::Frame(frame)) => T::decode(frame).map(Some),
        }
    }
}

impl<T> Receiver<T> {
    /// Says that the event for this channel has been seen. Call it before the pops that follow.
    pub fn acknowledge(&self) {
        self.0.signalled.swap(false, Ordering::AcqRel);
    }

    /// Whether no message is there now.
    pub fn is_empty(&self) -> bool {
        self.0.slots.is_empty()
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.clear();
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::Mailbox;

    const ID: ChannelId = ChannelId {
        dataflow: 1,
        channel: 2,
    };

    fn queue<T>(doorbell: Doorbell) -> (Arc<Queue<T>>, Arc<Gauge>) {
        let gauge = Arc::new(Gauge::new(1));
        (Queue::new(ID, doorbell, Arc::clone(&gauge), 0), gauge)
    }

    #[test]
    fn nothing_is_lost_and_every_burst_rings() {
        const MESSAGES: u64 = 20_000;
        let mut mailbox = Mailbox::new();
        let (queue, gauge) = queue(mailbox.doorbell());
        let receiver = Receiver(Arc::clone(&queue));
        let thread = std::thread::spawn(move || {
            (0..MESSAGES).for_each(|i| queue.push(i, 8, 1));
        });
        let mut expected = 0;
        while expected < MESSAGES {
            // The receiver reads only when an event told it to: a lost ring would hang here.
            let Some(event) = mailbox.next() else {
                mailbox.park(None);
                continue;
            };
            assert_eq!(event, Ring::Channel(ID));
            receiver.acknowledge();
            while let Some(message) = receiver.pop().unwrap() {
                assert_eq!(message, expected);
                expected += 1;
            }
        }
        thread.join().unwrap();
        assert_eq!(gauge.level(), 0);
    }

    #[test]
    fn messages_and_frames_come_in_order_and_are_counted() {
        let (queue, gauge) = queue::<u64>(Mailbox::new().doorbell());
        let receiver = Receiver(Arc::clone(&queue));
        assert!(receiver.is_empty());
        queue.push(1, 100, 1);
        assert!(!receiver.is_empty());
        queue.push_frame(Bytes::copy_from_slice(&2_u64.to_le_bytes()));
        queue.push_frame(Bytes::from_static(b"no number"));
        queue.push(3, 100, 1);
        assert_eq!(gauge.level(), 217);
        assert_eq!(receiver.pop().unwrap(), Some(1));
        assert_eq!(receiver.pop().unwrap(), Some(2));
        assert!(receiver.pop().is_err());
        assert_eq!(gauge.level(), 100);
        drop(receiver);
        assert_eq!(gauge.level(), 0);
    }

    #[test]
    fn a_queue_without_a_receiver_keeps_nothing() {
        let (queue, gauge) = queue(Mailbox::new().doorbell());
        let token = Arc::new(());
        queue.push(Arc::clone(&token), 10, 1);
        drop(Receiver(Arc::clone(&queue)));
        assert_eq!(Arc::strong_count(&token), 1);
        queue.push(Arc::clone(&token), 10, 1);
        assert_eq!(Arc::strong_count(&token), 1);
        assert_eq!(gauge.level(), 0);
    }
}
