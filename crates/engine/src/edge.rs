//! Where an output's batches go.
//!
//! A [`Tee`] holds the edges of one output. An [`Edge`] ends in an operator's input on this worker or on all of
//! them, or crosses the boundary of a scope: inwards (the timestamp gains coordinates, and the records are
//! counted as input of the scope) or outwards (it loses them). Progress counts records, not batches, so an
//! edge is free to split a batch; a broadcast edge delivers each record once per worker, and the scope that
//! owns the edge counts it so.
//!
//! What is sent while the dataflow is being built waits for its installation: the records are counted for every reader that
//! there will be, and so must reach every one.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use pointstamp_channels::Sender;
use pointstamp_channels::encode::CodecError;
use pointstamp_order::Point;

use crate::activation::Activation;
use crate::error::{BoxError, Error, UserResult};
use crate::failing::Failing;
use crate::observe::{EdgeId, Observation, OperatorId, Room};
use crate::pact::Route;
use crate::payload::{Message, Payload};
use crate::progress::{PortChanges, SharedProgress};

/// What the parts of one operator share: its ports, its queues, its capabilities.
pub(crate) struct Site {
    pub(crate) id: OperatorId,
    pub(crate) activation: Activation,
    pub(crate) progress: Rc<SharedProgress>,
    pub(crate) failing: Rc<Failing>,
    pub(crate) room: Rc<Room>,
    /// Moves whenever the capability of the last message taken ends.
    pub(crate) generation: Cell<u64>,
    /// Messages in the operator's local queues.
    pub(crate) backlog: Cell<usize>,
    /// Inputs that have messages, for operators with many of them that ask to be told.
    pub(crate) ready: RefCell<Option<VecDeque<usize>>>,
}

impl Site {
    pub(crate) fn new(
        id: OperatorId,
        activation: Activation,
        failing: Rc<Failing>,
        room: Rc<Room>,
    ) -> Rc<Self> {
        Rc::new(Site {
            id,
            activation,
            progress: SharedProgress::new(),
            failing,
            room,
            generation: Cell::new(0),
            backlog: Cell::new(0),
            ready: RefCell::new(None),
        })
    }

    /// Ends the validity of the last message's capability.
    pub(crate) fn expire(&self) {
        self.generation.set(self.generation.get() + 1);
    }
}

/// Messages for one input that were sent by this worker.
pub(crate) struct LocalQueue<P> {
    messages: RefCell<VecDeque<Message<P>>>,
    port: usize,
    /// Whether `port` stands in the site's list of ready inputs.
    pub(crate) listed: Cell<bool>,
    pub(crate) site: Rc<Site>,
}

impl<P> LocalQueue<P> {
    pub(crate) fn new(port: usize, site: Rc<Site>) -> Rc<Self> {
        Rc::new(LocalQueue {
            messages: RefCell::default(),
            port,
            listed: Cell::new(false),
            site,
        })
    }

    fn push(&self, message: Message<P>) {
        self.messages.borrow_mut().push_back(message);
        self.site.backlog.set(self.site.backlog.get() + 1);
        self.announce();
    }

    pub(crate) fn pop(&self) -> Option<Message<P>> {
        let message = self.messages.borrow_mut().pop_front()?;
        self.site.backlog.set(self.site.backlog.get() - 1);
        Some(message)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.borrow().is_empty()
    }

    /// Lists the input as one with messages, and wakes the operator.
    pub(crate) fn announce(&self) {
        if !self.listed.get()
            && let Some(ready) = &mut *self.site.ready.borrow_mut()
        {
            ready.push_back(self.port);
            self.listed.set(true);
        }
        self.site.activation.run();
    }
}

/// The way from an output to one reader.
pub(crate) enum Edge<P> {
    /// To an input on this worker.
    Local(Rc<LocalQueue<P>>),
    /// To an input on the worker that the router chooses for each record.
    Exchange(Exchange<P>),
    /// To an input on every worker.
    Broadcast {
        local: Rc<LocalQueue<P>>,
        remote: Vec<Sender<Message<P>>>,
        reader: Rc<str>,
        peers: usize,
    },
    /// Into a scope.
    Enter {
        port: usize,
        dims: usize,
        counts: Rc<RefCell<PortChanges>>,
        scope: Activation,
        inside: Tee<P>,
    },
    /// Out of a scope.
    Leave { dims: usize, outside: Tee<P> },
}

