//! Messages between workers for a cut: orders of the leader, and answers.
//!
//! A word goes to one worker. It wakes the worker, and waits for its next step. Words of one worker to another stay in order: between
//! processes they travel as the computation's other messages.

use super::Cluster;
use super::control::Control;
use crate::cut::Word;

/// The worker that leads cuts.
pub(crate) const LEADER: usize = 0;

impl Cluster {
    /// Requests a cut, as [`Worker::request_cut`](crate::worker::Worker::request_cut) does, from any thread
    /// of the process.
    pub fn request_cut(&self) {
        self.tell_worker(self.fabric.here().start, LEADER, Word::Wanted);
    }

    /// Sends a message to a worker, from any thread of the process: its [`Cuts`](crate::cut::Cuts) get it in
    /// its next step.
    pub fn say_to(&self, from: usize, to: usize, what: Vec<u8>) {
        self.tell_worker(from, to, Word::Said(what));
    }

    /// Sends a word to a worker.
    pub(crate) fn tell_worker(&self, from: usize, to: usize, word: Word) {
        let here = self.fabric.here();
        if here.contains(&to) {
            return self.word(from, to, word);
        }
        let control = Control::Word {
            worker: from,
            to,
            word,
        };
        let process = to / here.len();
        self.fabric.send_control_to(process, control.to_bytes());
    }

    /// Delivers a word to a worker of this process.
    pub(super) fn word(&self, from: usize, to: usize, word: Word) {
        self.words.put(to - self.fabric.here().start, from, word);
        self.fabric.doorbell(to).wake();
    }

    /// Whether a worker of this process has waiting words.
    #[inline]
    pub(crate) fn has_words(&self, worker: usize) -> bool {
        self.words.are_some(worker - self.fabric.here().start)
    }

    /// The next word for a worker of this process, with its sender.
    pub(crate) fn next_word(&self, worker: usize) -> Option<(usize, Word)> {
        self.words.next(worker - self.fabric.here().start)
    }
}
