//! The cut of a checkpoint: the contents of every operator at a moment at which nothing is in flight.
//!
//! Owns the data: [`Part`], the contents of one worker, and [`Share`], the contents with which one worker begins.
//! Both are plain data without a reference to a running dataflow.
//! [`Worker::set_cuts`](crate::worker::Worker::set_cuts) sets the receiver of the parts, and
//! [`Worker::restore`](crate::worker::Worker::restore) begins with a share.
//!
//! The state of an operator is [`State`]: pieces, which the engine does not read, and how they are divided among workers.
//!
//! A cut does not depend on the number of workers where state is by key: [`rescale`] is a pure function of the parts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pointstamp_order::Point;
use pointstamp_progress::{Port, drain};

use crate::observe::OperatorId;
use crate::payload::Payload;
pub use crate::piece::{Content, Piece};
use crate::run::pact::PactKind;

/// The state of an operator, apart from the times that it holds and the batches at its inputs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing.
    #[default]
    None,
    /// Pieces that stay with their worker. Such a cut needs as many workers as before.
    Workers(Vec<Piece>),
    /// Pieces with keys of the worker's [groups](pointstamp_order::groups_of). On another number of workers each gets all pieces, and takes the keys of its
    /// own groups.
    Groups(Vec<Piece>),
    /// Pieces that any workers can have.
    Parts(Vec<Piece>),
}

impl State {
    /// The pieces.
    pub fn pieces(&self) -> &[Piece] {
        match self {
            State::None => &[],
            State::Workers(pieces) | State::Groups(pieces) | State::Parts(pieces) => pieces,
        }
    }

    /// The pieces.
    pub fn into_pieces(self) -> Vec<Piece> {
        match self {
            State::None => Vec::new(),
            State::Workers(pieces) | State::Groups(pieces) | State::Parts(pieces) => pieces,
        }
    }

    /// The same division without pieces.
    fn emptied(&self) -> State {
        match self {
            State::None => State::None,
            State::Workers(_) => State::Workers(Vec::new()),
            State::Groups(_) => State::Groups(Vec::new()),
            State::Parts(_) => State::Parts(Vec::new()),
        }
    }
}

/// A batch at an input, which the operator has not taken.
#[derive(Debug, Clone)]
pub struct Queued<P> {
    /// The input.
    pub port: usize,
    /// The time of its records.
    pub time: Point,
    /// The records.
    pub batch: P,
    /// The way in which records reach the input.
    pub pact: PactKind,
    /// Whether it is to be routed again, because the number of workers is another.
    pub reroutes: bool,
}

/// Capabilities that an operator holds on one worker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// The output.
    pub port: usize,
    /// The time.
    pub time: Point,
    /// The number of capabilities.
    pub count: i64,
}

/// The description of an operator, by which a changed program is distinguished from the program of the
/// checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form {
    /// Its kind and types, from [`Host::describes`](crate::host::Host::describes); empty where there is no
    /// description. The digest of its functions may follow in a line of its own: see `Form::functions`.
    pub kind: String,
    /// For each input, the identity and the output of the operator that it reads.
    pub inputs: Vec<String>,
}

impl Form {
    /// The kind and the types.
    pub(crate) fn types(&self) -> &str {
        self.kind
            .split_once('\n')
            .map_or(&self.kind, |(types, _)| types)
    }

    /// Whether its kind or types are others than those of the form at the checkpoint.
    pub(crate) fn types_differ(&self, before: &Form) -> bool {
        let (before, now) = (before.types(), self.types());
        !before.is_empty() && !now.is_empty() && before != now
    }

    /// The maker of the digest of its functions, and the digest. Digests of different makers cannot be compared.
    pub(crate) fn functions(&self) -> Option<(&str, &str)> {
        self.kind.split_once('\n')?.1.split_once(' ')
    }

    /// Adds the digest of its functions, unless it has one.
    pub(crate) fn add_functions(&mut self, maker: &str, digest: &str) {
        if self.functions().is_none() {
            for text in ["\n", maker, " ", digest] {
                self.kind.push_str(text);
            }
        }
    }