/// An exchange edge: `remote[i]` is `None` for this worker.
pub(crate) struct Exchange<P> {
    pub(crate) router: Box<dyn Route<P>>,
    pub(crate) local: Rc<LocalQueue<P>>,
    pub(crate) remote: Vec<Option<Sender<Message<P>>>>,
    pub(crate) parts: Vec<Vec<P>>, // reused between batches
    /// The operator that reads, for messages.
    pub(crate) reader: Rc<str>,
}

/// What an edge says of itself to those who observe.
pub(crate) struct Label {
    pub(crate) id: EdgeId,
    /// The worker that sends.
    pub(crate) here: usize,
    pub(crate) room: Rc<Room>,
}

impl Label {
    #[inline]
    fn sent<P: Payload>(&self, time: &Point, data: &P, worker: usize) {
        self.room.tell(|| Observation::MessageSent {
            edge: self.id,
            time,
            records: data.len(),
            worker,
        });
    }
}

/// Why a batch cannot be sent to another process, as the error of the operator that would read it.
fn unsendable(reader: &str, cause: CodecError) -> BoxError {
    let operator = reader.to_owned();
    Error::Encode { operator, cause }.into()
}

impl<P: Payload> Exchange<P> {
    fn push(&mut self, label: &Label, message: Message<P>) -> UserResult<()> {
        let Message { time, data } = message;
        let routed = self.router.route(data, &mut self.parts);
        routed.map_err(|cause| {
            let operator = self.reader.to_string();
            Error::Route { operator, cause }
        })?;
        for (worker, (part, remote)) in self.parts.iter_mut().zip(&self.remote).enumerate() {
            for data in part.drain(..).filter(|data| !data.is_empty()) {
                let worker = if remote.is_some() { worker } else { label.here };
                label.sent(&time, &data, worker);
                let message = Message {
                    time: time.clone(),
                    data,
                };
                match remote {
                    Some(sender) => sender
                        .push(message)
                        .map_err(|cause| unsendable(&self.reader, cause))?,
                    None => self.local.push(message),
                }
            }
        }
        Ok(())
    }
}

impl<P: Payload> Edge<P> {
    fn push(&mut self, label: &Label, message: Message<P>) -> UserResult<()> {
        match self {
            Edge::Local(queue) => {
                label.sent(&message.time, &message.data, label.here);
                queue.push(message);
            }
            Edge::Exchange(exchange) => exchange.push(label, message)?,
            Edge::Broadcast {
                local,
                remote,
                reader,
                peers,
            } => {
                for worker in 0..*peers {
                    label.sent(&message.time, &message.data, worker);
                }
                for sender in remote.iter() {
                    let sent = sender.push(message.clone());
                    sent.map_err(|cause| unsendable(reader, cause))?;
                }
                local.push(message);
            }
            Edge::Enter {
                port,
                dims,
                counts,
                scope,
                inside,
            } => {
                label.sent(&message.time, &message.data, label.here);
                let time = message.time.extend(&ZEROS[..*dims]);
                counts
                    .borrow_mut()
                    .update((*port, time.clone()), message.data.len() as i64);
                scope.run();
                inside.push(Message {
                    time,
                    data: message.data,
                })?;
            }
            Edge::Leave { dims, outside } => {
                let Message { time, mut data } = message;
                label.sent(&time, &data, label.here);
                let time = time.truncate(*dims);
                data.left(*dims);
                outside.push(Message { time, data })?;
            }
        }
        Ok(())
    }
}

/// A scope appends at most this many coordinates at once.
pub(crate) const MAX_APPENDED: usize = 16;
const ZEROS: [u64; MAX_APPENDED] = [0; MAX_APPENDED];

/// The tees of a dataflow. When it ends its edges are forgotten, whoever still has a stream of it: an edge holds
/// a routing function, which may hold the stream in turn, and an input that outlives the dataflow feeds nobody.
pub(crate) struct Tees<P: Payload>(RefCell<Vec<Tee<P>>>);

