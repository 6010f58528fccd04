//! A stream: an output of an operator, as others connect to it.

use pointstamp_progress::Source;

use crate::build::scope::Scope;
use crate::observe::OperatorId;
use crate::payload::Payload;
use crate::run::tee::Tee;

/// The records that an operator's output sends; attach readers with an
/// [`OperatorBuilder`](crate::build::operator::OperatorBuilder). Clones are the same stream.
pub struct Stream<P: Payload> {
    pub(crate) scope: Scope<P>,
    pub(crate) source: Source,
    pub(crate) tee: Tee<P>,
    pub(crate) producer: std::rc::Rc<str>,
}

impl<P: Payload> Clone for Stream<P> {
    fn clone(&self) -> Self {
        Stream {
            scope: self.scope.clone(),
            source: self.source,
            tee: self.tee.clone(),
            producer: self.producer.clone(),
        }
    }
}

impl<P: Payload> Stream<P> {
    pub(crate) fn new(scope: Scope<P>, source: Source, tee: Tee<P>, producer: &str) -> Self {
        Stream {
            scope,
            source,
            tee,
            producer: producer.into(),
        }
    }

    /// The scope that the stream is in.
    pub fn scope(&self) -> &Scope<P> {
        &self.scope
    }

    /// The name of the operator that has this output.
    pub fn producer(&self) -> &str {
        &self.producer
    }

    /// The operator that has this output; inside a scope that the stream entered, and behind a scope that it
    /// left, that scope.
    pub fn operator(&self) -> OperatorId {
        self.scope.operator_at(self.source.node)
    }

    /// The output port that this is.
    pub fn source(&self) -> Source {
        self.source
    }
}