    /// Whether its functions are others than those of the form at the checkpoint.
    pub(crate) fn functions_differ(&self, before: &Form) -> bool {
        match (before.functions(), self.functions()) {
            (Some((maker, before)), Some((same, now))) => maker == same && before != now,
            _ => false,
        }
    }
}

/// The differences between a program and its checkpoint that the program permits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Identities of operators with state that are new: they begin with none.
    pub new: BTreeSet<String>,
    /// Identities of operators whose state is dropped.
    pub dropped: BTreeSet<String>,
}

/// The identity of a whole dataflow, among those of its operators and scopes.
pub(crate) const WHOLE: &str = "/"; // names have no slash

/// The contents of an operator on one worker.
#[derive(Debug, Clone)]
pub struct OperatorPart<P: Payload> {
    /// The name that finds the operator again: the identity that its builder was given, or its address in the dataflow.
    pub identity: String,
    /// Its name.
    pub name: String,
    /// Its kind and inputs.
    pub form: Arc<Form>,
    /// Whether it has ended: only state that others read is left of it, and it does not run again. It may
    /// stand for a scope with everything inside, and without an identity for the dataflow.
    pub finished: bool,
    /// The times that it holds.
    pub held: Vec<Held>,
    /// By output, the greatest last coordinate of a time at which something was sent.
    pub latest: Vec<u64>,
    /// The batches that wait at its inputs, in order.
    pub queued: Vec<Queued<P>>,
    /// Its state; `None` where the operator does not declare it, and where it has ended and nobody reads its
    /// state.
    pub state: Option<State>,
    /// For an input of main: the number of records that were sent at the time that it holds, or held last.
    pub position: Option<u64>,
}

/// A dataflow on one worker.
#[derive(Debug, Clone)]
pub struct DataflowPart<P: Payload> {
    /// Its number.
    pub index: usize,
    /// Its operators, and the scopes in it that have ended.
    pub operators: Vec<OperatorPart<P>>,
}

/// The contents of one worker.
#[derive(Debug, Clone)]
pub struct Part<P: Payload> {
    /// The number of the attempt, which the parts of one cut have in common.
    pub attempt: u64,
    /// The worker.
    pub worker: usize,
    /// The number of workers.
    pub peers: usize,
    /// The number of dataflows that the worker has begun. Those that are not in `dataflows` have ended, were
    /// dropped, or were given up.
    pub begun: usize,
    /// The dataflows that have not ended, and the ended ones whose state others read.
    pub dataflows: Vec<DataflowPart<P>>,
}

/// The reason why a computation cannot resume from a part.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Objection {
    /// An operator does not declare its state.
    #[error("operator '{name}' ({identity}) does not say what its state is")]
    Unsaid {
        /// The operator's name.
        name: String,
        /// The operator's identity.
        identity: String,
    },
    /// Two operators of a dataflow have one identity: only one of them would be found again.
    #[error("two operators have the identity {identity}: '{name}' is one of them")]
    Twice {
        /// The name of the second.
        name: String,
        /// The identity that two operators have.
        identity: String,
    },
    /// An operator says that it keeps nothing, and holds a time: with the time goes something that it has yet to send.
    #[error("operator '{name}' ({identity}) says that it has no state, and holds the time {time}")]
    HoldsTime {
        /// The operator's name.
        name: String,
        /// The operator's identity.
        identity: String,
        /// A time that it holds.
        time: Point,
    },
}

impl<P: Payload> OperatorPart<P> {
    /// An operator that has nothing.
    pub(crate) fn empty(identity: String, name: String) -> Self {
        OperatorPart {
            identity,
            name,
            form: Arc::default(),
            finished: false,
            held: Vec::new(),
            latest: Vec::new(),
            queued: Vec::new(),
            state: Some(State::None),
            position: None,
        }
    }

    /// Whether it is an input of which the first worker sends all records, and the others follow its time.
    fn leads(&self) -> bool {
        self.position.is_some() && matches!(self.state, Some(State::Workers(_)))
    }

