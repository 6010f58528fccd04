//! The sending ends of channels, and the state that they share with everything that is sent to other
//! processes.
//!
//! A [`Sender`] to a worker of this process enqueues the message itself. One to another process encodes it, on
//! the thread that pushes, and hands it to the transport; neither ever waits.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::encode::{CodecError, Encode, Encoder};
use crate::gauge::Gauge;
use crate::queue::Queue;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::{ChannelError, MAX_BODY, Recipient, Transport};

/// The kind of a control frame: its first byte.
pub(crate) const PRESSURE: u8 = 1;
pub(crate) const COMPUTATION: u8 = 2;

/// The number of frames and bytes that were sent to other processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Frames with messages of operators.
    pub data_frames: u64,
    /// Their bytes.
    pub data_bytes: u64,
    /// Frames with changes to pointstamps.
    pub progress_frames: u64,
    /// Their bytes.
    pub progress_bytes: u64,
}

/// Frames and bytes of one kind.
#[derive(Debug, Default)]
pub(crate) struct Count {
    frames: AtomicU64,
    bytes: AtomicU64,
}

/// The connections to the other processes, with their counters.
pub(crate) struct Uplink {
    transport: Arc<dyn Transport>,
    gauge: Arc<Gauge>,
    pub(crate) data: Count,
    pub(crate) progress: Count,
    pub(crate) control: Count,
}

impl Uplink {
    pub(crate) fn new(transport: Arc<dyn Transport>, gauge: Arc<Gauge>) -> Self {
        Uplink {
            transport,
            gauge,
            data: Count::default(),
            progress: Count::default(),
            control: Count::default(),
        }
    }

    pub(crate) fn transport(&self) -> &Arc<dyn Transport> {
        &self.transport
    }

    /// The gauge's stripe of the threads that are no workers.
    pub(crate) fn stripe_of_others(&self) -> usize {
        self.gauge.others()
    }

    /// The other processes.
    pub(crate) fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let here = self.transport.process();
        (0..self.transport.processes()).filter(move |&process| process != here)
    }

    /// Queues a frame for each of some processes.
    pub(crate) fn send(
        &self,
        processes: impl IntoIterator<Item = usize>,
        route: Recipient,
        body: &[Bytes],
        count: &Count,
    ) {
        let len: usize = body.iter().map(Bytes::len).sum();
        for process in processes {
            let queued = self.transport.send(process, route, body.to_vec());
            self.gauge.add(self.gauge.others(), queued);
            count.frames.fetch_add(1, Ordering::Relaxed);
            count.bytes.fetch_add(len as u64, Ordering::Relaxed);
        }
    }

    /// Counts a message to some processes as sent.
    pub(crate) fn count(&self, stripe: usize, processes: usize, route: Recipient) {
        let copies = match route {
            Recipient::Worker(..) => 1,
            Recipient::Everyone(_) | Recipient::Sum { .. } => self.gauge.workers(), // each process has as many
            Recipient::Control => 0,
        };
        self.gauge.sent(stripe, processes * copies);
    }

    /// Counts messages to every worker of some processes as taken: they have cancelled on the way.
    pub(crate) fn take_away(&self, processes: usize, messages: u32) {
        let copies = processes * self.gauge.workers() * messages as usize;
        self.gauge.taken(self.gauge.others(), copies);
    }

    /// Queues a word about back-pressure.
    pub(crate) fn send_pressure(&self, processes: impl IntoIterator<Item = usize>, word: Bytes) {
        let body = [Bytes::from_static(&[PRESSURE]), word];
        self.send(processes, Recipient::Control, &body, &self.control);
    }

    /// Queues a message of the computation itself for every other process.
    pub(crate) fn send_control(&self, message: &[Bytes]) {
        let mut body = vec![Bytes::from_static(&[COMPUTATION])];
        body.extend_from_slice(message);
        self.send(self.others(), Recipient::Control, &body, &self.control);
    }

    /// Queues a message of the computation itself for one other process.
    pub(crate) fn send_control_to(&self, process: usize, message: Bytes) {
        let body = [Bytes::from_static(&[COMPUTATION]), message];
        self.send([process], Recipient::Control, &body, &self.control);
    }

    pub(crate) fn traffic(&self) -> Traffic {
        let get = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Traffic {
            data_frames: get(&self.data.frames),
            data_bytes: get(&self.data.bytes),
            progress_frames: get(&self.progress.frames),
            progress_bytes: get(&self.progress.bytes),
        }
    }
}

