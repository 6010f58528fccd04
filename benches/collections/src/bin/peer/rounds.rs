//! Graphs that change, and how long rounds of changes take.

use std::sync::mpsc::{Receiver, Sender, channel};

use differential_dataflow::VecCollection;
use differential_dataflow::input::Input;
use timely::dataflow::operators::Probe;

use crate::clock::Clock;
use crate::edges::{Graph, number, report};

/// Records, as their number and a sum over them tell them apart.
type Check = (i64, u64);

/// Runs a program over a graph on so many workers; prints the seconds that loading and each of the rounds took.
pub fn run<F>(workers: usize, graph: Graph, program: F)
where
    F: for<'a> Fn(
            VecCollection<'a, u64, (u32, u32), isize>,
        ) -> VecCollection<'a, u64, (u32, u32), isize>
        + Send
        + Sync
        + 'static,
{
    let (send, checks): (Sender<Check>, Receiver<Check>) = channel();
    let send = std::sync::Mutex::new(send);
    timely::execute(timely::Config::process(workers), move |worker| {
        let (index, peers) = (worker.index(), worker.peers());
        let total = std::rc::Rc::new(std::cell::Cell::new((0, 0)));
        let adding = total.clone();
        let (mut input, probe) = worker.dataflow::<u64, _, _>(|scope| {
            let (input, edges) = scope.new_collection::<(u32, u32), isize>();
            let result = program(edges).inspect(move |((a, b), _, diff)| {
                let (count, sum) = adding.get();
                #[allow(clippy::cast_sign_loss)]
                let weight = number(u64::from(*a) << 32 | u64::from(*b)).wrapping_mul(*diff as u64);
                adding.set((count + *diff as i64, u64::wrapping_add(sum, weight)));
            });
            (input, result.inner.probe().0)
        });
        let mut round = |time: usize, out: std::ops::Range<usize>, new: std::ops::Range<usize>| {
            let mine = |edge: &usize| edge % peers == index;
            out.filter(mine).for_each(|at| input.remove(graph.edge(at)));
            new.filter(mine).for_each(|at| input.insert(graph.edge(at)));
            input.advance_to(time as u64 + 1);
            input.flush();
            worker.step_while(|| probe.less_than(&(time as u64 + 1)));
        };
        let start = Clock::start(peers);
        round(0, 0..0, 0..graph.edges);
        let load = start.elapsed();
        let mut times = Vec::with_capacity(graph.rounds);
        for time in 1..=graph.rounds {
            let start = Clock::start(peers);
            let first = (time - 1) * graph.changes;
            round(
                time,
                first..first + graph.changes,
                graph.edges + first..graph.edges + first + graph.changes,
            );
            times.push(start.elapsed());
        }
        if index == 0 {
            report(load, times);
        }
        send.lock()
            .expect("no worker failed")
            .send(total.get())
            .expect("someone listens");
    })
    .expect("workers start");
    let add =
        |(count, sum): Check, (other, more): Check| (count + other, u64::wrapping_add(sum, more));
    let (count, sum) = checks.into_iter().fold((0, 0), add);
    println!("check {count} {sum}");
}
