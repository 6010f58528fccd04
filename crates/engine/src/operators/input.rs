//! An input that `main` drives.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use pointstamp_order::Point;

use crate::build::operator::{Lends, Restored};
use crate::build::scope::Scope;
use crate::build::stream::Stream;
use crate::cut::State as Kept;
use crate::error::{BuildError, Error, UserResult, check_advance, check_dims};
use crate::payload::Payload;
use crate::run::arrival::Close;
use crate::run::capability::Capability;
use crate::run::port::{OutputPort, SendError};
use crate::worker::Worker;

/// The records that `main` has sent to an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The number of records at the input's time.
    pub sent: u64,
    /// A digest of records. The digests of all workers add up to that of all records.
    pub digest: u64,
    /// Whether the digest is that of this worker's records. Otherwise, another number of workers has sent them, and
    /// only the sum counts.
    pub is_own: bool,
    /// Whether the input was closed.
    pub is_closed: bool,
}

impl Default for Standing {
    /// Nothing was sent.
    fn default() -> Self {
        Standing {
            sent: 0,
            digest: 0,
            is_own: true,
            is_closed: false,
        }
    }
}

impl Standing {
    fn to_bytes(self, peers: usize) -> Vec<u8> {
        let words = [peers as u64, u64::from(self.is_own), self.digest];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The standing at a checkpoint: this worker's, or its share of that of another number of workers. With the time, where the
    /// operator had ended: the latest of all workers, where their number is another.
    fn restored(restored: &Restored, peers: usize) -> (Self, Option<Point>) {
        let pieces = restored.state.pieces();
        let mut standing = Standing {
            sent: restored.position.unwrap_or(0),
            digest: 0,
            is_own: pieces.len() == 1,
            is_closed: !pieces.is_empty(),
        };
        let mut time = None::<Point>;
        for piece in pieces {
            let bytes = piece.to_bytes().unwrap_or_default();
            let words = bytes
                .chunks_exact(8)
                .filter_map(|word| word.try_into().ok());
            let words: Vec<_> = words.map(u64::from_le_bytes).collect();
            let [before, own, digest, ended @ ..] = &words[..] else {
                continue;
            };
            standing.digest = standing.digest.wrapping_add(*digest);
            standing.is_own &= *before == peers as u64 && *own == 1;
            if let [closed, coords @ ..] = ended {
                standing.is_closed &= *closed == 1;
                let here = Point::new(coords);
                time = time.map_or(Some(here.clone()), |time| time.join(&here));
            } else {
                standing.is_closed = false;
            }
        }
        (standing, time)
    }
}

/// The standing of an input whose operator has ended.
struct LentStanding {
    reported: Rc<Cell<Standing>>,
    place: Rc<RefCell<Place>>,
    peers: usize,
    /// Whether the first worker sends all records.
    leads: bool,
}

impl Lends for LentStanding {
    fn is_read(&self) -> bool {
        true // by the next execution
    }

    /// Every worker of another number is given the state of all, for the time.
    fn take(&mut self) -> UserResult<Kept> {
        let mut bytes = self.reported.get().to_bytes(self.peers);
        let place = self.place.borrow();
        bytes.extend(u64::from(place.is_closed).to_le_bytes());
        let coords = place.time.as_ref().map_or(&[][..], Point::coords);
        bytes.extend(coords.iter().flat_map(|coord| coord.to_le_bytes()));
        let state = vec![bytes.into()];
        Ok(if self.leads {
            Kept::Workers(state)
        } else {
            Kept::Groups(state)
        })
    }

    fn position(&self) -> Option<u64> {
        Some(self.reported.get().sent)
    }
}

/// Introduces batches at its current time, into any number of dataflows. Clones are the same input.
///
/// Until it moves past a time, or is closed, that time stays open everywhere downstream, on every worker.
pub struct Input<P: Payload>(Rc<RefCell<State<P>>>);

/// The time of an input, which outlives it.
#[derive(Default)]
struct Place {
    time: Option<Point>,
    /// Whether the input was closed.
    is_closed: bool,
}

struct State<P: Payload> {
    place: Rc<RefCell<Place>>,
    /// The number of records that were sent at the input's time.
    records: u64,
    /// The position at which the input resumes from a checkpoint: the time, and the number of records that
    /// were sent at it.
    resumed: Option<(Point, Standing)>,
    /// The standing for checkpoints, where the program counts records itself; whether the first worker sends all.
    reported: Option<(Rc<Cell<Standing>>, bool)>,
    outlets: Vec<(OutputPort<P>, Capability)>,
    /// A dataflow that it was to feed has been given up while it was built.
    unbuilt: bool,
    /// A dataflow that it fed has ended.
    served: bool,
    /// From the first outlet on.
    worker: Option<Worker<P>>,
}

impl<P: Payload> State<P> {
    fn time(&self) -> Option<Point> {
        self.place.borrow().time.clone()
    }

