//! How long property tests look: `POINTSTAMP_EFFORT` times as long as in `make test`.

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
