//! The operator that plays captures.
//!
//! It holds capabilities for the least times of all frontiers, which begin at the minimum; an event moves the frontier of its own
//! capture. So the stream's frontier is what that of the captured stream was, however the captures are interleaved. A run
//! takes a bounded number of events, and the operator is a source like any other: it pauses while too much is on its way.

use std::sync::Arc;
use std::time::Duration;

use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::{BoxError, UserResult};
use pointstamp_engine::operators::Event;
use pointstamp_engine::payload::Payload;
use pointstamp_engine::port::{OutputPort, SendError};
use pointstamp_engine::wakeups::Activator;
use pointstamp_events::{EncodedEvent, Promise, promise};
use pointstamp_order::{PartialOrder, Point};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::feed::{EventFeed, Next, Shared};
use crate::batch::Batch;
use crate::capture::{EventQueue, Taken};
use crate::errors::{IntoException, TruncatedWarning};
use crate::gil::attached;
use crate::kinds::StreamKind;
use crate::raised::Raised;
use crate::scope::Scope;
use crate::stream::Stream;

/// How many events of one capture a run takes at most.
const EVENTS: usize = 64;

/// How many bytes of batches.
const BYTES: usize = 8 << 20;

/// How long a file that does not grow is left alone, at least and at most.
const ASK_AGAIN: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(64));

/// One capture that is played.
struct Played {
    source: Source,
    frontier: Vec<Point>,
    promise: Promise,
    ended: bool,
}

enum Source {
    Memory { queue: EventQueue, at: usize },
    Feed(Arc<Shared>),
}

/// What a capture gives in a run.
enum Step {
    Progress(Vec<(Point, i64)>),
    Batches(Vec<(Point, Batch)>),
    /// Nothing; perhaps to be asked again.
    Wait(bool),
    End,
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Source::Feed(feed) = self {
            feed.close();
        }
    }
}

/// Plays captures into a scope: feeds, which were claimed for it, and queues in memory.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn replay(
    scope: &Scope,
    captures: Vec<Bound<'_, PyAny>>,
    kind: StreamKind,
) -> PyResult<Stream> {
    let refused = IntoException::into_exception;
    let engine = scope.scope.get()?;
    let dims = engine.dims();
    let builder = engine.operator("replay").map_err(refused)?;
    let (output, stream, capability) = builder.new_held_output().map_err(refused)?;
    builder.start();
    let activator = builder.activator();
    let mut played = Vec::with_capacity(captures.len());
    for capture in captures {
        let source = if let Ok(queue) = capture.cast::<EventQueue>() {
            let queue = queue.get().share();
            queue.watch(activator.remote());
            Source::Memory { queue, at: 0 }
        } else if let Ok(feed) = capture.cast::<EventFeed>() {
            feed.get().play(activator.remote());
            Source::Feed(Arc::clone(&feed.get().shared))
        } else {
            return Err(PyTypeError::new_err("a capture is a queue or a feed"));
        };
        played.push(Played {
            source,
            frontier: vec![Point::minimum(dims)],
            promise: Promise::new(dims),
            ended: false,
        });
    }
    let mut operator = Player {
        played,
        held: vec![capability],
        output,
        activator,
        patience: ASK_AGAIN.0,
    };
    builder.build(move || {
        operator.run()?;
        Ok(false)
    });
    Ok(Stream::plain(scope.scope.home(), kind.into(), stream))
}

struct Player {
    played: Vec<Played>,
    held: Vec<Capability>,
    output: OutputPort<Batch>,
    activator: Activator,
    /// How long to wait before files are asked again.
    patience: Duration,
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
                match self.played[index].step().map_err(Raised::here)? {
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
                    Step::End => {
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

    /// Holds what the frontiers allow, and nothing else.
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
        let moved: Vec<Capability> = times
            .iter()
            .map(|time| self.at(time))
            .collect::<Result<_, _>>()?;
        self.held = moved;
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
    fn step(&mut self) -> PyResult<Step> {
        match &mut self.source {
            Source::Memory { queue, at } => match queue.take(*at) {
                Taken::Event(Event::Progress(changes)) => {
                    *at += 1;
                    Ok(Step::Progress(changes))
                }
                Taken::Event(Event::Messages(time, batch)) => {
                    *at += 1;
                    Ok(Step::Batches(vec![(time, batch)]))
                }
                Taken::Nothing => Ok(Step::Wait(false)),
                Taken::End => {
                    if !self.promise.is_complete() {
                        warn("a capture in memory ends before its stream: its dataflow failed")?;
                    }
                    Ok(Step::End)
                }
            },
            Source::Feed(feed) => match feed.next()? {
                Next::Event(_, _, EncodedEvent::Progress(changes)) => Ok(Step::Progress(changes)),
                Next::Event(offset, contents, EncodedEvent::Messages(runs, bytes)) => {
                    let batches = feed.batches(offset, contents, runs, bytes)?;
                    Ok(Step::Batches(batches))
                }
                Next::Wait { ask } => Ok(Step::Wait(ask)),
                Next::End { complete: true } => Ok(Step::End),
                Next::End { complete: false } => {
                    let (name, offset) = (&feed.name, feed.offset());
                    warn(&format!(
                        "{name} ends at byte {offset}, before its stream did: what was whole up to there is replayed"
                    ))?;
                    Ok(Step::End)
                }
            },
        }
    }
}

fn warn(text: &str) -> PyResult<()> {
    attached(|py| {
        let category = py.get_type::<TruncatedWarning>();
        let text = std::ffi::CString::new(text.replace('\0', " ")).unwrap_or_default();
        PyErr::warn(py, &category, &text, 1)
    })
}