    /// Whether nothing is lost where the operator is not built again.
    pub(crate) fn is_empty(&self) -> bool {
        let pieces = self.state.as_ref().map_or(&[][..], State::pieces);
        self.finished
            || pieces.is_empty()
                && self.held.is_empty()
                && self.queued.is_empty()
                && self.position.is_none()
    }
}

impl<P: Payload> Part<P> {
    /// The objections to the checkpoint: the operators whose state would be lost.
    pub fn objections(&self) -> Vec<Objection> {
        let mut known = BTreeSet::new();
        let operators = self.dataflows.iter().flat_map(|dataflow| {
            let operators = dataflow.operators.iter();
            operators.map(|operator| (dataflow.index, operator))
        });
        let objections = operators.filter_map(|(dataflow, operator)| {
            let (name, identity) = (operator.name.clone(), operator.identity.clone());
            match &operator.state {
                _ if !known.insert((dataflow, &operator.identity)) => {
                    Some(Objection::Twice { name, identity })
                }
                _ if operator.finished => None,
                None => Some(Objection::Unsaid { name, identity }),
                Some(State::None) if operator.position.is_none() => {
                    let time = operator.held.first()?.time.clone();
                    Some(Objection::HoldsTime {
                        name,
                        identity,
                        time,
                    })
                }
                Some(_) => None,
            }
        });
        objections.collect()
    }
}

/// The numbers of capabilities and records at each port and time, on all workers together.
pub type Outstanding = Vec<(Port, Point, i64)>;

/// The number of capabilities or records by port and time.
type Counts = BTreeMap<(Port, Point), i64>;

/// The capabilities and records at a cut, on all workers together, by dataflow and operator. Progress begins
/// from this on every worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    dataflows: BTreeMap<usize, BTreeMap<String, Counts>>,
}

impl Totals {
    /// Adds the count of an operator of a dataflow at a port.
    pub fn add(&mut self, dataflow: usize, identity: &str, port: Port, time: &Point, count: i64) {
        let operators = self.dataflows.entry(dataflow).or_default();
        let operator = operators.entry(identity.to_owned()).or_default();
        *operator.entry((port, time.clone())).or_default() += count;
    }

    /// Returns the sum of the parts of all workers.
    pub fn of<'a, P: Payload>(parts: impl IntoIterator<Item = &'a Part<P>>) -> Totals {
        let mut totals = Totals::default();
        for part in parts {
            for dataflow in &part.dataflows {
                for operator in &dataflow.operators {
                    let (index, identity) = (dataflow.index, &operator.identity);
                    for held in &operator.held {
                        let port = Port::Source(held.port);
                        totals.add(index, identity, port, &held.time, held.count);
                    }
                    for queued in &operator.queued {
                        let (port, count) = (Port::Target(queued.port), queued.batch.len() as i64);
                        totals.add(index, identity, port, &queued.time, count);
                    }
                }
            }
        }
        totals
    }

    pub(crate) fn outstanding(&self, dataflow: usize, identity: &str) -> Outstanding {
        let dataflow = self.dataflows.get(&dataflow);
        let found = dataflow.and_then(|operators| operators.get(identity));
        let found = found.into_iter().flatten();
        found
            .map(|((port, time), count)| (*port, time.clone(), *count))
            .collect()
    }
}

/// The contents with which one worker begins.
#[derive(Debug, Clone)]
pub struct Share<P: Payload> {
    /// The worker's own part.
    pub part: Part<P>,
    /// The counts of all workers.
    pub totals: Arc<Totals>,
}

impl<P: Payload> Share<P> {
    /// The shares of the workers that have these parts, in order.
    pub fn of(parts: Vec<Part<P>>) -> Vec<Share<P>> {
        let totals = Arc::new(Totals::of(&parts));
        let share = |part| Share {
            part,
            totals: Arc::clone(&totals),
        };
        parts.into_iter().map(share).collect()
    }
}

