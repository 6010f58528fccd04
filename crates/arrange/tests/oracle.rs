//! The kernel against recomputation from scratch: random updates, batch boundaries, frontiers,
//! compaction by readers and fuel.

mod support;

use pointstamp_arrange::Time;
use pointstamp_testkit::cases;
use proptest::prelude::*;
use support::{Pipeline, Reduction, Script, script};

fn check<T: Time>(script: &Script) {
    for kind in [Reduction::Several, Reduction::Once] {
        let mut pipeline = Pipeline::<T>::new(script, kind);
        pipeline.run();
        pipeline.check();
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn one_coordinate(script in script(1, 4, 80)) {
        check::<u64>(&script);
    }

    #[test]
    fn one_coordinate_as_an_array(script in script(1, 4, 80)) {
        check::<[u64; 1]>(&script);
    }

    #[test]
    fn two_coordinates(script in script(2, 4, 80)) {
        check::<[u64; 2]>(&script);
    }

    #[test]
    fn three_coordinates(script in script(3, 4, 80)) {
        check::<[u64; 3]>(&script);
    }

    #[test]
    fn three_coordinates_as_points(script in script(3, 4, 80)) {
        check::<pointstamp_order::Point>(&script);
    }
}

// One key with a long history, which is then replayed in the order of times.
proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn one_key_in_one_coordinate(script in script(1, 1, 300)) {
        check::<u64>(&script);
    }

    #[test]
    fn one_key_in_two_coordinates(script in script(2, 1, 300)) {
        check::<[u64; 2]>(&script);
    }

    #[test]
    fn one_key_in_three_coordinates(script in script(3, 1, 300)) {
        check::<[u64; 3]>(&script);
    }
}
