//! The readers of an output's batches.
//!
//! A [`Tee`] holds the edges of one output. Batches that are sent while the dataflow is being built wait for its
//! installation: the records are counted for every future reader, and so must reach every one.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::error::{BuildError, Error, UserResult};
use crate::payload::{Message, Payload};
use crate::run::edge::Edge;

/// The tees of a dataflow. When it ends its edges are forgotten, also where a program still has a stream of it: an edge holds
/// a routing function, which may hold the stream in turn, and an input that outlives the dataflow feeds no operator.
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

    /// Marks the dataflow as installed, and sends the batches that waited for it.
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
    edges: Cell<Vec<Box<dyn Edge<P>>>>,
    /// The number of edges; after the dataflow has ended, the last number.
    readers: Cell<usize>,
    /// Batches that were sent while the dataflow was being built: readers may still be added.
    early: RefCell<Vec<Message<P>>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The dataflow is being built.
    Building,
    Ready,
    /// A batch is on its way along the edges.
    Pushing,
    /// The dataflow has ended: batches are dropped.
    Cleared,
    /// The dataflow was given up while it was built.
    Unbuilt,
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
            readers: Cell::new(0),
            early: RefCell::default(),
        }))
    }
}

impl<P: Payload> Tee<P> {
    pub(crate) fn attach(&self, edge: Box<dyn Edge<P>>) {
        let mut edges = self.0.edges.take();
        edges.push(edge);
        self.0.readers.set(edges.len());
        self.0.edges.set(edges);
    }

    /// Checks that a batch may be sent now.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.0.phase.get() == Phase::Pushing {
            return Err(BuildError::RoutesItself.into());
        }
        Ok(())
    }

    /// Whether the dataflow was given up while it was built.
    #[inline]
    pub(crate) fn is_unbuilt(&self) -> bool {
        self.0.phase.get() == Phase::Unbuilt
    }

    /// Whether batches have no reader, now and later.
    #[inline]
    pub(crate) fn leads_nowhere(&self) -> bool {
        self.0.readers.get() == 0 && self.0.phase.get() != Phase::Building
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
            Phase::Cleared | Phase::Unbuilt => return Ok(()),
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

    /// Drops the edges, so that their contents are freed; later batches are dropped.
    pub(crate) fn clear(&self) {
        let unbuilt = matches!(self.0.phase.get(), Phase::Building | Phase::Unbuilt);
        self.0.phase.set(if unbuilt {
            Phase::Unbuilt
        } else {
            Phase::Cleared
        });
        let (early, edges) = (self.0.early.take(), self.0.edges.take());
        drop((early, edges)); // of which nothing is borrowed: dropping a router may run user code
    }
}

fn push_along<P: Payload>(edges: &mut [Box<dyn Edge<P>>], message: Message<P>) -> UserResult<()> {
    let Some((last, others)) = edges.split_last_mut() else {
        return Ok(());
    };
    for edge in others {
        edge.push(message.clone())?;
    }
    last.push(message)
}
