//! Streams that cross the boundary of a scope.

use std::rc::Rc;

use pointstamp_progress::{Source, Target};

use super::scope::Scope;
use super::stream::Stream;
use crate::error::{BuildError, Crossing, Error};
use crate::payload::Payload;
use crate::run::boundary::{Enter, Leave};

impl<P: Payload> Scope<P> {
    /// Brings a stream of the parent scope into this one.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the stream is not of the parent scope, or either is no longer being built.
    pub fn enter(&self, stream: &Stream<P>) -> Result<Stream<P>, Error> {
        self.check_building()?;
        let Some(parent) = &self.0.parent else {
            return Err(BuildError::EntersRoot(self.0.name.clone()).into());
        };
        parent.check_stream(stream, &self.0.name)?;
        let port = self.0.inputs.get();
        self.0.inputs.set(port + 1);
        let inside = self.0.tees.make();
        let node = self.index();
        let edge = parent.add_edge(stream.source, Target { node, port }, 1, "enter");
        stream.tee.attach(Box::new(Enter {
            label: self.label(edge),
            port,
            dims: self.0.dims - parent.0.dims,
            counts: Rc::clone(&self.0.input_counts),
            scope: self.0.activation.clone(),
            inside: inside.clone(),
        }));
        Ok(Stream::new(
            self.clone(),
            Source { node: 0, port },
            inside,
            &stream.producer,
        ))
    }

    /// Brings a stream of this scope out to the parent.
    ///
    /// # Errors
    ///
    /// [`Error::Build`] when the stream is not of this scope, has left it already, or there is no scope around it.
    pub fn leave(&self, stream: &Stream<P>) -> Result<Stream<P>, Error> {
        let Some(parent) = &self.0.parent else {
            let (stream, scope) = (stream.producer.to_string(), self.0.name.clone());
            return Err(BuildError::LeavesRoot { stream, scope }.into());
        };
        parent.check_building()?;
        if stream.scope != *self {
            return Err(self.wrong_scope(stream, "leave"));
        }
        if !self.0.left.borrow_mut().insert(stream.source) {
            return Err(BuildError::LeftBefore {
                stream: stream.producer.to_string(),
                from: self.path(),
                to: parent.path(),
            }
            .into());
        }
        let port = self.0.outputs.get();
        self.0.outputs.set(port + 1);
        let outside = self.0.tees.make();
        let edge = self.add_edge(stream.source, Target { node: 0, port }, 1, "leave");
        stream.tee.attach(Box::new(Leave {
            label: self.label(edge),
            dims: parent.0.dims,
            outside: outside.clone(),
        }));
        Ok(Stream::new(
            parent.clone(),
            Source {
                node: self.index(),
                port,
            },
            outside,
            &stream.producer,
        ))
    }

    /// Checks that a stream can be read in this scope.
    pub(crate) fn check_stream(&self, stream: &Stream<P>, reader: &str) -> Result<(), Error> {
        if stream.scope == *self {
            Ok(())
        } else {
            Err(self.wrong_scope(stream, reader))
        }
    }

    fn wrong_scope(&self, stream: &Stream<P>, reader: &str) -> Error {
        let (from, to) = (&stream.scope, self);
        let crossing = if to.0.parent.as_ref() == Some(from) {
            Crossing::Enter
        } else if from.0.parent.as_ref() == Some(to) {
            Crossing::Leave
        } else {
            Crossing::Several
        };
        let other = BuildError::OtherScope {
            reader: reader.to_owned(),
            to: to.path(),
            stream: stream.producer.to_string(),
            from: from.path(),
            crossing,
        };
        other.into()
    }
}
