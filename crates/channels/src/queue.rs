//! A typed queue into one worker.
//!
//! Invariant: while the queue holds a message that the receiver has not been notified of, an event for it is in the
//! receiver's mailbox. `signalled` is true from the push that rings until the receiver acknowledges, so a burst rings
//! once. The receiver acknowledges before it pops: a message pushed after that rings again.
//!
//! A message of another process waits as the bytes that arrived, and is decoded where it is popped: on the worker's
//! own thread. Waiting messages are counted in the process's gauge.
//!
//! A receiver can [pull](Receiver::pull) waiting messages without consuming them, so that a checkpoint sees the
//! messages that an operator leaves alone.
//!
//! Messages to a receiver that was dropped are dropped: the dataflow that would read them is complete.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::encode::{CodecError, Encode};
use crate::gauge::Gauge;
use crate::sync::SegQueue;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::{ChannelId, Doorbell, Ring};

/// A waiting message, with the bytes that the gauge counts for it.
enum Slot<T> {
    Message(T, usize),
    /// A frame, and the number of messages in it.
    Frame(Bytes, u32),
}

impl<T> Slot<T> {
    fn messages(&self) -> usize {
        match self {
            Slot::Message(..) => 1,
            Slot::Frame(_, count) => *count as usize,
        }
    }
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
        self.gauge.sent(stripe, 1);
        self.enqueue(Slot::Message(message, footprint), footprint, stripe);
    }

    /// Enqueues a frame of another process, with the number of messages in it, which were counted as sent there.
    pub(crate) fn push_frame(&self, frame: Bytes, count: u32) {
        let bytes = frame.len();
        self.enqueue(Slot::Frame(frame, count), bytes, self.gauge.others());
    }

    #[inline]
    fn enqueue(&self, slot: Slot<T>, bytes: usize, stripe: usize) {
        if self.closed.load(Ordering::Acquire) {
            return self.gauge.taken(stripe, slot.messages());
        }
        self.gauge.add(stripe, bytes);
        self.slots.push(slot);
        // AcqRel pairs with `acknowledge`: the thread that clears the flag afterwards sees the message.
        if !self.signalled.swap(true, Ordering::AcqRel) {
            self.doorbell.ring(Ring::Channel(self.id));
        }
    }

    /// Takes a message out of the queue, with the bytes that the gauge still counts for it. The stripe is of the thread that does.
    #[inline]
    fn take(&self, stripe: usize) -> Option<(Slot<T>, usize)> {
        let slot = self.slots.pop()?;
        self.gauge.taken(stripe, slot.messages());
        let bytes = match &slot {
            Slot::Message(_, footprint) => *footprint,
            Slot::Frame(frame, _) => frame.len(),
        };
        Some((slot, bytes))
    }

    #[inline]
    fn consumed(&self, bytes: usize) {
        self.gauge.sub(self.stripe, bytes);
    }

    fn clear(&self) {
        // The last reference may be dropped by any thread.
        while let Some((_, bytes)) = self.take(self.gauge.others()) {
            self.consumed(bytes);
        }
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        self.clear(); // a message that was pushed while the receiver went
    }
}

/// Takes messages out of a queue; there is one for each worker.
pub struct Receiver<T> {
    queue: Arc<Queue<T>>,
    /// Messages that were pulled and not popped since, in front of the queue, with the bytes that the gauge
    /// counts for them.
    pulled: RefCell<VecDeque<(T, usize)>>,
}

impl<T> Receiver<T> {
    pub(crate) fn new(queue: Arc<Queue<T>>) -> Self {
        Receiver {
            queue,
            pulled: RefCell::default(),
        }
    }
}

fn decoded<T: Encode>(slot: Slot<T>) -> Result<T, CodecError> {
    match slot {
        Slot::Message(message, _) => Ok(message),
        Slot::Frame(frame, _) => T::decode(frame),
    }
}

impl<T: Encode> Receiver<T> {
    /// The next message, if one is there.
    ///
    /// # Errors
    ///
    /// When a message of another process cannot be decoded; the message is lost then.
    #[inline]
    pub fn pop(&self) -> Result<Option<T>, CodecError> {
        if let Some((message, bytes)) = self.pulled.borrow_mut().pop_front() {
            self.queue.consumed(bytes);
            return Ok(Some(message));
        }
        let Some((slot, bytes)) = self.queue.take(self.queue.stripe) else {
            return Ok(None);
        };
        self.queue.consumed(bytes);
        decoded(slot).map(Some)
    }

