//! Variances and standard deviations of the values of keys.
//!
//! Invariant: the result does not depend on the order in which values came; they are added up in the order of rows.
//!
//! Cost: two passes over the values of a key, without an allocation.

use pointstamp_arrange::{Lists, Reducer as Kernel};
use pointstamp_rows::{Cells, RowBuf};

use super::reduction::Done;

/// A reducer to the variance of numbers, or to its square root.
pub(super) struct Variance {
    /// True for the variance of a sample, which is divided by the number of values less one.
    pub(super) sample: bool,
    /// True for the standard deviation.
    pub(super) root: bool,
}

impl Kernel<Cells, Cells, Cells> for Variance {
    #[allow(
        clippy::cast_precision_loss,
        reason = "counts of values are divisors of doubles"
    )]
    fn reduce(&mut self, _: &Cells, inputs: &Lists<Cells>, outputs: &mut Lists<Cells>) -> Done {
        let mut row = RowBuf::default();
        for index in 0..inputs.len() {
            let values = || {
                let there = inputs.list(index);
                there.filter_map(|(value, diff)| Some((value.real()?, diff as f64)))
            };
            let count: f64 = values().map(|(_, times)| times).sum();
            let divisor = if self.sample { count - 1.0 } else { count };
            if divisor > 0.0 {
                let mean = values().map(|(value, times)| value * times).sum::<f64>() / count;
                let squares = values().map(|(value, times)| (value - mean).powi(2) * times);
                let variance = squares.sum::<f64>() / divisor;
                let made = if self.root { variance.sqrt() } else { variance };
                outputs.push(row.float(made), 1);
            }
            outputs.end();
        }
        Ok(())
    }
}
