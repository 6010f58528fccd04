//! Messages between workers for a cut: orders of the leader, and answers.
//!
//! A message goes to one worker. It wakes the worker, and waits for its next step. Messages of one worker to another stay in order: between
//! processes they travel as the computation's other messages.

use super::Cluster;
use super::control::Control;
use crate::cut::CutMessage;

/// The worker that leads cuts.
pub(crate) const LEADER: usize = 0;

impl Cluster {
    /// Requests a cut, as [`Worker::request_cut`](crate::worker::Worker::request_cut) does, from any thread
    /// of the process.
    pub fn request_cut(&self) {
        self.send_cut_message(self.fabric.here().start, LEADER, CutMessage::Wanted);
    }

    /// Sends a message to a worker, from any thread of the process: its [`Cuts`](crate::cut::Cuts) get it in
    /// its next step.
    pub fn say_to(&self, from: usize, to: usize, what: Vec<u8>) {
        self.send_cut_message(from, to, CutMessage::Said(what));
    }

    /// Sends a message to a worker.
    pub(crate) fn send_cut_message(&self, from: usize, to: usize, message: CutMessage) {
        let here = self.fabric.here();
        if here.contains(&to) {
            return self.deliver_cut_message(from, to, message);
        }
        let control = Control::Cut {
            worker: from,
            to,
            message,
        };
        let process = to / here.len();
        self.fabric.send_control_to(process, control.to_bytes());
    }

    /// Delivers a message to a worker of this process.
    pub(super) fn deliver_cut_message(&self, from: usize, to: usize, message: CutMessage) {
        self.cut_inboxes
            .put(to - self.fabric.here().start, from, message);
        self.fabric.doorbell(to).wake();
    }

    /// Whether a worker of this process has waiting messages.
    #[inline]
    pub(crate) fn has_cut_messages(&self, worker: usize) -> bool {
        self.cut_inboxes.are_some(worker - self.fabric.here().start)
    }

    /// The next message for a worker of this process, with its sender.
    pub(crate) fn next_cut_message(&self, worker: usize) -> Option<(usize, CutMessage)> {
        self.cut_inboxes.next(worker - self.fabric.here().start)
    }
}
