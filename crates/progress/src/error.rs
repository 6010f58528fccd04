//! The errors of graphs.

use thiserror::Error;

use crate::Location;

/// Why a graph cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GraphError {
    /// A node index that the graph does not have.
    #[error(
        "there is no node {node}: the graph has {nodes} nodes, so use an index that `add_node` returned"
    )]
    NoSuchNode {
        /// The index that was used.
        node: usize,
        /// The number of nodes there are.
        nodes: usize,
    },
    /// A port index beyond a node's ports.
    #[error("there is no {location}: \"{name}\" has {ports} of them, so use an index below that")]
    NoSuchPort {
        /// The location that was used.
        location: Location,
        /// The name of its node.
        name: String,
        /// The number of ports of that kind.
        ports: usize,
    },
    /// A summary for a pair of ports that the node does not have.
    #[error(
        "\"{name}\" has {inputs} inputs and {outputs} outputs, but summarizes the path from its \
         input {input} to its output {output}: leave that pair out or add the port"
    )]
    NoSuchPath {
        /// The name of the node.
        name: String,
        /// The number of its inputs.
        inputs: usize,
        /// The number of its outputs.
        outputs: usize,
        /// The input of the summary.
        input: usize,
        /// The output of the summary.
        output: usize,
    },
    /// A summary that could turn a timestamp into one that is not at or after it.
    #[error(
        "\"{name}\" summarizes the path from its input {input} to its output {output} by one that timestamps could go \
         back by: keep every coordinate, and add to them"
    )]
    GoesBack {
        /// The name of the node.
        name: String,
        /// The input of the summary.
        input: usize,
        /// The output of the summary.
        output: usize,
    },
    /// A cycle on which timestamps do not advance, so that nothing on it could ever be final.
    #[error(
        "the cycle through {} does not advance timestamps: let one node on it, such as a feedback, \
         add to a coordinate",
        quoted(names)
    )]
    Cycle {
        /// The names of the nodes, in the order in which the cycle visits them.
        names: Vec<String>,
        /// Their numbers in the graph, in that order.
        nodes: Vec<usize>,
    },
    /// More ports and paths than the tracker can number.
    #[error(
        "the graph has {size} ports and paths, more than {}: split it into nested scopes",
        u32::MAX
    )]
    TooLarge {
        /// The size of the graph.
        size: usize,
    },
}

fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}
