//! The progress protocol over random interleavings of 2 to 5 workers.
//!
//! Safety: no frontier ever passes an outstanding pointstamp. Exactness: once everything has been
//! delivered, frontiers are exact, also when changes were held back. And a worker that splits a
//! report in two is caught.

use pointstamp_progress::Mode;
use pointstamp_testkit::{
    Domain, Fault, GraphSpec, Nested, Odd, Points, SimulatedCluster, Violation, cases, graph_spec,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Eager), Just(Mode::Demand)]
}

fn holds<D: Domain>(
    spec: &GraphSpec<D>,
    peers: usize,
    mode: Mode,
    seed: u64,
) -> Result<(), TestCaseError> {
    let mut cluster = SimulatedCluster::new(spec, peers, mode, Fault::None, seed);
    for _ in 0..3 {
        let outcome = cluster.run(40);
        prop_assert_eq!(outcome, Ok(()));
    }
    let outcome = cluster.finish();
    prop_assert_eq!(outcome, Ok(()));
    Ok(())
}

proptest! {
    #![proptest_config(cases(700))]

    #[test]
    fn points(spec in graph_spec::<Points<2>>(), peers in 2..6usize, mode in mode(), seed: u64) {
        holds(&spec, peers, mode, seed)?;
    }

    #[test]
    fn products(spec in graph_spec::<Nested>(), peers in 2..6usize, mode in mode(), seed: u64) {
        holds(&spec, peers, mode, seed)?;
    }

    #[test]
    fn layers(spec in graph_spec::<Odd>(), peers in 2..6usize, mode in mode(), seed: u64) {
        holds(&spec, peers, mode, seed)?;
    }
}

/// Returns how many of 200 runs meet a frontier that has passed something: on random graphs, the same each
/// time, and on a pipeline.
fn caught(mode: Mode, fault: Fault) -> (usize, usize) {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let specs = graph_spec::<Points<2>>();
    let passed = |spec: &GraphSpec<_>, seed| {
        let mut cluster = SimulatedCluster::new(spec, 2, mode, fault, seed);
        matches!(cluster.run(200), Err(Violation::Passed(_)))
    };
    let pipeline = GraphSpec::<Points<2>>::pipeline(3);
    let random = (0..200).filter(|seed| {
        let spec = specs.new_tree(&mut runner).expect("a graph").current();
        passed(&spec, *seed)
    });
    (
        random.count(),
        (0..200).filter(|seed| passed(&pipeline, *seed)).count(),
    )
}

#[test]
fn a_half_formed_report_is_caught() {
    for mode in [Mode::Eager, Mode::Demand] {
        let (random, pipeline) = caught(mode, Fault::HalfFormed);
        assert!(
            random >= 3 && pipeline >= 4,
            "{random} and {pipeline} of 200, {mode:?}"
        );
        assert_eq!(caught(mode, Fault::None), (0, 0));
    }
}
