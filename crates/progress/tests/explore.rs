//! The progress protocol over every interleaving of small clusters.
//!
//! `pointstamp_testkit::explore` describes the checks in each state. The numbers of states are pinned: a change of
//! the protocol, or of the explorer, that reaches other states shows here. Broken variants are caught, each by the
//! property that it breaks.

use pointstamp_progress::Mode::{self, Demand, Eager};
use pointstamp_testkit::explore::{Explored, Flaw, Scenario, Shape, Wrong, explore};

/// Bounds: processes, workers of each, the last coordinate, messages sent, copies of capabilities, capabilities of messages kept.
type Bounds = (usize, usize, u64, u8, u8, u8);

fn scenario(shape: Shape, mode: Mode, bounds: Bounds) -> Scenario {
    let (processes, workers, last, sends, copies, keeps) = bounds;
    Scenario {
        shape,
        processes,
        group: 1,
        workers,
        mode,
        last,
        moves: None,
        sends,
        copies,
        keeps,
        cuts: 0,
        flaw: Flaw::None,
    }
}

/// The same, where no capability is downgraded: times advance in loops alone.
fn still(shape: Shape, mode: Mode, bounds: Bounds) -> Scenario {
    Scenario {
        moves: Some(0),
        ..scenario(shape, mode, bounds)
    }
}

/// The same, with relays for pairs of processes.
fn pairs(shape: Shape, mode: Mode, bounds: Bounds) -> Scenario {
    Scenario {
        group: 2,
        ..scenario(shape, mode, bounds)
    }
}

/// The same, with one relay for all processes.
fn one_group(shape: Shape, mode: Mode, bounds: Bounds) -> Scenario {
    Scenario {
        group: 4,
        ..scenario(shape, mode, bounds)
    }
}

/// Pairs of processes, with an attempt at a checkpoint.
fn cut_pairs(shape: Shape, mode: Mode, bounds: Bounds) -> Scenario {
    Scenario {
        group: 2,
        ..cut(shape, mode, bounds)
    }
}

/// The same with an attempt at a checkpoint, at any moment.
fn cut(shape: Shape, mode: Mode, bounds: Bounds) -> Scenario {
    Scenario {
        cuts: 1,
        moves: Some(0),
        ..scenario(shape, mode, bounds)
    }
}

/// A scenario, and how many states, steps and final states it has.
type Case = (
    fn(Shape, Mode, Bounds) -> Scenario,
    Shape,
    Mode,
    Bounds,
    [usize; 3],
);

#[rustfmt::skip] // a table
const QUICK: &[Case] = &[
    (scenario, Shape::Chain(2), Demand, (1, 2, 0, 1, 1, 1), [3124, 8461, 6]),
    (scenario, Shape::Chain(2), Demand, (1, 2, 1, 1, 0, 0), [6604, 19709, 2]),
    (scenario, Shape::Chain(1), Demand, (1, 3, 0, 1, 0, 0), [1612, 6020, 2]),
    (scenario, Shape::Chain(1), Eager, (1, 3, 0, 1, 0, 0), [5524, 24282, 2]),
    (scenario, Shape::Diamond, Demand, (1, 2, 0, 1, 0, 0), [18906, 58143, 2]),
    (still, Shape::Loop, Demand, (1, 2, 1, 1, 0, 1), [16577, 47855, 3]),
    (scenario, Shape::Nested, Demand, (1, 2, 0, 1, 0, 1), [6581, 24222, 3]),
    (scenario, Shape::Chain(1), Demand, (2, 1, 1, 1, 0, 0), [2588, 7489, 2]),
    (scenario, Shape::Chain(2), Eager, (2, 1, 0, 1, 0, 1), [5939, 19494, 3]),
    (scenario, Shape::Chain(1), Demand, (2, 2, 0, 0, 0, 0), [2136, 10538, 1]),
    (scenario, Shape::Chain(1), Demand, (3, 1, 0, 1, 0, 0), [2886, 10872, 2]),
    (cut, Shape::Chain(1), Demand, (1, 2, 0, 1, 0, 0), [57414, 196_151, 124]),
    (pairs, Shape::Chain(1), Demand, (2, 1, 0, 1, 0, 0), [653, 1517, 2]),
    (pairs, Shape::Chain(1), Eager, (2, 1, 0, 1, 0, 0), [2414, 7245, 2]),
    (pairs, Shape::Chain(1), Demand, (3, 1, 0, 0, 0, 0), [1556, 5102, 1]),
    (one_group, Shape::Chain(1), Demand, (3, 1, 0, 0, 0, 0), [430, 1293, 1]),
    (cut_pairs, Shape::Chain(1), Demand, (2, 1, 0, 0, 0, 0), [4761, 15015, 12]),
];

