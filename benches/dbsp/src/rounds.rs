//! Graphs that change, and how long rounds of changes take.
//!
//! The graph is that of the other peers: a window over an endless list of random edges. It begins with the first ones, and
//! each round takes so many out at the front and as many in at the back. A round is a transaction. DBSP works on a large one
//! in several steps, whose outputs are accumulated.

use std::ops::Range;

use dbsp::typed_batch::IndexedZSetReader;
use dbsp::utils::Tup2;
use dbsp::{OrdZSet, RootCircuit, Runtime, Stream};

use crate::clock::Clock;

/// Pairs of numbers.
pub type Pair = Tup2<u32, u32>;
/// A collection of pairs.
pub type Pairs = Stream<RootCircuit, OrdZSet<Pair>>;

/// A number of the list (splitmix64).
fn number(index: u64) -> u64 {
    let mut z = index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The edge at an index of the list.
#[allow(clippy::cast_possible_truncation)]
fn edge(index: usize, nodes: usize) -> Pair {
    let (index, nodes) = (index as u64, nodes as u64);
    Tup2(
        (number(2 * index) % nodes) as u32,
        (number(2 * index + 1) % nodes) as u32,
    )
}

/// The size of a graph, and how it changes.
#[derive(Clone, Copy)]
pub struct Graph {
    pub nodes: usize,
    pub edges: usize,
    pub changes: usize,
    pub rounds: usize,
}

/// Runs a program over a graph on so many workers; prints the seconds that loading and each of the rounds took.
pub fn run<F>(workers: usize, graph: Graph, program: F)
where
    F: Fn(&Pairs) -> Pairs + Clone + Send + 'static,
{
    let (mut circuit, (edges, found)) = Runtime::init_circuit(workers, move |circuit| {
        let (pairs, edges) = circuit.add_input_zset::<Pair>();
        Ok((edges, program(&pairs).accumulate_output()))
    })
    .expect("a circuit");
    let (mut count, mut sum) = (0_i64, 0_u64);
    let mut round = |out: Range<usize>, new: Range<usize>| {
        out.for_each(|at| edges.push(edge(at, graph.nodes), -1));
        new.for_each(|at| edges.push(edge(at, graph.nodes), 1));
        circuit.transaction().expect("no worker failed");
        for (Tup2(a, b), (), diff) in found.concat().consolidate().iter() {
            #[allow(clippy::cast_sign_loss)]
            let weight = number(u64::from(a) << 32 | u64::from(b)).wrapping_mul(diff as u64);
            count += diff;
            sum = sum.wrapping_add(weight);
        }
    };
    let start = Clock::start(workers);
    round(0..0, 0..graph.edges);
    println!("load {}", start.elapsed().as_secs_f64());
    let mut times = Vec::with_capacity(graph.rounds);
    for time in 0..graph.rounds {
        let first = time * graph.changes;
        let next = first + graph.changes;
        let start = Clock::start(workers);
        round(first..next, graph.edges + first..graph.edges + next);
        times.push(start.elapsed().as_secs_f64());
    }
    println!("rounds {}", times.iter().sum::<f64>());
    times.sort_unstable_by(f64::total_cmp);
    if let Some(median) = times.get(times.len() / 2) {
        println!("median {median}");
    }
    println!("check {count} {sum}");
    circuit.kill().expect("workers end");
}
