//! The effort of property tests: `POINTSTAMP_EFFORT` times as long as in `make test`.
//!
//! Their examples are the same each time: `.cargo/config.toml` gives proptest a seed, and `make check-deep` another.

use proptest::test_runner::Config;

/// The settings of a property test of so many cases, times `POINTSTAMP_EFFORT` where that is set (`make check-deep`): at least
/// one case. A fraction looks for less long than `make test`, as mutation testing does.
///
/// # Panics
///
/// If `POINTSTAMP_EFFORT` is not a positive number.
#[must_use]
pub fn cases(count: u32) -> Config {
    Config::with_cases(times(
        count,
        std::env::var("POINTSTAMP_EFFORT").as_deref().unwrap_or("1"),
    ))
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a conversion from a positive float saturates"
)]
fn times(count: u32, effort: &str) -> u32 {
    let number = effort.parse::<f64>().ok();
    let number = number
        .filter(|&number| number > 0.0)
        .unwrap_or_else(|| panic!("POINTSTAMP_EFFORT is a positive number, not {effort:?}"));
    ((f64::from(count) * number).ceil() as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::{cases, times};
    use proptest::prelude::any;
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::test_runner::{RngSeed, TestRunner};

    #[test]
    fn an_effort_may_be_a_fraction() {
        assert_eq!(
            [times(256, "1"), times(256, "20"), times(256, "0.05")],
            [256, 5120, 13]
        );
        assert_eq!([times(4, "0.001"), times(u32::MAX, "2")], [1, u32::MAX]);
    }

    #[test]
    #[should_panic(expected = "POINTSTAMP_EFFORT is a positive number, not \"-1\"")]
    fn an_effort_is_positive() {
        times(1, "-1");
    }

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