    fn is_closed(&self) -> bool {
        self.place.borrow().is_closed
    }

    /// Releases the dataflows that have ended.
    fn forget_gone(&mut self) {
        let gone = |output: &OutputPort<P>| output.is_gone() || output.tee.is_unbuilt();
        if self.outlets.iter().any(|(output, _)| gone(output)) {
            for (output, _) in self.outlets.iter().filter(|(output, _)| gone(output)) {
                let given_up = output.tee.is_unbuilt();
                self.unbuilt |= given_up;
                self.served |= !given_up;
            }
            self.outlets.retain(|(output, _)| !gone(output));
        }
    }

    /// Whether it feeds nothing, because its dataflow was never built.
    fn is_unbuilt(&mut self) -> bool {
        self.forget_gone();
        self.unbuilt && !self.served && self.outlets.is_empty() && !self.is_closed()
    }

    fn check_idle(&self) -> Result<(), Error> {
        let mut outlets = self.outlets.iter();
        outlets.try_for_each(|(output, _)| output.check_idle())
    }
}

impl<P: Payload> Clone for Input<P> {
    fn clone(&self) -> Self {
        Input(Rc::clone(&self.0))
    }
}

impl<P: Payload> Default for Input<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Payload> Input<P> {
    /// An input that is connected to nothing yet.
    pub fn new() -> Self {
        Input(Rc::new(RefCell::new(State {
            place: Rc::default(),
            records: 0,
            resumed: None,
            reported: None,
            outlets: Vec::new(),
            unbuilt: false,
            served: false,
            worker: None,
        })))
    }

    /// Declares that the program counts and digests the records itself. To be called before the input is
    /// connected.
    ///
    /// # Arguments
    ///
    /// `leads` says that the first worker sends all records, and the others follow its time: then any number of workers can
    /// resume at any time.
    pub fn report_to(&self, reported: Rc<Cell<Standing>>, leads: bool) {
        self.0.borrow_mut().reported = Some((reported, leads));
    }

    /// Connects the input to a scope, from its current time on.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], or a time error when the scope has another number of coordinates than the first.
    pub fn attach(&self, scope: &Scope<P>) -> Result<Stream<P>, Error> {
        if self.is_closed() {
            return Err(Error::Closed);
        }
        if let Some(time) = self.time() {
            check_dims(&time, scope.dims())?;
        }
        let worker = self.worker();
        if let Some(worker) = worker.filter(|worker| !worker.is(scope.worker())) {
            let worker = worker.index();
            return Err(BuildError::OtherWorker { worker }.into());
        }
        let builder = scope.operator("input")?;
        let (output, stream, mut capability) = builder.new_held_output()?;
        let own = Rc::downgrade(&self.0);
        let peers = scope.worker().peers();
        let reported = self.0.borrow().reported.clone();
        if let Some((reported, leads)) = reported {
            let position = Rc::clone(&reported);
            builder.set_position(move || position.get().sent);
            builder.lends(LentStanding {
                reported: Rc::clone(&reported),
                place: Rc::clone(&self.0.borrow().place),
                peers,
                leads,
            });
            builder.keeps(move || {
                let state = vec![reported.get().to_bytes(peers).into()];
                Ok(if leads {
                    Kept::Workers(state)
                } else {
                    Kept::Parts(state)
                })
            });
        } else {
            builder.stateless();
            builder.set_position(move || own.upgrade().map_or(0, |own| own.borrow().records));
        }
        let mut state = self.0.borrow_mut();
        if let Some(restored) = builder.restored().filter(|it| it.position.is_some()) {
            let (standing, ended) = Standing::restored(&restored, peers);
            if ended.is_none() {
                state.records = standing.sent;
            }
            let time = ended.unwrap_or_else(|| capability.time().clone());
            state.resumed = Some((time, standing));
        }
        match &mut state.place.borrow_mut().time {
            Some(time) => capability.downgrade(time)?,
            time @ None => *time = Some(capability.time().clone()),
        }
        if state.outlets.is_empty() {
            let state = Rc::clone(&self.0) as Rc<dyn Close>;
            scope.worker().open_inputs().add(Rc::downgrade(&state));
        }
        state.worker = Some(scope.worker().clone());
        if capability.is_revoked() {
            state.served = true; // it was closed at the checkpoint: sent batches are dropped
        } else {
            state.outlets.push((output, capability));
        }
        Ok(stream)
    }

    /// The time of the batches sent now; `None` before the input is connected.
    pub fn time(&self) -> Option<Point> {
        self.0.borrow().time()
    }

