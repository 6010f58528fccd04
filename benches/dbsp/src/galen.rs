//! The six rules of GALEN, in the order of joins of DBSP's own `benches/galen.rs`.

use dbsp::typed_batch::{IndexedZSetReader, SpineSnapshot};
use dbsp::utils::{Tup2, Tup3};
use dbsp::{NestedCircuit, OrdZSet, OutputHandle, Runtime, Stream};

use crate::clock::Clock;
use crate::relation::relation;

type Two = Tup2<u32, u32>;
type Three = Tup3<u32, u32, u32>;
type Inner<T> = Stream<NestedCircuit, OrdZSet<T>>;

/// Returns the number of records of a collection.
fn size(found: &OutputHandle<SpineSnapshot<OrdZSet<()>>>) -> i64 {
    found
        .concat()
        .consolidate()
        .iter()
        .map(|((), (), diff)| diff)
        .sum()
}

/// The relations of a folder, to the end.
pub fn run(workers: usize, folder: &str, share: f64) {
    let two = |name: &str| -> Vec<Two> {
        let tuples = relation(folder, name, share);
        tuples.iter().map(|of| Tup2(of[0], of[1])).collect()
    };
    let three = |name: &str| -> Vec<Three> {
        let tuples = relation(folder, name, share);
        tuples.iter().map(|of| Tup3(of[0], of[1], of[2])).collect()
    };
    let twos = ["p", "s"].map(two);
    let threes = ["q", "r", "c", "u"].map(three);
    let start = Clock::start(workers);
    let (mut circuit, (two_inputs, three_inputs, found)) =
        Runtime::init_circuit(workers, move |circuit| {
            let (p, p_input) = circuit.add_input_zset::<Two>();
            let (s, s_input) = circuit.add_input_zset::<Two>();
            let (q, q_input) = circuit.add_input_zset::<Three>();
            let (r, r_input) = circuit.add_input_zset::<Three>();
            let (c, c_input) = circuit.add_input_zset::<Three>();
            let (u, u_input) = circuit.add_input_zset::<Three>();
            let closure = |inner: &NestedCircuit, (p_now, q_now): (Inner<Two>, Inner<Three>)| {
                let by_x = p_now.map_index(|Tup2(x, y)| (*x, *y));
                let by_y = p_now.map_index(|Tup2(x, y)| (*y, *x));
                let by_xy = p_now.map_index(|pair| (*pair, ()));
                let q_by_x = q_now.map_index(|Tup3(x, r, z)| (*x, Tup2(*r, *z)));
                let q_by_r = q_now.map_index(|Tup3(x, r, z)| (*r, Tup2(*x, *z)));
                let q_by_rz = q_now.map_index(|Tup3(x, r, z)| (Tup2(*r, *z), *x));
                let q_by_xr = q_now.map_index(|Tup3(x, r, z)| (Tup2(*x, *r), *z));
                let rest = |of: &Three| (of.0, Tup2(of.1, of.2));
                let u = u.delta0(inner).map_index(rest);
                let r = r.delta0(inner).map_index(rest);
                let c = c
                    .delta0(inner)
                    .map_index(|Tup3(y, w, z)| (*w, Tup2(*y, *z)));
                let s = s.delta0(inner).map_index(|Tup2(r, e)| (*r, *e));

                let p1 = by_y.join(&by_x, |_, x, z| Tup2(*x, *z));
                let p2 = by_y
                    .join_index(&u, |_, y, Tup2(r, z)| Some((Tup2(*r, *y), *z)))
                    .join(&q_by_rz, |_, z, x| Tup2(*x, *z));
                let p3 = c
                    .join_index(&by_y, |_, Tup2(y, z), x| Some((Tup2(*x, *y), *z)))
                    .join(&by_xy, |Tup2(x, _), z, ()| Tup2(*x, *z));
                let q1 = by_y.join(&q_by_x, |_, x, Tup2(r, z)| Tup3(*x, *r, *z));
                let q2 = q_by_r.join(&s, |_, Tup2(x, z), e| Tup3(*x, *e, *z));
                let q3 = q_by_r
                    .join_index(&r, |_, Tup2(x, z), Tup2(u, e)| {
                        Some((Tup2(*z, *u), Tup2(*x, *e)))
                    })
                    .join(&q_by_xr, |_, Tup2(x, e), o| Tup3(*x, *e, *o));
                Ok((
                    p.delta0(inner).sum([&p1, &p2, &p3]),
                    q.delta0(inner).sum([&q1, &q2, &q3]),
                ))
            };
            let (p_end, q_end) = circuit.recursive(closure)?;
            let found = [
                p_end.map(|_| ()).accumulate_output(),
                q_end.map(|_| ()).accumulate_output(),
            ];
            Ok((
                [p_input, s_input],
                [q_input, r_input, c_input, u_input],
                found,
            ))
        })
        .expect("a circuit");
    for (input, tuples) in two_inputs.iter().zip(twos) {
        input.append(&mut tuples.into_iter().map(|tuple| Tup2(tuple, 1)).collect());
    }
    for (input, tuples) in three_inputs.iter().zip(threes) {
        input.append(&mut tuples.into_iter().map(|tuple| Tup2(tuple, 1)).collect());
    }
    circuit.transaction().expect("no worker failed");
    let [p, q] = found.each_ref().map(size);
    println!("end {}", start.elapsed().as_secs_f64());
    println!("check {p} {q}");
    circuit.kill().expect("workers end");
}
