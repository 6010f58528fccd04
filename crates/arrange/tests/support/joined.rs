//! The output of a join of two arrangements.

use pointstamp_arrange::{Join, JoinStep, Time, Words};

/// Keys, values of both sides, times and differences.
pub(crate) type Joined<T> = Vec<(u64, u64, u64, T, i64)>;

/// Works on a join, with so much fuel in a step, until it is idle; returns its output.
pub(crate) fn finish<T: Time>(
    join: &mut Join<Words, Words, Words, T, T>,
    fuel: usize,
) -> Joined<T> {
    let mut joined = Vec::new();
    loop {
        let mut fuel = fuel;
        let emit = |key, a, b, time: &T, diff| joined.push((key, a, b, time.clone(), diff));
        if matches!(join.work(&mut fuel, emit).unwrap(), JoinStep::Idle) {
            return joined;
        }
    }
}
