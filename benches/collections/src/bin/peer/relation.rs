//! Relations as files of numbers.

use std::fs::read_to_string;

/// A share of the lines of a relation, as numbers.
pub fn relation(folder: &str, name: &str, share: f64) -> Vec<Vec<u32>> {
    let text = read_to_string(format!("{folder}/{name}.txt")).expect("a relation");
    let lines: Vec<&str> = text.lines().collect();
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )]
    let kept = ((lines.len() as f64 * share) as usize).max(1);
    let numbers = |line: &&str| {
        line.split(',')
            .map(|part| part.parse().expect("a number"))
            .collect()
    };
    lines[..kept].iter().map(numbers).collect()
}