    /// Takes in all that waits now, so that [`pulled`](Self::pulled) shows it. It is popped as before, in the same order, and its bytes
    /// count as in flight until then.
    ///
    /// # Errors
    ///
    /// As [`pop`](Self::pop).
    pub fn pull(&self) -> Result<(), CodecError> {
        while let Some((slot, bytes)) = self.queue.take(self.queue.stripe) {
            let message = decoded(slot).inspect_err(|_| self.queue.consumed(bytes))?;
            self.pulled.borrow_mut().push_back((message, bytes));
        }
        Ok(())
    }
}

impl<T: Clone> Receiver<T> {
    /// Copies of the messages that were pulled and not popped since, the first one first.
    pub fn pulled(&self) -> Vec<T> {
        let pulled = self.pulled.borrow();
        pulled.iter().map(|(message, _)| message.clone()).collect()
    }
}

impl<T> Receiver<T> {
    /// Says that the event for this channel has been seen. Call it before the pops that follow.
    pub fn acknowledge(&self) {
        self.queue.signalled.swap(false, Ordering::AcqRel);
    }

    /// Whether no message is there now.
    pub fn is_empty(&self) -> bool {
        self.queue.slots.is_empty() && self.pulled.borrow().is_empty()
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.queue.closed.store(true, Ordering::Release);
        for (_, bytes) in self.pulled.take() {
            self.queue.consumed(bytes);
        }
        self.queue.clear();
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::Mailbox;
    use crate::gauge::Tally;

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
        let receiver = Receiver::new(Arc::clone(&queue));
        let thread = std::thread::spawn(move || {
            (0..MESSAGES).for_each(|i| queue.push(i, 8, 1));
        });
        let mut expected = 0;
        while expected < MESSAGES {
            // The receiver reads only on an event: a lost ring would hang here.
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
        let receiver = Receiver::new(Arc::clone(&queue));
        assert!(receiver.is_empty());
        queue.push(1, 100, 1);
        assert!(!receiver.is_empty());
        queue.push_frame(Bytes::copy_from_slice(&2_u64.to_le_bytes()), 1);
        queue.push_frame(Bytes::from_static(b"no number"), 1);
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
    fn what_is_pulled_is_seen_and_popped_in_order_and_counted_as_before() {
        let (queue, gauge) = queue::<u64>(Mailbox::new().doorbell());
        let receiver = Receiver::new(Arc::clone(&queue));
        queue.push(1, 100, 1);
        queue.push_frame(Bytes::copy_from_slice(&2_u64.to_le_bytes()), 1);
        receiver.pull().unwrap();
        queue.push(3, 100, 1);
        assert_eq!(receiver.pulled(), [1, 2]);
        assert_eq!(gauge.level(), 208);
        assert_eq!(gauge.tally(0), Tally { sent: 0, taken: 2 });
        assert_eq!(gauge.tally(1), Tally { sent: 2, taken: 0 });
        let popped: Vec<_> = std::iter::from_fn(|| receiver.pop().unwrap()).collect();
        assert_eq!(popped, [1, 2, 3]);
        assert!(receiver.is_empty());
        assert_eq!((gauge.level(), gauge.tally(0).taken), (0, 3));
        queue.push(4, 100, 1);
        receiver.pull().unwrap();
        drop(receiver);
        queue.push(5, 100, 1);
        assert_eq!(gauge.level(), 0);
        let (sender, taker) = (gauge.tally(1), gauge.tally(0));
        // The frame was counted where it was sent; the last message was dropped by the thread that pushed it.
        assert_eq!(sender.sent + 1, taker.taken + sender.taken);
    }

    #[test]
    fn a_queue_without_a_receiver_keeps_nothing() {
        let (queue, gauge) = queue(Mailbox::new().doorbell());
        let token = Arc::new(());
        queue.push(Arc::clone(&token), 10, 1);
        drop(Receiver::new(Arc::clone(&queue)));
        assert_eq!(Arc::strong_count(&token), 1);
        queue.push(Arc::clone(&token), 10, 1);
        assert_eq!(Arc::strong_count(&token), 1);
        assert_eq!(gauge.level(), 0);
    }
}