/// Why a cut cannot be divided between another number of workers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RescaleError {
    /// The parts do not belong to all workers of one cut.
    #[error("the parts are not those of all workers of one checkpoint")]
    Parts,
    /// An operator has one value for each worker, or does not say.
    #[error(
        "operator '{name}' ({identity}) keeps state that is not divided by key: resume with {peers} workers, as before"
    )]
    NotKeyed {
        /// The operator's name.
        name: String,
        /// The operator's identity.
        identity: String,
        /// The number of workers at the cut.
        peers: usize,
    },
    /// The workers' instances of an operator were not alike at the checkpoint.
    #[error("operator '{name}' ({identity}) {unlike}: resume with {peers} workers, as before")]
    Unlike {
        /// The operator's name.
        name: String,
        /// The operator's identity.
        identity: String,
        /// The number of workers at the cut.
        peers: usize,
        /// The difference.
        unlike: Unlike,
    },
    /// Batches wait at an input whose records cannot be routed again.
    #[error(
        "batches wait at input {port} of operator '{name}' ({identity}), and cannot be divided between other workers: resume with {peers} workers, as before"
    )]
    Queued {
        /// The operator's name.
        name: String,
        /// The operator's identity.
        identity: String,
        /// The input.
        port: usize,
        /// The number of workers at the cut.
        peers: usize,
    },
}

/// Differences between the workers' instances of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unlike {
    /// Some workers have none.
    #[error("was there on {on} workers only")]
    Missing {
        /// The number of workers that have one.
        on: usize,
    },
    /// Some had ended.
    #[error("had ended on one worker, and not on another")]
    Ended,
    /// An input of main was closed on some.
    #[error("was closed on one worker, and not on another")]
    Closed,
    /// They held different times.
    #[error("held other times on one worker than on another")]
    Times,
    /// An input of main had sent a part of a time.
    #[error(
        "had been sent records at the time at which it stood, and main sends the rest of them on the same workers"
    )]
    Sent,
}

/// Divides a cut among another number of workers. Each gets all pieces of state by key group, and some of the
/// pieces that any worker can have. Batches of exchanges are routed again. Times go to every worker, which
/// drops those that it does not need.
///
/// # Errors
///
/// [`RescaleError`], naming the operator that needs as many workers as before.
///
/// # Panics
///
/// When `peers` is zero.
pub fn rescale<P: Payload>(
    mut parts: Vec<Part<P>>,
    peers: usize,
) -> Result<Vec<Part<P>>, RescaleError> {
    parts.sort_by_key(|part| part.worker);
    let before = parts.len();
    let first = parts.first().ok_or(RescaleError::Parts)?;
    let (attempt, begun) = (first.attempt, first.begun);
    let numbered = parts.iter().enumerate();
    let mut alike = numbered.map(|(worker, part)| {
        let all = (part.attempt, part.worker, part.peers, part.begun);
        all == (attempt, worker, before, begun)
    });
    if !alike.all(|alike| alike) {
        return Err(RescaleError::Parts);
    }
    if before == peers {
        return Ok(parts);
    }
    let empty = |worker| Part {
        attempt,
        worker,
        peers,
        begun,
        dataflows: Vec::new(),
    };
    let mut shared: Vec<_> = (0..peers).map(empty).collect();
    // By dataflow and identity: the contents of each worker, in order of the workers.
    let mut operators = BTreeMap::<(usize, String), Vec<OperatorPart<P>>>::new();
    for dataflow in parts.into_iter().flat_map(|part| part.dataflows) {
        for operator in dataflow.operators {
            let at = (dataflow.index, operator.identity.clone());
            operators.entry(at).or_default().push(operator);
        }
    }
    for ((index, _), instances) in operators {
        for (part, operator) in shared.iter_mut().zip(divide(instances, before, peers)?) {
            match part.dataflows.last_mut() {
                Some(dataflow) if dataflow.index == index => dataflow.operators.push(operator),
                _ => part.dataflows.push(DataflowPart {
                    index,
                    operators: vec![operator],
                }),
            }
        }
    }
    Ok(shared)
}

