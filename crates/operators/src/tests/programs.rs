//! Random programs of operators against recomputation at every time.

use pointstamp_testkit::cases;
use proptest::prelude::*;

use super::support::Place;
use crate::entry::draw::Draw;
use crate::entry::program::Program;
use crate::entry::running::{Pace, check, run};

/// Runs the program that bytes describe, and compares it with recomputation.
fn agrees(bytes: &[u8], at: Place) {
    let mut draw = Draw::new(bytes);
    let pace = Pace::draw(&mut draw);
    let program = Program::draw(&mut draw);
    let found = at.run(|worker| run(worker, &program, pace));
    check(&program, found.into_iter().flatten());
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..200)
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_worker_agrees_with_recomputation(bytes in bytes()) {
        agrees(&bytes, Place::Threads(1));
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn two_to_four_workers_agree_with_recomputation(bytes in bytes(), workers in 2..5_usize) {
        agrees(&bytes, Place::Threads(workers));
    }

    #[test]
    fn in_whatever_order_workers_run(bytes in bytes(), shape in (1..3_usize, 1..3_usize), seed: u64) {
        agrees(&bytes, Place::Simulated(shape.0, shape.1, seed));
    }
}
