//! The number of comparisons of a search.

use std::cell::Cell;

use pointstamp_arrange::seek_by;
use pointstamp_testkit::cases;
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_search_costs_the_logarithm_of_the_distance(
        start in 0..1000usize,
        bits in 0..40u32,
        distance in any::<u64>(),
        after in 0..1000usize,
    ) {
        let distance = usize::try_from(distance >> (63 - bits)).unwrap();
        let (found, looked_at) = (start + distance, Cell::new(0));
        let before = |index: usize| {
            looked_at.set(looked_at.get() + 1);
            index < found
        };
        prop_assert_eq!(seek_by(start..found + after, before), found);
        prop_assert!(looked_at.get() <= 2 * (bits + 1) + 2, "{} for {distance}", looked_at.get());
    }
}
