//! Routes of the frames of other processes to queues.
//!
//! A frame may come before any worker here has opened its channel: it waits. It may come after every worker here is done with
//! its dataflow: it is dropped, because it will never be read. A worker says once of every dataflow that it
//! began that it is done with it.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::ChannelId;
use crate::queue::Queue;
use crate::tombstones::Tombstones;

/// The queues of one channel, of whatever type of message.
pub(crate) trait Inlet: Send + Sync {
    /// Hands a frame to a worker, by its number in this process, or to each of them.
    fn deliver(&self, arrival: Arrival);

    /// To find out the type.
    fn as_any(&self) -> &dyn Any;
}

/// One queue for each worker of this process.
pub(crate) struct Queues<T>(pub(crate) Vec<Arc<Queue<T>>>);

impl<T: Send + 'static> Inlet for Queues<T> {
    fn deliver(&self, arrival: Arrival) {
        let Arrival {
            worker,
            count,
            body,
        } = arrival;
        match worker {
            Some(worker) => self.0[worker].push_frame(body, count),
            None => {
                for queue in &self.0 {
                    queue.push_frame(body.clone(), count);
                }
            }
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A frame that has arrived.
pub(crate) struct Arrival {
    /// The number of the worker in this process; `None` for every worker.
    pub(crate) worker: Option<usize>,
    /// The number of messages in the frame.
    pub(crate) count: u32,
    pub(crate) body: Bytes,
}

impl Arrival {
    /// The number of messages, one for each worker that gets them.
    pub(crate) fn messages(&self, workers: usize) -> usize {
        self.count as usize * self.worker.map_or(workers, |_| 1)
    }
}

/// A channel that is open, or will be.
#[derive(Default)]
pub(crate) struct Entry {
    /// From the first worker that opens it on.
    pub(crate) inlet: Option<Arc<dyn Inlet>>,
    /// The accumulator in which messages are combined before they leave, where the channel has one.
    pub(crate) accumulator: Option<Arc<dyn Any + Send + Sync>>,
    /// Workers that have opened it.
    pub(crate) opened: Vec<bool>,
    /// Frames that came before.
    waiting: Vec<Arrival>,
}

/// The destination of a frame.
pub(crate) enum Arrived {
    /// These queues take it.
    At(Arc<dyn Inlet>, Arrival),
    /// It waits.
    Kept,
    /// It will not be wanted.
    Dropped(Arrival),
}

/// All channels of a process.
#[derive(Default)]
pub(crate) struct Routes {
    pub(crate) channels: FxHashMap<ChannelId, Entry>,
    ended: Tombstones,
    /// Dataflows that some workers have finished, with a flag for each worker.
    ending: FxHashMap<u32, Vec<bool>>,
    /// Workers that will open nothing more.
    gone: usize,
}

impl Routes {
    /// Finds a frame's queues.
    pub(crate) fn arrive(&mut self, id: ChannelId, arrival: Arrival, workers: usize) -> Arrived {
        if self.gone == workers || self.ended.contains(id.dataflow) {
            return Arrived::Dropped(arrival);
        }
        let entry = self.channels.entry(id).or_default();
        if let Some(inlet) = &entry.inlet {
            return Arrived::At(Arc::clone(inlet), arrival);
        }
        entry.waiting.push(arrival);
        Arrived::Kept
    }

    /// Notes that a worker is done with a dataflow. The last one's word removes its channels, to be dropped
    /// by the caller.
    pub(crate) fn end(&mut self, worker: usize, dataflow: u32, workers: usize) -> Vec<Entry> {
        if self.ended.contains(dataflow) {
            return Vec::new();
        }
        let done = self
            .ending
            .entry(dataflow)
            .or_insert_with(|| vec![false; workers]);
        done[worker] = true;
        if done.contains(&false) {
            return Vec::new();
        }
        self.ending.remove(&dataflow);
        self.ended.insert(dataflow);
        let of_it = |id: &ChannelId, _: &mut Entry| id.dataflow == dataflow;
        let removed = self.channels.extract_if(of_it);
        removed.map(|(_, entry)| entry).collect()
    }

    /// Notes that a worker has ended. The last one leaves nothing behind.
    pub(crate) fn leave(&mut self, workers: usize) -> Vec<Entry> {
        self.gone += 1;
        if self.gone < workers {
            return Vec::new();
        }
        self.ending.clear();
        self.channels.drain().map(|(_, entry)| entry).collect()
    }
}

impl Entry {
    /// Passes the waiting frames on, in order; returns their bytes.
    pub(crate) fn replay(&mut self, inlet: &dyn Inlet) -> usize {
        let waiting = std::mem::take(&mut self.waiting);
        let mut bytes = 0;
        for arrival in waiting {
            bytes += arrival.body.len();
            inlet.deliver(arrival);
        }
        bytes
    }

    /// The number of waiting messages: a frame for every worker of the process counts once for each.
    pub(crate) fn messages(&self, workers: usize) -> usize {
        let waiting = self.waiting.iter();
        waiting.map(|arrival| arrival.messages(workers)).sum()
    }

    /// The bytes of the waiting frames.
    pub(crate) fn waiting(&self) -> usize {
        let waiting = self.waiting.iter();
        waiting.map(|arrival| arrival.body.len()).sum()
    }
}
