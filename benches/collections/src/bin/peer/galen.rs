//! The six rules of GALEN.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use differential_dataflow::input::Input;
use differential_dataflow::operators::iterate::Variable;
use timely::dataflow::operators::Probe;
use timely::order::Product;

use crate::clock::Clock;
use crate::relation::relation;

/// The relations of a folder, to the end.
pub fn run(workers: usize, folder: &str, share: f64) {
    let relations: Vec<Vec<Vec<u32>>> = ["p", "q", "r", "c", "u", "s"]
        .iter()
        .map(|name| relation(folder, name, share))
        .collect();
    let relations = Arc::new(relations);
    let (sizes, found) = channel();
    let sizes = Mutex::new(sizes);
    let start = Clock::start(workers);
    timely::execute(timely::Config::process(workers), move |worker| {
        let (index, peers) = (worker.index(), worker.peers());
        let relations = relations.clone();
        let sizes = sizes.lock().expect("no worker failed").clone();
        let probe = worker.dataflow::<u64, _, _>(|scope| {
            let mine = |relation: usize| -> Vec<Vec<u32>> {
                let tuples = &relations[relation];
                tuples.iter().skip(index).step_by(peers).cloned().collect()
            };
            let two = |tuple: Vec<u32>| (tuple[0], tuple[1]);
            let three = |tuple: Vec<u32>| (tuple[0], tuple[1], tuple[2]);
            let p = scope.new_collection_from(mine(0).into_iter().map(two)).1;
            let q = scope.new_collection_from(mine(1).into_iter().map(three)).1;
            let r = scope.new_collection_from(mine(2).into_iter().map(three)).1;
            let c = scope.new_collection_from(mine(3).into_iter().map(three)).1;
            let u = scope.new_collection_from(mine(4).into_iter().map(three)).1;
            let s = scope.new_collection_from(mine(5).into_iter().map(two)).1;
            let (p, q) = scope.iterative::<u64, _, _>(|inner| {
                let (p0, q0) = (p.enter(inner), q.enter(inner));
                let (r, c, u, s) = (
                    r.enter(inner),
                    c.enter(inner),
                    u.enter(inner),
                    s.enter(inner),
                );
                let step = Product::new(Default::default(), 1);
                let (p_variable, p) = Variable::new(inner, step.clone());
                let (q_variable, q) = Variable::new(inner, step);
                let by_x = p.clone().arrange_by_key();
                let by_y = p.clone().map(|(x, y)| (y, x)).arrange_by_key();
                let by_xy = p.arrange_by_self();
                let q_by_x = q.clone().map(|(x, r, z)| (x, (r, z))).arrange_by_key();
                let q_by_r = q.clone().map(|(x, r, z)| (r, (x, z))).arrange_by_key();
                let q_by_rz = q.clone().map(|(x, r, z)| ((r, z), x)).arrange_by_key();
                let q_by_xr = q.map(|(x, r, z)| ((x, r), z)).arrange_by_key();

                let p1 = by_y.clone().join_core(by_x, |_, x, z| Some((*x, *z)));
                let u = u.map(|(w, r, z)| (w, (r, z))).arrange_by_key();
                let p2 = by_y
                    .clone()
                    .join_core(u, |_, y, (r, z)| Some(((*r, *y), *z)));
                let p2 = p2
                    .arrange_by_key()
                    .join_core(q_by_rz, |_, z, x| Some((*x, *z)));
                let c = c.map(|(y, w, z)| (w, (y, z))).arrange_by_key();
                let p3 = by_y
                    .clone()
                    .join_core(c, |_, x, (y, z)| Some(((*x, *y), *z)));
                let p3 = p3
                    .arrange_by_key()
                    .join_core(by_xy, |(x, _), z, ()| Some((*x, *z)));
                let q1 = by_y.join_core(q_by_x, |_, x, (r, z)| Some((*x, *r, *z)));
                let s = s.arrange_by_key();
                let q2 = q_by_r
                    .clone()
                    .join_core(s, |_, (x, z), e| Some((*x, *e, *z)));
                let r = r.map(|(y, u, e)| (y, (u, e))).arrange_by_key();
                let q3 = q_by_r.join_core(r, |_, (x, z), (u, e)| Some(((*z, *u), (*x, *e))));
                let q3 = q3
                    .arrange_by_key()
                    .join_core(q_by_xr, |_, (x, e), o| Some((*x, *e, *o)));

                let p = p0.concat(p1).concat(p2).concat(p3).distinct();
                let q = q0.concat(q1).concat(q2).concat(q3).distinct();
                p_variable.set(p.clone());
                q_variable.set(q.clone());
                (p.leave(scope), q.leave(scope))
            });
            let mut both = Vec::new();
            for (which, size) in [p.map(|_| ()), q.map(|_| ())].into_iter().enumerate() {
                let sizes = sizes.clone();
                let size = size.consolidate().inspect(move |((), _, diff)| {
                    sizes.send((which, *diff)).expect("someone listens");
                });
                both.push(size);
            }
            let q = both.pop().expect("two sizes");
            let p = both.pop().expect("two sizes");
            p.concat(q).inner.probe().0
        });
        worker.step_while(|| !probe.done());
    })
    .expect("workers start");
    let mut totals = [0; 2];
    for (which, diff) in found {
        totals[which] += diff;
    }
    println!("end {}", start.elapsed().as_secs_f64());
    println!("check {} {}", totals[0], totals[1]);
}
