//! The operator that plays captures.
//!
//! It holds capabilities for the least times of all frontiers, which begin at the minimum; an event moves the
//! frontier of its own capture. So the stream has the frontier of the captured stream, however the captures are
//! interleaved. A run takes a bounded number of events, and the operator is a source like any other: it pauses while
//! too many bytes are in flight.
//!
//! Its state is the place in each capture, at the end of an event.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::{BoxError, UserResult};
use pointstamp_engine::operators::Event;
use pointstamp_engine::payload::Payload;
use pointstamp_engine::port::{OutputPort, SendError};
use pointstamp_engine::scope::Scope;
use pointstamp_engine::stream::Stream;
use pointstamp_engine::wakeups::Activator;
use pointstamp_events::{EncodedEvent, Promise, promise};
use pointstamp_order::{PartialOrder, Point};

use super::error::CaptureError;
use super::feed::{Feed, Next};
use super::queue::{Queue, Taken};
use crate::Error;
use crate::batch::Batch;
use crate::checkpoint::{Division, Entry, entries_of_state, keep};

/// The most events of one capture that a run takes.
const EVENTS: usize = 64;

/// The most bytes of batches of one capture that a run takes, but for the last batch.
const BYTES: usize = 8 << 20;

/// The least and the most time for which a file that does not grow is left alone.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(64));

/// A capture to be played.
pub enum Source {
    /// A capture in memory.
    Memory(Queue),
    /// A feed, which was claimed for it. It is closed when the replay is dropped.
    Feed(Feed),
}

/// Plays captures into a scope. A capture that ends before its stream is played up to there, and `warn` gets a sentence that says
/// so.
///
/// # Errors
///
/// Errors of building an operator; where the dataflow resumes from a checkpoint, captures that are not those that were played.
pub fn replay(
    scope: &Scope<Batch>,
    captures: Vec<Source>,
    warn: impl FnMut(String) -> UserResult<()> + 'static,
) -> Result<Stream<Batch>, Error> {
    let dims = scope.dims();
    let builder = scope.operator("replay")?;
    let (output, stream, capability) = builder.new_held_output()?;
    builder.start();
    let activator = builder.activator();
    let played = captures.into_iter().map(|source| {
        match &source {
            Source::Memory(queue) => queue.watch(activator.remote()),
            Source::Feed(feed) => feed.wake(activator.remote()),
        }
        Played {
            source,
            taken: 0,
            frontier: vec![Point::minimum(dims)],
            promise: Promise::new(dims),
            ended: false,
        }
    });
    let mut played: Vec<_> = played.collect();
    let mut held = vec![capability];
    if let Some(restored) = builder.restored() {
        let entries = entries_of_state(&restored.state)?;
        if entries.len() != played.len() {
            return Err(Error::Checkpoint("the number of its captures"));
        }
        for (played, entry) in played.iter_mut().zip(&entries) {
            played.go_on(&entry.numbers, dims)?;
        }
        held.extend(restored.held);
    }
    let operator = Rc::new(RefCell::new(Player {
        played,
        held,
        output,
        activator,
        patience: ASK_AGAIN.0,
        warn: Box::new(warn),
    }));
    let kept = Rc::clone(&operator);
    keep(&builder, Division::Workers, move || {
        let kept = kept.borrow();
        let places = kept.played.iter().map(Played::place);
        let places = places.collect::<Result<Vec<_>, _>>();
        places.map_err(CaptureError::into_cause)
    });
    builder.build(move || {
        operator.borrow_mut().run()?;
        Ok(false)
    });
    Ok(stream)
}

/// One capture that is played.
struct Played {
    source: Source,
    /// The number of events of a queue that were taken.
    taken: usize,
    frontier: Vec<Point>,
    promise: Promise,
    ended: bool,
}

/// The item that a capture gives in a run.
enum Step {
    Progress(Vec<(Point, i64)>),
    Batches(Vec<(Point, Batch)>),
    /// Nothing now; the flag says whether to poll again.
    Wait(bool),
    /// The end, with a warning if the capture ends before its stream.
    End(Option<String>),
}

impl Drop for Played {
    fn drop(&mut self) {
        if let Source::Feed(feed) = &self.source {
            feed.close();
        }
    }
}

struct Player {
    played: Vec<Played>,
    held: Vec<Capability>,
    output: OutputPort<Batch>,
    activator: Activator,
    /// The interval at which files are polled.
    patience: Duration,
    warn: Box<dyn FnMut(String) -> UserResult<()>>,
}

impl Player {
    fn run(&mut self) -> UserResult<()> {
        let (mut again, mut ask, mut any) = (false, false, false);
        for index in 0..self.played.len() {
            let mut bytes = 0;
            let mut count = 0;
            loop {
                if self.played[index].ended {
                    break;
                }
                if count == EVENTS || bytes >= BYTES {
                    again = true;
                    break;
                }
                match self.played[index]
                    .step()
                    .map_err(CaptureError::into_cause)?
                {
                    Step::Progress(changes) => {
                        self.move_frontier(index, &changes)?;
                    }
                    Step::Batches(batches) => {
                        for (time, batch) in batches {
                            bytes += batch.footprint();
                            self.send(&time, batch)?;
                        }
                    }
                    Step::Wait(later) => {
                        ask |= later;
                        break;
                    }
                    Step::End(said) => {
                        if let Some(said) = said {
                            (self.warn)(said)?;
                        }
                        self.played[index].ended = true;
                        self.played[index].frontier.clear();
                    }
                }
                count += 1;
            }
            any |= count > 0;
        }
        // Once for all: between the captures nothing looks.
        self.hold()?;
        if again {
            self.activator.activate();
        } else if ask {
            self.patience = if any {
                ASK_AGAIN.0
            } else {
                (2 * self.patience).min(ASK_AGAIN.1)
            };
            self.activator.activate_after(self.patience);
        }
        Ok(())
    }