/// Divides the instances of one operator.
fn divide<P: Payload>(
    instances: Vec<OperatorPart<P>>,
    before: usize,
    peers: usize,
) -> Result<Vec<OperatorPart<P>>, RescaleError> {
    let first = instances.first().ok_or(RescaleError::Parts)?;
    if first.leads() && instances.len() == before {
        return Ok(following(first, peers));
    }
    let (name, identity) = (first.name.clone(), first.identity.clone());
    let named = || (name.clone(), identity.clone(), before);
    let state = instances.iter().find_map(|one| one.state.as_ref());
    let by_group = matches!(state, Some(State::Groups(_)));
    let divisible = matches!(state, Some(State::Groups(_) | State::Parts(_)));
    if let Some(unlike) = unlike(&instances, first, before, divisible) {
        let (name, identity, peers) = named();
        return Err(RescaleError::Unlike {
            name,
            identity,
            peers,
            unlike,
        });
    }
    let position = first.position.map(|_| 0);
    let (held, latest) = (common_times(&instances), latest_of(&instances));
    let finished = first.finished;
    let emptied = state.map(State::emptied);
    let mut divided: Vec<_> = (0..peers)
        .map(|_| OperatorPart {
            identity: identity.clone(),
            name: name.clone(),
            form: Arc::clone(&first.form),
            finished,
            held: held.clone(),
            latest: latest.clone(),
            queued: Vec::new(),
            state: emptied.clone(),
            position,
        })
        .collect();
    for (worker, one) in instances.into_iter().enumerate() {
        match one.state {
            Some(State::Groups(pieces)) if by_group => {
                for part in &mut divided {
                    if let Some(State::Groups(theirs)) = &mut part.state {
                        theirs.extend_from_slice(&pieces);
                    }
                }
            }
            Some(State::Parts(pieces)) if divisible && !by_group => {
                if let Some(State::Parts(theirs)) = &mut divided[worker % peers].state {
                    theirs.extend(pieces);
                }
            }
            Some(State::None) if !divisible => {}
            None if one.finished => {}
            _ => {
                let (name, identity, peers) = named();
                return Err(RescaleError::NotKeyed {
                    name,
                    identity,
                    peers,
                });
            }
        }
        for queued in one.queued {
            let free = match queued.pact {
                PactKind::Exchange => true,
                PactKind::Pipeline => !by_group,
                PactKind::Broadcast => false,
            };
            if !free {
                let (name, identity, peers) = named();
                return Err(RescaleError::Queued {
                    name,
                    identity,
                    port: queued.port,
                    peers,
                });
            }
            let reroutes = true;
            divided[worker % peers]
                .queued
                .push(Queued { reroutes, ..queued });
        }
    }
    Ok(divided)
}

/// The difference between the instances of an operator that prevents another number of workers.
fn unlike<P: Payload>(
    instances: &[OperatorPart<P>],
    first: &OperatorPart<P>,
    before: usize,
    divisible: bool,
) -> Option<Unlike> {
    let on = instances.len();
    let differs = |what: fn(&OperatorPart<P>, &OperatorPart<P>) -> bool| {
        instances.iter().any(|one| what(one, first))
    };
    if on != before {
        Some(Unlike::Missing { on })
    } else if differs(|one, first| one.finished != first.finished) {
        Some(Unlike::Ended)
    } else if first.finished {
        None
    } else if differs(|one, first| one.position.is_some() != first.position.is_some()) {
        Some(Unlike::Closed)
    } else if differs(|one, first| one.held != first.held)
        && !(divisible && first.position.is_none())
    {
        Some(Unlike::Times)
    } else if instances.iter().any(|one| one.position > Some(0)) {
        Some(Unlike::Sent)
    } else {
        None
    }
}

/// The instances of an input that all have the time of the first, which has sent all records.
fn following<P: Payload>(first: &OperatorPart<P>, peers: usize) -> Vec<OperatorPart<P>> {
    let rest = OperatorPart {
        state: first.state.as_ref().map(State::emptied),
        position: Some(0),
        ..first.clone()
    };
    let others = std::iter::repeat_n(rest, peers.saturating_sub(1));
    std::iter::once(first.clone()).chain(others).collect()
}