    /// The position at which the input resumes from a checkpoint: the time, and the records that were sent at
    /// it. Records that `main` sent before are in the checkpoint, and must not be sent again.
    pub fn resumed(&self) -> Option<(Point, Standing)> {
        self.0.borrow().resumed.clone()
    }

    /// Whether it was closed at the checkpoint that the computation resumes from: records sent to it are dropped.
    pub fn had_ended(&self) -> bool {
        let state = self.0.borrow();
        state.served && state.outlets.is_empty()
    }

    /// Whether nothing can be sent any more.
    pub fn is_closed(&self) -> bool {
        self.0.borrow().is_closed()
    }

    /// Checks that the only dataflow that the input feeds was not given up during construction: records would
    /// be lost.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] where it was.
    pub fn check_built(&self) -> Result<(), Error> {
        if self.0.borrow_mut().is_unbuilt() {
            return Err(BuildError::Unbuilt.into());
        }
        Ok(())
    }

    /// Checks that something may be sent now: that the input is open, and that nothing of it is being routed.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], or [`Error::Build`] inside a function that routes this input.
    pub fn check(&self) -> Result<(), Error> {
        let state = self.0.borrow();
        if state.is_closed() {
            return Err(Error::Closed);
        }
        state.check_idle()
    }

    /// The worker, once the input is connected.
    pub fn worker(&self) -> Option<Worker<P>> {
        self.0.borrow().worker.clone()
    }

    /// Sends a batch at the current time. While too much is on its way, here or in another process, this steps the
    /// worker ([`Worker::make_room`]); inside an operator it does not.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], errors of a routing function, or those of [`Worker::step`].
    pub fn send(&self, data: P) -> Result<(), SendError> {
        self.send_now(data)?;
        if let Some(worker) = self.worker() {
            worker.make_room(None)?;
        }
        Ok(())
    }

    /// Sends a batch at the current time, regardless of the bytes in flight: for callers that call
    /// [`Worker::make_room`] themselves.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], or errors of a routing function.
    pub fn send_now(&self, data: P) -> Result<(), SendError> {
        let (time, last, others) = {
            let mut state = self.0.borrow_mut();
            state.forget_gone();
            let time = match (state.time(), state.is_closed()) {
                (_, true) => return Err(Error::Closed.into()),
                (Some(time), _) => time,
                (None, _) => return Err(Error::from(BuildError::Unconnected).into()),
            };
            if let Some(worker) = &state.worker {
                worker.sends(&data)?;
            }
            if state.outlets.is_empty() {
                return Ok(()); // its dataflows have ended
            }
            state.check_idle()?;
            state.records += data.len() as u64;
            let Some(((last, _), others)) = state.outlets.split_last() else {
                return Ok(());
            };
            // All at once, before a routing function runs: it may move the input on, or close it.
            for (output, _) in &state.outlets {
                output.count(&time, data.len());
            }
            let others: Vec<_> = others.iter().map(|(output, _)| output.clone()).collect();
            (time, last.clone(), others)
        };
        for output in others {
            output.push(&time, data.clone()).map_err(SendError::Route)?;
        }
        last.push(&time, data).map_err(SendError::Route)
    }

    /// Moves to a later time: nothing will be sent before it any more.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`], or a time error when `time` is not at or after the current one.
    pub fn advance_to(&self, time: &Point) -> Result<(), Error> {
        let mut state = self.0.borrow_mut();
        if state.is_closed() {
            return Err(Error::Closed);
        }
        let Some(now) = state.time() else {
            state.place.borrow_mut().time = Some(time.clone());
            return Ok(());
        };
        check_advance(&now, time)?;
        if *time != now {
            state.records = 0;
            if let Some(worker) = &state.worker {
                worker.moves();
            }
        }
        state.forget_gone();
        for (_, capability) in &mut state.outlets {
            capability.downgrade(time)?;
        }
        state.place.borrow_mut().time = Some(time.clone());
        Ok(())
    }

    /// Closes the input: nothing will be sent any more.
    pub fn close(&self) {
        self.0.close();
    }
}

impl<P: Payload> Close for RefCell<State<P>> {
    fn close(&self) {
        let mut state = self.borrow_mut();
        state.place.borrow_mut().is_closed = true;
        let outlets = std::mem::take(&mut state.outlets);
        let worker = state.worker.take();
        drop(state);
        drop((outlets, worker));
    }

    fn stands(&self) -> Option<(Point, bool)> {
        let state = self.try_borrow().ok()?;
        let (sent, leads) = match &state.reported {
            Some((reported, leads)) => (reported.get().sent, *leads),
            None => (state.records, false),
        };
        let time = state.time().filter(|_| !state.is_closed() && !leads)?;
        Some((time, sent == 0))
    }
}