    fn move_frontier(&mut self, index: usize, changes: &[(Point, i64)]) -> Result<(), BoxError> {
        let played = &mut self.played[index];
        played.promise.progress(changes)?;
        played.frontier = played.promise.frontier().to_vec();
        Ok(())
    }

    /// Adjusts the held capabilities to the frontiers of the captures.
    fn hold(&mut self) -> Result<(), BoxError> {
        let frontiers = self.played.iter().map(|played| played.frontier.as_slice());
        let times = promise::union(frontiers);
        let same = times.len() == self.held.len()
            && times
                .iter()
                .all(|time| self.held.iter().any(|held| held.time() == time));
        if same {
            return Ok(());
        }
        let moved = times.iter().map(|time| self.at(time));
        self.held = moved.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn at(&self, time: &Point) -> Result<Capability, BoxError> {
        let held = self.held.iter().find(|held| held.time().less_equal(time));
        let held = held.ok_or("a capture went back in time")?;
        Ok(held.delayed(time)?)
    }

    fn send(&self, time: &Point, batch: Batch) -> Result<(), BoxError> {
        let capability = self.at(time)?;
        self.output
            .send(&capability, batch)
            .map_err(SendError::into_cause)
    }
}

impl Played {
    /// Returns its place: whether it has ended, and of a queue the number of events that were taken; of a feed the offset, its
    /// mark after the number of marks, and the sums of the changes so far.
    fn place(&self) -> Result<Entry, CaptureError> {
        let mut numbers = vec![u64::from(self.ended)];
        match &self.source {
            _ if self.ended => {}
            Source::Memory(_) => numbers.push(self.taken as u64),
            Source::Feed(feed) => {
                if let Some(counts) = feed.counts() {
                    let mark = feed.mark()?;
                    numbers.extend([feed.offset(), u64::from(mark.is_some())]);
                    numbers.extend(mark.map(u64::from));
                    for (time, count) in counts {
                        numbers.extend(time.coords());
                        numbers.push(count.cast_unsigned());
                    }
                }
            }
        }
        Ok(Entry::new::<Batch>(numbers, []))
    }

    /// Continues at a place.
    fn go_on(&mut self, place: &[u64], dims: usize) -> Result<(), Error> {
        let unreadable = || Error::Checkpoint("the places in its captures");
        match (&self.source, place) {
            (_, [1]) => {
                self.ended = true;
                self.frontier.clear();
            }
            (Source::Memory(queue), [0, taken]) => {
                let taken = usize::try_from(*taken).map_err(|_| unreadable())?;
                while self.taken < taken {
                    let Some(event) = queue.get(self.taken) else {
                        return Err(Error::Checkpoint(
                            "a capture in memory has fewer events than were played",
                        ));
                    };
                    self.taken += 1;
                    if let Event::Progress(changes) = event {
                        let kept = self.promise.progress(&changes);
                        kept.map_err(|broken| Error::State(broken.into()))?;
                    }
                }
                self.frontier = self.promise.frontier().to_vec();
            }
            (Source::Feed(_), [0]) => {}
            (Source::Feed(feed), [0, offset, marks, rest @ ..]) => {
                let marks = usize::try_from(*marks).unwrap_or(usize::MAX);
                let (mark, counts) = rest.split_at_checked(marks).ok_or_else(unreadable)?;
                let mark = mark.first().and_then(|mark| u32::try_from(*mark).ok());
                let counts = counts.chunks(dims + 1).map(|count| {
                    let (coords, count) = count.split_at_checked(dims)?;
                    Some((Point::new(coords), count.first()?.cast_signed()))
                });
                let counts: Vec<_> = counts.collect::<Option<_>>().ok_or_else(unreadable)?;
                self.promise = Promise::resumed(dims, counts.clone());
                self.frontier = self.promise.frontier().to_vec();
                let sought = feed.seek(*offset, counts, mark);
                sought.map_err(|error| Error::State(error.into_cause()))?;
            }
            _ => return Err(unreadable()),
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Step, CaptureError> {
        match &mut self.source {
            Source::Memory(queue) => Ok(match queue.take(self.taken) {
                Taken::Event(event) => {
                    self.taken += 1;
                    match event {
                        Event::Progress(changes) => Step::Progress(changes),
                        Event::Messages(time, batch) => Step::Batches(vec![(time, batch)]),
                    }
                }
                Taken::Nothing => Step::Wait(false),
                Taken::End => {
                    let said = "a capture in memory ends before its stream: its dataflow failed";
                    Step::End((!self.promise.is_complete()).then(|| said.to_owned()))
                }
            }),
            Source::Feed(feed) => Ok(match feed.next()? {
                Next::Event(_, _, EncodedEvent::Progress(changes)) => Step::Progress(changes),
                Next::Event(offset, contents, EncodedEvent::Messages(runs, bytes)) => {
                    Step::Batches(feed.batches(offset, contents, runs, &bytes)?)
                }
                Next::Wait { ask } => Step::Wait(ask),
                Next::End { complete: true } => Step::End(None),
                Next::End { complete: false } => {
                    let (name, offset) = (feed.name(), feed.offset());
                    Step::End(Some(format!(
                        "{name} ends at byte {offset}, before its stream did: what was whole up to there is replayed"
                    )))
                }
            }),
        }
    }
}