impl<P: Payload> Default for Tees<P> {
    fn default() -> Self {
        Tees(RefCell::default())
    }
}

impl<P: Payload> Tees<P> {
    /// A tee of the dataflow.
    pub(crate) fn make(&self) -> Tee<P> {
        let tee = Tee::default();
        self.0.borrow_mut().push(tee.clone());
        tee
    }

    /// Says that the dataflow is installed, and sends what waited for that.
    pub(crate) fn open(&self) -> UserResult<()> {
        let tees = self.0.borrow().clone();
        for tee in &tees {
            if tee.0.phase.get() == Phase::Building {
                tee.0.phase.set(Phase::Ready);
            }
        }
        for tee in tees {
            for message in tee.0.early.take() {
                tee.push(message)?;
            }
        }
        Ok(())
    }

    /// Forgets every edge.
    pub(crate) fn clear(&self) {
        for tee in self.0.take() {
            tee.clear();
        }
    }
}

/// Forgets a dataflow's edges when it goes.
pub(crate) struct ClearOnDrop<P: Payload>(pub(crate) Rc<Tees<P>>);

impl<P: Payload> Drop for ClearOnDrop<P> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// The edges of one output. Clones are the same tee.
///
/// Nothing of a tee is borrowed while a batch is routed, which runs user code: it may end the dataflow, and the tee with it.
pub(crate) struct Tee<P>(Rc<TeeCore<P>>);

struct TeeCore<P> {
    phase: Cell<Phase>,
    /// Taken out while a batch is pushed.
    edges: Cell<Vec<(Label, Edge<P>)>>,
    /// What was sent while the dataflow was being built: readers may still be added.
    early: RefCell<Vec<Message<P>>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The dataflow is being built.
    Building,
    Ready,
    /// A batch is on its way along the edges.
    Pushing,
    /// The dataflow has ended: what is sent goes nowhere.
    Cleared,
}

impl<P> Clone for Tee<P> {
    fn clone(&self) -> Self {
        Tee(Rc::clone(&self.0))
    }
}

impl<P> Default for Tee<P> {
    fn default() -> Self {
        Tee(Rc::new(TeeCore {
            phase: Cell::new(Phase::Building),
            edges: Cell::default(),
            early: RefCell::default(),
        }))
    }
}

impl<P: Payload> Tee<P> {
    pub(crate) fn attach(&self, label: Label, edge: Edge<P>) {
        let mut edges = self.0.edges.take();
        edges.push((label, edge));
        self.0.edges.set(edges);
    }

    /// Checks that a batch may be sent now.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.0.phase.get() == Phase::Pushing {
            return Err(Error::Build(
                "a routing function sent to the output that it routes: let it return the key and nothing else".into(),
            ));
        }
        Ok(())
    }

    /// Sends a message along every edge.
    pub(crate) fn push(&self, message: Message<P>) -> UserResult<()> {
        let core = &*self.0;
        match core.phase.get() {
            Phase::Ready => {}
            Phase::Building => {
                core.early.borrow_mut().push(message);
                return Ok(());
            }
            Phase::Cleared => return Ok(()),
            Phase::Pushing => return Ok(self.check()?),
        }
        core.phase.set(Phase::Pushing);
        let mut edges = core.edges.take();
        let outcome = push_along(&mut edges, message);
        if core.phase.get() == Phase::Pushing {
            core.edges.set(edges);
            core.phase.set(Phase::Ready);
        } // else the dataflow has ended meanwhile, and the edges with it
        outcome
    }

    /// Forgets the edges, so that what they hold is freed; what is sent afterwards goes nowhere.
    pub(crate) fn clear(&self) {
        self.0.phase.set(Phase::Cleared);
        let (early, edges) = (self.0.early.take(), self.0.edges.take());
        drop((early, edges)); // of which nothing is borrowed: dropping a router may run user code
    }
}

fn push_along<P: Payload>(edges: &mut [(Label, Edge<P>)], message: Message<P>) -> UserResult<()> {
    let Some(((label, last), others)) = edges.split_last_mut() else {
        return Ok(());
    };
    for (label, edge) in others {
        edge.push(label, message.clone())?;
    }
    last.push(label, message)
}
