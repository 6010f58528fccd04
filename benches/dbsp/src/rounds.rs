//! Graphs that change, and how long rounds of changes take.
//!
//! A round is a transaction. DBSP works on a large one in several steps, whose outputs are accumulated.

use std::ops::Range;

use dbsp::typed_batch::IndexedZSetReader;
use dbsp::utils::Tup2;
use dbsp::{OrdZSet, RootCircuit, Runtime, Stream};

use crate::clock::Clock;
use crate::edges::{Graph, number, report};

/// Pairs of numbers.
pub type Pair = Tup2<u32, u32>;
/// A collection of pairs.
pub type Pairs = Stream<RootCircuit, OrdZSet<Pair>>;

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
        let edge = |at: usize| -> Pair {
            let (source, target) = graph.edge(at);
            Tup2(source, target)
        };
        out.for_each(|at| edges.push(edge(at), -1));
        new.for_each(|at| edges.push(edge(at), 1));
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
    let load = start.elapsed();
    let mut times = Vec::with_capacity(graph.rounds);
    for time in 0..graph.rounds {
        let first = time * graph.changes;
        let next = first + graph.changes;
        let start = Clock::start(workers);
        round(first..next, graph.edges + first..graph.edges + next);
        times.push(start.elapsed());
    }
    report(load, times);
    println!("check {count} {sum}");
    circuit.kill().expect("workers end");
}