#[rustfmt::skip] // a table
const DEEP: &[Case] = &[
    (scenario, Shape::Chain(2), Eager, (1, 2, 1, 1, 0, 0), [27582, 97190, 2]),
    (scenario, Shape::Chain(2), Eager, (1, 2, 0, 1, 1, 1), [44250, 145_495, 6]),
    (scenario, Shape::Chain(2), Demand, (1, 2, 1, 1, 0, 1), [10868, 32626, 3]),
    (scenario, Shape::Chain(2), Demand, (1, 3, 0, 1, 0, 0), [20511, 87400, 2]),
    (scenario, Shape::Chain(1), Demand, (1, 3, 0, 1, 1, 0), [5694, 22787, 4]),
    (scenario, Shape::Diamond, Eager, (1, 2, 0, 1, 0, 0), [69088, 236_304, 2]),
    (scenario, Shape::Diamond, Demand, (1, 2, 0, 1, 0, 1), [33640, 101_680, 3]),
    (scenario, Shape::Diamond, Demand, (2, 1, 0, 1, 0, 0), [51852, 179_750, 2]),
    (scenario, Shape::Loop, Demand, (1, 2, 1, 1, 0, 0), [93017, 315_071, 2]),
    (still, Shape::Loop, Eager, (1, 2, 1, 1, 0, 1), [69818, 232_743, 3]),
    (still, Shape::Loop, Demand, (2, 1, 1, 1, 0, 1), [44066, 141_539, 3]),
    (scenario, Shape::Chain(1), Demand, (2, 2, 0, 1, 0, 0), [345_757, 2_009_385, 2]),
    (scenario, Shape::Nested, Eager, (1, 2, 0, 1, 0, 0), [12972, 55012, 2]),
    (still, Shape::Nested, Demand, (1, 2, 1, 1, 0, 0), [373_597, 1_743_245, 2]),
    (scenario, Shape::Nested, Demand, (2, 1, 0, 1, 0, 0), [21867, 89642, 2]),
    (scenario, Shape::Diamond, Demand, (1, 3, 0, 1, 0, 0), [2_272_129, 11_442_753, 2]),
    (still, Shape::Loop, Demand, (1, 3, 1, 1, 0, 0), [1_705_554, 8_459_415, 2]),
    (scenario, Shape::Nested, Demand, (1, 3, 0, 1, 0, 0), [506_267, 3_076_852, 2]),
    (scenario, Shape::Chain(1), Eager, (3, 1, 0, 1, 0, 0), [11578, 52315, 2]),
    (scenario, Shape::Chain(2), Demand, (3, 1, 0, 1, 0, 0), [42280, 185_117, 2]),
    (cut, Shape::Chain(1), Demand, (2, 1, 0, 1, 0, 0), [76862, 267_523, 124]),
    (cut, Shape::Chain(2), Demand, (1, 2, 0, 1, 0, 0), [382_056, 1_422_323, 290]),
    (cut, Shape::Chain(2), Demand, (2, 1, 0, 1, 0, 1), [735_884, 2_763_831, 486]),
    (cut, Shape::Chain(1), Eager, (1, 2, 0, 1, 0, 0), [114_118, 425_797, 152]),
    (cut, Shape::Nested, Demand, (1, 2, 0, 1, 0, 0), [4_432_924, 20_728_465, 772]),
];

fn all_hold(cases: &[Case]) {
    let mut other = Vec::new();
    for (make, shape, mode, bounds, pinned) in cases {
        let explored = explore(&make(*shape, *mode, *bounds));
        let explored =
            explored.unwrap_or_else(|broken| panic!("{shape:?} {mode:?} {bounds:?}: {broken}"));
        let Explored {
            states,
            steps,
            finals,
        } = explored;
        let found = [states, steps, finals];
        println!("{shape:?} {mode:?} {bounds:?}: {found:?}");
        if found != *pinned {
            other.push(format!(
                "{shape:?} {mode:?} {bounds:?}: {found:?} instead of {pinned:?}"
            ));
        }
    }
    assert!(
        other.is_empty(),
        "other states than pinned:\n{}",
        other.join("\n")
    );
}

#[test]
fn frontiers_never_lie_and_become_empty() {
    all_hold(QUICK);
}

/// Minutes, optimised: `make check-deep` runs it.
#[test]
#[ignore = "long: make check-deep runs it"]
fn frontiers_never_lie_in_larger_clusters() {
    all_hold(DEEP);
}

/// Returns the first error that an exploration of the scenario with the flaw finds.
fn caught(flaw: Flaw, scenario: &Scenario) -> Option<Wrong> {
    let sound = explore(scenario);
    assert!(sound.is_ok(), "without {flaw:?}: {}", sound.unwrap_err());
    explore(&Scenario {
        flaw,
        ..scenario.clone()
    })
    .err()
    .map(|broken| broken.what)
}

