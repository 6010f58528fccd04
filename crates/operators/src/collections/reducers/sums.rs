//! Sums and means of numbers.
//!
//! Integers add up exactly, and floats as floats; the host ([`Exotic`]) adds up numbers that are neither (large integers,
//! decimals, fractions). In columns of floats integers stand for the floats that they equal.
//!
//! Invariant: sums here equal the host's; sums that could differ (an integer that a float does not hold, a sum beyond
//! 64 bits) are left to the host.
//!
//! Cost: linear in the values of a key, without an allocation.

use std::rc::Rc;

use pointstamp_arrange::{Error, Lists, Reducer};
use pointstamp_rows::terms::Plain;
use pointstamp_rows::{Cells, RowBuf};

use crate::collections::exotic::Exotic;

/// The sum of numbers, or their mean.
pub(super) struct Sum {
    mean: bool,
    /// Whether the values are of a column of floats, in whose rows integers replace the floats that they
    /// equal.
    floats: bool,
    name: String,
    exotic: Rc<dyn Exotic>,
}

impl Reducer<Cells, Cells, Cells> for Sum {
    fn reduce(
        &mut self,
        _: &Cells,
        inputs: &Lists<Cells>,
        outputs: &mut Lists<Cells>,
    ) -> Result<(), Error> {
        let mut row = RowBuf::default();
        for index in 0..inputs.len() {
            let there = self.plain(inputs, index, &mut row);
            let there = if let Some(there) = there.or_else(|| self.real(inputs, index, &mut row)) {
                there
            } else {
                let values = &mut inputs.list(index);
                let summed = self.exotic.sum(&self.name, values, self.mean, &mut row);
                summed.map_err(Error::Caller)?
            };
            if there {
                outputs.push(row.get(), 1);
            }
            outputs.end();
        }
        Ok(())
    }
}

impl Sum {
    pub(super) fn new(name: &str, exotic: &Rc<dyn Exotic>, mean: bool, floats: bool) -> Self {
        Sum {
            mean,
            floats,
            name: name.to_owned(),
            exotic: Rc::clone(exotic),
        }
    }

    /// Adds integers and floats up; nothing where there are others, or they grow too large. Whether there is a result.
    fn plain(&self, inputs: &Lists<Cells>, index: usize, row: &mut RowBuf) -> Option<bool> {
        let (mut whole, mut count, mut real, mut is_real) = (0_i128, 0_i128, 0.0_f64, false);
        for (value, diff) in inputs.list(index) {
            count += i128::from(diff);
            match value.number()? {
                // A product of two words fits into two; where their sum does not, the interpreter adds up.
                Plain::Int(value) => {
                    whole = whole.checked_add(i128::from(value) * i128::from(diff))?;
                }
                Plain::Wide(_) => return None,
                Plain::Float(value) => {
                    is_real = true;
                    #[allow(clippy::cast_precision_loss, reason = "as Python multiplies")]
                    let times = diff as f64;
                    real += value * times;
                }
            }
        }
        #[allow(
            clippy::cast_precision_loss,
            reason = "checked to be exact, or as Python adds"
        )]
        if self.mean {
            if count == 0 {
                return Some(false);
            }
            let exact = whole.unsigned_abs() < 1 << 53 && count.unsigned_abs() < 1 << 53;
            if !exact {
                return None;
            }
            let mean = (real + whole as f64) / count as f64;
            if self.floats && !mean.is_finite() {
                return None; // the sum may be greater than all floats and the mean is not
            }
            row.float(mean);
        } else if is_real {
            if whole.unsigned_abs() >= 1 << 53 {
                return None;
            }
            row.float(real + whole as f64);
        } else {
            row.int(i64::try_from(whole).ok()?);
        }
        Some(true)
    }

    /// Adds up a column of floats, as floats; `None` for other columns, and where there are nulls.
    #[allow(clippy::cast_precision_loss, reason = "as Python multiplies")]
    fn real(&self, inputs: &Lists<Cells>, index: usize, row: &mut RowBuf) -> Option<bool> {
        if !self.floats {
            return None;
        }
        let values = (inputs.list(index)).map(|(value, diff)| Some((value.real()?, diff as f64)));
        let values = values.collect::<Option<Vec<_>>>()?;
        let count: f64 = values.iter().map(|(_, times)| times).sum();
        let sum: f64 = values.iter().map(|(value, times)| value * times).sum();
        if !self.mean {
            row.float(sum);
            return Some(true);
        }
        if count == 0.0 {
            return Some(false);
        }
        let mean = sum / count;
        row.float(if mean.is_finite() {
            mean
        } else {
            // The mean is among the values, where their sum may be greater than all floats.
            values
                .iter()
                .map(|(value, times)| value * (times / count))
                .sum()
        });
        Some(true)
    }
}
