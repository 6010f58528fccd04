//! Captures in memory: the events of a stream on one worker.

use std::sync::Arc;

use parking_lot::Mutex;
use pointstamp_engine::operators::Event;
use pointstamp_engine::wakeups::RemoteActivator;

use crate::batch::Batch;

/// The events of a stream on one worker, to be read from any thread. Clones share them.
#[derive(Clone, Default)]
pub struct Queue(Arc<Mutex<Events>>);

#[derive(Default)]
struct Events {
    list: Vec<Event<Batch>>,
    /// The operators that play the events, to be run when there is another.
    readers: Vec<RemoteActivator>,
    /// Whether the capturing operator was dropped.
    ended: bool,
}

/// The content of a queue at an index.
pub enum Taken {
    /// An event.
    Event(Event<Batch>),
    /// Nothing yet.
    Nothing,
    /// Nothing any more.
    End,
}

/// The capturing operator's end; when it is dropped, nothing more comes.
struct Sink(Queue);

impl Sink {
    /// The lock is held for a push and for asking the readers to run.
    fn push(&self, event: Event<Batch>) {
        let mut events = self.0.0.lock();
        events.list.push(event);
        events.readers.iter().for_each(RemoteActivator::activate);
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let mut events = self.0.0.lock();
        events.ended = true;
        events.readers.iter().for_each(RemoteActivator::activate);
    }
}

impl Queue {
    /// Returns the function that a capturing operator calls with each event. When it is dropped, the queue has ended.
    pub fn sink(&self) -> impl FnMut(Event<Batch>) + use<> {
        let sink = Sink(self.clone());
        move |event| sink.push(event)
    }

    /// Returns the event at an index.
    pub fn get(&self, index: usize) -> Option<Event<Batch>> {
        self.0.lock().list.get(index).cloned()
    }

    /// Returns the event at an index, or whether there will be one.
    pub fn take(&self, index: usize) -> Taken {
        let events = self.0.lock();
        match events.list.get(index) {
            Some(event) => Taken::Event(event.clone()),
            None if events.ended => Taken::End,
            None => Taken::Nothing,
        }
    }

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.0.lock().list.len()
    }

    /// Returns true if there is no event.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Has an operator run whenever there is another event.
    pub(super) fn watch(&self, reader: RemoteActivator) {
        self.0.lock().readers.push(reader);
    }
}