/// Pushes messages to one worker, or to every worker of some other processes. Clones push to the same; messages of one
/// sender stay in order.
pub struct Sender<T>(pub(crate) Way<T>);

pub(crate) enum Way<T> {
    /// A queue of this process, and the gauge's stripe of the worker that pushes.
    Here(Arc<Queue<T>>, usize),
    /// Another process, or several.
    Away(Arc<Away>),
}

pub(crate) struct Away {
    pub(crate) uplink: Arc<Uplink>,
    /// The gauge's stripe of the worker that pushes.
    pub(crate) stripe: usize,
    pub(crate) processes: Vec<usize>,
    pub(crate) route: Recipient,
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Sender(match &self.0 {
            Way::Here(queue, stripe) => Way::Here(Arc::clone(queue), *stripe),
            Way::Away(away) => Way::Away(Arc::clone(away)),
        })
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Way::Here(..) => f.write_str("Sender(here)"),
            Way::Away(away) => write!(f, "Sender({:?}, {:?})", away.processes, away.route),
        }
    }
}

impl<T: Encode> Sender<T> {
    /// Enqueues a message and wakes the receiver if this starts a burst. It never waits.
    ///
    /// # Errors
    ///
    /// When the message goes to another process and cannot be encoded; nothing is sent then.
    #[inline]
    pub fn push(&self, message: T) -> Result<(), CodecError> {
        match &self.0 {
            Way::Here(queue, stripe) => {
                let footprint = message.footprint();
                queue.push(message, footprint, *stripe);
                Ok(())
            }
            Way::Away(away) => away.push(&message),
        }
    }

    /// Enqueues a message for a worker of this process; it is not counted.
    pub(crate) fn push_here(&self, message: T) {
        match &self.0 {
            Way::Here(queue, stripe) => queue.push(message, 0, *stripe),
            Way::Away(_) => unreachable!("a sender to this process"),
        }
    }
}

impl Away {
    fn push<T: Encode>(&self, message: &T) -> Result<(), CodecError> {
        let mut encoder = Encoder::new();
        message.encode(&mut encoder)?;
        if encoder.len() > MAX_BODY {
            let len = encoder.len();
            return Err(ChannelError::TooLong { len }.into());
        }
        let body = encoder.finish();
        let uplink = &self.uplink;
        uplink.count(self.stripe, self.processes.len(), self.route);
        uplink.send(
            self.processes.iter().copied(),
            self.route,
            &body,
            &uplink.data,
        );
        Ok(())
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::ChannelId;
    use crate::transport::nowhere::NoWhere;

    /// A message of so many bytes, which takes no memory.
    struct Zeros(usize);

    static ZEROS: [u8; 1 << 20] = [0; 1 << 20];

    impl Encode for Zeros {
        fn encode(&self, out: &mut Encoder) -> Result<(), CodecError> {
            while out.len() < self.0 {
                let more = ZEROS.len().min(self.0 - out.len());
                out.put_bytes(Bytes::from_static(&ZEROS[..more]));
            }
            Ok(())
        }

        fn decode(bytes: Bytes) -> Result<Self, CodecError> {
            Ok(Zeros(bytes.len()))
        }

        fn footprint(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn a_message_of_more_than_a_frame_is_refused() {
        let id = ChannelId {
            dataflow: 0,
            channel: 0,
        };
        let uplink = Arc::new(Uplink::new(Arc::new(NoWhere), Arc::new(Gauge::new(1))));
        let sender = Sender(Way::Away(Arc::new(Away {
            uplink: Arc::clone(&uplink),
            stripe: 0,
            processes: vec![1],
            route: Recipient::Worker(id, 0),
        })));
        sender.push(Zeros(MAX_BODY)).unwrap();
        let refused = sender.push(Zeros(MAX_BODY + 1)).unwrap_err();
        assert_eq!(
            refused.downcast_ref(),
            Some(&ChannelError::TooLong { len: MAX_BODY + 1 })
        );
        sender.push(Zeros(0)).unwrap();
        let traffic = uplink.traffic();
        assert_eq!(
            (traffic.data_frames, traffic.data_bytes),
            (2, MAX_BODY as u64)
        );
    }
}