/// Each time that any of the instances of an operator holds, once.
fn common_times<P: Payload>(instances: &[OperatorPart<P>]) -> Vec<Held> {
    let held = instances.iter().flat_map(|one| &one.held);
    let times: BTreeSet<_> = held.map(|held| (held.port, &held.time)).collect();
    let times = times.into_iter().map(|(port, time)| Held {
        port,
        time: time.clone(),
        count: 1,
    });
    times.collect()
}

/// For each output, the greatest last coordinate of the times at which the instances of an operator have
/// sent.
fn latest_of<P: Payload>(instances: &[OperatorPart<P>]) -> Vec<u64> {
    let outputs = instances.iter().map(|one| one.latest.len()).max();
    let latest = |port: usize| {
        let latest = instances.iter().filter_map(|one| one.latest.get(port));
        latest.copied().max().unwrap_or(0)
    };
    (0..outputs.unwrap_or(0)).map(latest).collect()
}

/// The limits of an attempt.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For all workers to say that they are ready, and again for all to hold their sources. It doubles while they do not, up to a fifth of `drain`.
    pub ready: std::time::Duration,
    /// For the inputs of main to come to a common time before the attempt, so that another number of workers can resume. Zero: they are not stopped.
    pub common: std::time::Duration,
    /// For the computation to drain, from then on.
    pub drain: std::time::Duration,
    /// The maximum number of counting rounds.
    pub rounds: u32,
}

impl Default for Limits {
    /// 100 ms, no search for a common time, 10 s, and any number of rounds.
    fn default() -> Self {
        Limits {
            ready: std::time::Duration::from_millis(100),
            common: std::time::Duration::ZERO,
            drain: std::time::Duration::from_secs(10),
            rounds: u32::MAX,
        }
    }
}

/// The reason why an attempt failed, as far as one worker knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    /// The number of the attempt.
    pub attempt: u64,
    /// On the worker that leads: the workers that had not answered.
    pub missing: Vec<usize>,
    /// On the worker that leads: whether workers had built, or dropped, different dataflows.
    pub unlike: bool,
    /// Whether sources were held: then something was still in flight.
    pub held: bool,
    /// The operators of this worker that still had work, or have run since the last two counts; none where sources were not held yet.
    pub busy: Vec<(OperatorId, String)>,
}

/// The receiver of cuts, called on a worker's thread inside a step: an implementation must not step the
/// worker.
pub trait Cuts<P: Payload> {
    /// Takes the worker's part of a cut, at which nothing is in flight. The worker runs nothing until this
    /// returns.
    ///
    /// # Errors
    ///
    /// Whatever is to end the computation.
    fn taken(&self, part: Part<P>) -> crate::error::UserResult<()>;

    /// Another worker says something, as by [`Cluster::say_to`](crate::cluster::Cluster::say_to).
    ///
    /// # Errors
    ///
    /// Whatever is to end the computation.
    fn receive(&self, from: usize, what: Vec<u8>) -> crate::error::UserResult<()> {
        let _ = (from, what);
        Ok(())
    }

    /// On the worker that leads: every worker has taken its part of an attempt.
    fn complete(&self, attempt: u64) {
        let _ = attempt;
    }

    /// An attempt came to nothing, and sources resume.
    fn given_up(&self, given_up: GivenUp) {
        let _ = given_up;
    }
}

/// The description that all workers must share to take part.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Standing {
    /// The number of dataflows that were begun.
    pub(crate) begun: usize,
    /// The dataflows that were dropped.
    pub(crate) dropped: Vec<usize>,
}

/// By input of `main`, the coordinates of its time; `None` where it is closed.
pub(crate) type Stands = Vec<Option<Vec<u64>>>;

/// A word between workers for a cut.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(crate) enum CutMessage {
    /// To the leader: an attempt is wanted.
    Wanted,
    /// An order of the leader.
    Order(u64, drain::Order),
    /// To the leader.
    Answer(u64, drain::Answer<Standing>),
    /// A message of the program around the engine.
    Said(Vec<u8>),
    /// The leader's order that `main` stops where its inputs are at these times or later, and nothing was sent at their times;
    /// with the number of the round.
    StopAt(u64, Stands),
    /// To the leader: `main` has stopped, where its inputs are at these times.
    StoppedAt(u64, Stands),
}
