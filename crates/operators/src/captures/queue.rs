//! Captures in memory: the events of a stream on one worker.
//!
//! The events are the state of the capturing operator. Events never change, so that a checkpoint writes those that are new, in a run. Runs are joined
//! where a later one has become half as long as the one before it: their number stays logarithmic.

use std::cell::RefCell;
use std::io::Write;
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pointstamp_engine::cut::{Content as PieceContent, Piece, State};
use pointstamp_engine::error::UserResult;
use pointstamp_engine::operator::{Lends, OperatorBuilder};
use pointstamp_engine::operators::{Event, capture_from};
use pointstamp_engine::stream::Stream;
use pointstamp_engine::wakeups::RemoteActivator;
use pointstamp_events::Promise;
use pointstamp_order::Point;

use crate::Error;
use crate::batch::Batch;
use crate::checkpoint::{Entries, Entry, entries_of};

/// The events of a stream on one worker, to be read from any thread. Clones share them.
#[derive(Clone, Default)]
pub struct Queue {
    events: Arc<Mutex<Events>>,
    /// Lives as long as anyone may read the events.
    read: Arc<()>,
}

#[derive(Default)]
struct Events {
    list: Vec<Event<Batch>>,
    /// The operators that play the events, to be run when there is another.
    readers: Vec<RemoteActivator>,
    /// Whether the capturing operator was dropped.
    ended: bool,
    /// Whether there were events that no checkpoint has.
    lost: bool,
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
        let mut events = self.0.events.lock();
        events.list.push(event);
        events.readers.iter().for_each(RemoteActivator::activate);
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let mut events = self.0.events.lock();
        events.ended = true;
        events.readers.iter().for_each(RemoteActivator::activate);
    }
}

impl Queue {
    /// Keeps the events of a stream, on this worker. They are state for checkpoints, also after the end of the
    /// stream.
    ///
    /// # Errors
    ///
    /// Errors of building an operator; [`Error::Checkpoint`] for a state that cannot be read.
    pub fn capture(&self, stream: &Stream<Batch>) -> Result<(), Error> {
        let dims = stream.scope().dims();
        let sink = Sink(self.clone());
        let begin = |builder: &OperatorBuilder<Batch>| {
            let mut log = Log {
                events: Arc::clone(&self.events),
                runs: Vec::new(),
            };
            let frontier = log.restore(builder, dims)?;
            let log = Rc::new(RefCell::new(log));
            builder.lends(LentLog {
                log: Rc::clone(&log),
                read: Arc::downgrade(&self.read),
            });
            builder.keeps(move || Ok(log.borrow_mut().take()));
            Ok(frontier)
        };
        capture_from(stream, begin, move |event| {
            sink.push(event);
            Ok(())
        })
    }

    /// Returns the event at an index.
    pub fn get(&self, index: usize) -> Option<Event<Batch>> {
        self.events.lock().list.get(index).cloned()
    }

    /// Returns the event at an index, or whether there will be one.
    pub fn take(&self, index: usize) -> Taken {
        let events = self.events.lock();
        match events.list.get(index) {
            Some(event) => Taken::Event(event.clone()),
            None if events.ended => Taken::End,
            None => Taken::Nothing,
        }
    }

    /// Returns whether the stream had ended at the checkpoint from which the computation resumes, when nobody
    /// could read its events any more: the checkpoint does not have them.
    pub fn is_lost(&self) -> bool {
        self.events.lock().lost
    }

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.events.lock().list.len()
    }

    /// Returns true if there is no event.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Has an operator run whenever there is another event.
    pub(super) fn watch(&self, reader: RemoteActivator) {
        self.events.lock().readers.push(reader);
    }
}

/// The first number of an entry.
mod tag {
    pub(super) const PROGRESS: u64 = 0;
    pub(super) const MESSAGES: u64 = 1;
}

fn entry_of(event: &Event<Batch>) -> Entry {
    match event {
        Event::Progress(changes) => {
            let mut numbers = vec![tag::PROGRESS];
            for (time, diff) in changes {
                numbers.extend(time.coords());
                numbers.push(diff.cast_unsigned());
            }
            Entry::new::<Batch>(numbers, [])
        }
        Event::Messages(time, batch) => Entry::at(tag::MESSAGES, time, [batch.clone()]),
    }
}

fn event_of(entry: Entry, dims: usize) -> Result<Event<Batch>, Error> {
    let Entry {
        numbers,
        mut batches,
    } = entry;
    match (&numbers[..], batches.pop()) {
        ([tag::PROGRESS, changes @ ..], None) if changes.len() % (dims + 1) == 0 => {
            let changes = changes.chunks_exact(dims + 1);
            let changes = changes.map(|change| {
                let (coords, diff) = change.split_at(dims);
                (Point::new(coords), diff[0].cast_signed())
            });
            Ok(Event::Progress(changes.collect()))
        }
        ([tag::MESSAGES, coords @ ..], Some(batch)) if coords.len() == dims => {
            Ok(Event::Messages(Point::new(coords), batch))
        }
        _ => Err(Error::Checkpoint("its events")),
    }
}

/// A run of events.
struct Run {
    events: Arc<Mutex<Events>>,
    range: Range<usize>,
}

impl PieceContent for Run {
    fn write(&self, out: &mut dyn Write) -> UserResult<()> {
        let entries = {
            let events = self.events.lock();
            let run = events.list.get(self.range.clone()).unwrap_or_default();
            run.iter().map(entry_of).collect()
        };
        Entries(entries).write(out)
    }
}

/// The events as state: their runs, which cover them in order.
struct Log {
    events: Arc<Mutex<Events>>,
    runs: Vec<(Range<usize>, Piece)>,
}

impl Log {
    /// Takes the events of a checkpoint; returns the frontier after them.
    fn restore(
        &mut self,
        builder: &OperatorBuilder<Batch>,
        dims: usize,
    ) -> Result<Option<Vec<Point>>, Error> {
        let Some(restored) = builder.restored() else {
            self.events.lock().lost = builder.has_ended();
            return Ok(None);
        };
        let mut promise = Promise::new(dims);
        let mut list = Vec::new();
        for piece in restored.state.pieces() {
            let begin = list.len();
            for entry in entries_of(piece).map_err(Error::State)? {
                let event = event_of(entry, dims)?;
                if let Event::Progress(changes) = &event {
                    let kept = promise.progress(changes);
                    kept.map_err(|broken| Error::State(broken.into()))?;
                }
                list.push(event);
            }
            self.runs.push((begin..list.len(), piece.clone()));
        }
        self.events.lock().list = list;
        Ok(promise.has_begun().then(|| promise.frontier().to_vec()))
    }

    fn take(&mut self) -> State {
        let end = self.events.lock().list.len();
        let begin = self.runs.last().map_or(0, |(range, _)| range.end);
        if begin < end {
            let mut range = begin..end;
            while let Some((before, _)) = self.runs.last()
                && before.len() <= 2 * range.len()
            {
                range.start = before.start;
                self.runs.pop();
            }
            let run = Run {
                events: Arc::clone(&self.events),
                range: range.clone(),
            };
            self.runs.push((range, Piece::new(run)));
        }
        State::Workers(self.runs.iter().map(|(_, piece)| piece.clone()).collect())
    }
}

/// The events of a stream that has ended.
struct LentLog {
    log: Rc<RefCell<Log>>,
    read: Weak<()>,
}

impl Lends for LentLog {
    fn is_read(&self) -> bool {
        self.read.strong_count() > 0
    }

    fn take(&mut self) -> UserResult<State> {
        Ok(self.log.borrow_mut().take())
    }
}
