//! Chains that grow while a program builds its dataflow: a stage gets an output when something other than a stage reads it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use pointstamp_engine::operator::OperatorBuilder;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::stream::Stream as EngineStream;
use pointstamp_operators::{Content, Input, Kind, Output, Typed};
use pyo3::prelude::*;

use super::tree::{At, Run, Tree};
use crate::batch::Batch;
use crate::errors::{GraphError, IntoException};

/// The operator that runs a tree of stages.
struct Chain<K, C: Content> {
    builder: OperatorBuilder<Batch>,
    /// The operator's logic owns them, so that they go when it does: a stage's function may hold a stream of this
    /// chain.
    tree: Weak<RefCell<Tree<K, C>>>,
    /// The streams of the parts that have an output.
    streams: RefCell<BTreeMap<At, EngineStream<Batch>>>,
}

/// A part of a stage's result: a stream that may have no output yet.
pub(crate) struct Tap<K, C: Content> {
    chain: Rc<Chain<K, C>>,
    at: At,
    kind: Kind,
}

impl<K, C: Content> Clone for Tap<K, C> {
    fn clone(&self) -> Self {
        Tap {
            chain: Rc::clone(&self.chain),
            at: self.at,
            kind: self.kind,
        }
    }
}

/// A stage that is added: its kind, its name, its function, the number of parts of its result, and their kind.
pub(crate) type Added<'a, K> = (K, &'a str, Py<PyAny>, usize, Kind);

impl<K: 'static, C: Content> Tap<K, C> {
    /// Begins a chain with one stage on a stream; returns the parts of its result.
    pub(crate) fn begin(
        stream: &Typed<C>,
        added: Added<'_, K>,
        run: Run<K, C>,
    ) -> PyResult<Vec<Self>> {
        let refused = IntoException::into_exception;
        let builder = stream.scope().operator(added.1).map_err(refused)?;
        let input = Input::new(&builder, stream, Pact::Pipeline).map_err(refused)?;
        let tree = Rc::new(RefCell::new(Tree::new()));
        let chain = Rc::new(Chain {
            builder: builder.clone(),
            tree: Rc::downgrade(&tree),
            streams: RefCell::default(),
        });
        let taps = chain.add(&mut tree.borrow_mut(), None, added)?;
        builder.build(move || {
            run(&input, &tree.borrow())?;
            Ok(false)
        });
        Ok(taps)
    }

    /// The kind of the part's batches.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// The number of coordinates of its times.
    pub(crate) fn dims(&self) -> usize {
        self.chain.builder.scope().dims()
    }

    /// Adds a stage that reads this part; returns the parts of its result.
    pub(crate) fn then(&self, added: Added<'_, K>) -> PyResult<Vec<Self>> {
        // Refused as an operator of its own would be, when the scope is no longer being built.
        let chain = &self.chain;
        let refused = IntoException::into_exception;
        chain.builder.check_building().map_err(refused)?;
        let name = added.1;
        let taps = chain.add(&mut chain.tree()?.borrow_mut(), Some(self.at), added)?;
        chain
            .builder
            .rename(&format!("{} > {name}", chain.builder.name()));
        Ok(taps)
    }

    /// The stream of this part, which gets an output of its own now if it has none.
    pub(crate) fn stream(&self) -> PyResult<EngineStream<Batch>> {
        let chain = &self.chain;
        if let Some(stream) = chain.streams.borrow().get(&self.at) {
            return Ok(stream.clone());
        }
        // Not refused where the scope's block has ended: the stream may leave it then.
        let late = chain.builder.new_late_output();
        let (output, stream) = late.map_err(IntoException::into_exception)?;
        let tree = chain.tree()?;
        tree.borrow_mut()
            .set_output(self.at, Output::assume(output))?;
        chain.streams.borrow_mut().insert(self.at, stream.clone());
        Ok(stream)
    }
}

impl<K, C: Content> Chain<K, C> {
    /// The stages, until the dataflow ends.
    fn tree(&self) -> PyResult<Rc<RefCell<Tree<K, C>>>> {
        self.tree
            .upgrade()
            .ok_or_else(|| GraphError::new_err("the operator of this stream is gone"))
    }

    fn add(
        self: &Rc<Self>,
        tree: &mut Tree<K, C>,
        reads: Option<At>,
        (kind, name, function, parts, made): Added<'_, K>,
    ) -> PyResult<Vec<Tap<K, C>>> {
        let stage = tree.add(reads, kind, name.to_owned(), function, parts)?;
        let taps = (0..parts).map(|part| Tap {
            chain: Rc::clone(self),
            at: (stage, part),
            kind: made,
        });
        Ok(taps.collect())
    }
}
