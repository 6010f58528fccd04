//! How long property tests look: `POINTSTAMP_EFFORT` times as long as in `make test`.
//!
//! What they look at is the same each time: `.cargo/config.toml` gives proptest a seed, and `make check-deep` another.

use proptest::test_runner::Config;

/// The settings of a property test of so many cases, times `POINTSTAMP_EFFORT` where that is set (`make check-deep`).
///
/// # Panics
///
/// If `POINTSTAMP_EFFORT` is not a positive number.
#[must_use]
pub fn cases(count: u32) -> Config {
    let effort = std::env::var("POINTSTAMP_EFFORT").map_or(1, |text| {
        text.parse::<u32>()
            .ok()
            .filter(|&effort| effort > 0)
            .unwrap_or_else(|| panic!("POINTSTAMP_EFFORT is a positive number, not {text:?}"))
    });
    Config::with_cases(count.saturating_mul(effort))
}

#[cfg(test)]
mod tests {
    use super::cases;
    use proptest::prelude::any;
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::{RngSeed, TestRunner};

    #[test]
    fn every_run_draws_the_same() {
        assert_ne!(
            cases(1).rng_seed,
            RngSeed::Random,
            "cargo reads .cargo/config.toml where it is called from below"
        );
        let draw = || {
            let mut runner = TestRunner::new(cases(1));
            let tree = any::<[u64; 4]>().new_tree(&mut runner);
            tree.expect("any array will do").current()
        };
        assert_eq!(draw(), draw());
    }
}
