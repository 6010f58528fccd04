//! Places in a dataflow graph: the ports of its nodes.
//!
//! Owns [`Source`] (an output port), [`Target`] (an input port) and [`Location`], which is either.

use std::fmt;

/// An output port of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The node's index in its graph.
    pub node: usize,
    /// The index among the node's outputs.
    pub port: usize,
}

impl Source {
    /// Output `port` of `node`.
    pub fn new(node: usize, port: usize) -> Self {
        Self { node, port }
    }
}

/// An input port of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// The node's index in its graph.
    pub node: usize,
    /// The index among the node's inputs.
    pub port: usize,
}

impl Target {
    /// Input `port` of `node`.
    pub fn new(node: usize, port: usize) -> Self {
        Self { node, port }
    }
}

/// A port, without its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    /// An input, where messages wait to be consumed.
    Target(usize),
    /// An output, where capabilities to send are held.
    Source(usize),
}

/// A port of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The node's index in its graph.
    pub node: usize,
    /// The port of the node.
    pub port: Port,
}

impl Location {
    /// Input `port` of `node`.
    pub fn target(node: usize, port: usize) -> Self {
        let port = Port::Target(port);
        Self { node, port }
    }

    /// Output `port` of `node`.
    pub fn source(node: usize, port: usize) -> Self {
        let port = Port::Source(port);
        Self { node, port }
    }
}

impl From<Source> for Location {
    fn from(source: Source) -> Self {
        Self::source(source.node, source.port)
    }
}

impl From<Target> for Location {
    fn from(target: Target) -> Self {
        Self::target(target.node, target.port)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Port::Target(port) => write!(formatter, "input {port} of node {}", self.node),
            Port::Source(port) => write!(formatter, "output {port} of node {}", self.node),
        }
    }
}