#[test]
fn a_batch_in_halves_is_caught() {
    for mode in [Eager, Demand] {
        let chain = scenario(Shape::Chain(1), mode, (1, 2, 0, 1, 0, 0));
        assert_eq!(
            caught(Flaw::Halves, &chain),
            Some(Wrong::Passed),
            "{mode:?}"
        );
    }
}

#[test]
fn progress_reported_before_the_action_is_caught() {
    for flaw in [Flaw::Early, Flaw::UseAfterDrop] {
        for mode in [Eager, Demand] {
            let chain = scenario(Shape::Chain(1), mode, (1, 2, 0, 1, 0, 0));
            assert_eq!(
                caught(flaw, &chain),
                Some(Wrong::Passed),
                "{flaw:?}, {mode:?}"
            );
        }
    }
}

#[test]
fn holding_back_too_much_is_caught() {
    let chain = scenario(Shape::Chain(1), Demand, (1, 2, 1, 1, 0, 0));
    let wrong = caught(Flaw::Withholds, &chain);
    assert!(
        matches!(wrong, Some(Wrong::Inexact | Wrong::Stuck)),
        "{wrong:?}"
    );
}

#[test]
fn a_nested_scope_that_holds_back_too_much_is_caught() {
    let nested = scenario(Shape::Nested, Demand, (1, 2, 0, 1, 0, 0));
    assert_eq!(caught(Flaw::Withholds, &nested), Some(Wrong::Inexact));
}

#[test]
fn frames_of_the_combiner_out_of_order_are_caught() {
    let chain = scenario(Shape::Chain(2), Eager, (2, 1, 0, 1, 0, 0));
    assert_eq!(caught(Flaw::Reorders, &chain), Some(Wrong::Passed));
}

#[test]
fn a_nested_scope_that_tells_in_two_parts_is_caught() {
    let nested = scenario(Shape::Nested, Demand, (1, 2, 0, 1, 0, 0));
    assert_eq!(caught(Flaw::TellsLate, &nested), Some(Wrong::Passed));
}

/// The flaw that is found in a scenario which holds without it, as the tables above say.
fn torn(flaw: Flaw, scenario: &Scenario) {
    let found = explore(&Scenario {
        flaw,
        ..scenario.clone()
    });
    let found = found.map_err(|broken| broken.what);
    assert_eq!(found, Err(Wrong::Torn), "{flaw:?}");
}

#[test]
fn a_checkpoint_taken_after_one_round_of_counting_is_caught() {
    torn(
        Flaw::OneRound,
        &cut(Shape::Chain(2), Demand, (1, 2, 0, 1, 0, 0)),
    );
}

#[test]
fn a_worker_that_runs_on_after_its_second_count_is_caught() {
    for processes in [1, 2] {
        let bounds = (processes, 2 / processes, 0, 1, 0, 0);
        torn(Flaw::RunsOn, &cut(Shape::Chain(1), Demand, bounds));
    }
}

#[test]
fn progress_that_is_held_back_during_the_drain_is_caught() {
    for processes in [1, 2] {
        let bounds = (processes, 2 / processes, 0, 1, 0, 0);
        torn(Flaw::Combines, &cut(Shape::Chain(1), Demand, bounds));
    }
}

#[test]
fn a_relay_that_takes_the_later_of_two_frames_first_is_caught() {
    let chain = pairs(Shape::Chain(1), Eager, (2, 1, 0, 1, 0, 0));
    assert_eq!(caught(Flaw::RelayReorders, &chain), Some(Wrong::Passed));
}

#[test]
fn a_relay_that_passes_on_the_progress_of_a_member_twice_is_caught() {
    let chain = one_group(Shape::Chain(1), Demand, (3, 1, 0, 0, 0, 0));
    assert_eq!(caught(Flaw::RelayRepeats, &chain), Some(Wrong::Passed));
}

#[test]
fn a_relay_that_sends_first_what_its_sum_takes_back_is_caught() {
    let chain = pairs(Shape::Chain(1), Eager, (2, 1, 0, 1, 0, 0));
    assert_eq!(caught(Flaw::RelaySplits, &chain), Some(Wrong::Passed));
}

#[test]
fn a_relay_that_sends_members_their_own_progress_is_caught() {
    let chain = pairs(Shape::Chain(1), Demand, (2, 1, 0, 1, 0, 0));
    assert_eq!(caught(Flaw::RelayEchoes, &chain), Some(Wrong::Passed));
}

/// Minutes, optimised or not.
#[test]
#[ignore = "long: make check-deep runs it"]
fn a_checkpoint_taken_while_a_message_waits_in_a_relay_is_caught() {
    torn(
        Flaw::CountsHops,
        &Scenario {
            group: 4,
            ..cut(Shape::Chain(1), Demand, (3, 1, 0, 0, 0, 0))
        },
    );
}
