//! Counts and distinct records where times are totally ordered.
//!
//! Outside of loops the kernel computes each batch's counts from the sums before it: no output is kept for
//! comparison, and no history is replayed. The result is a stream of updates and not an arrangement; where an
//! arrangement is requested, a reduction makes it.
//!
//! Owns the kernel's totals with its reader of the trace.
//!
//! Invariant: as a reduction's, with the same results.
//!
//! Cost: one look at the trace for each key of a batch.

use pointstamp_arrange::Totals;
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_rows::{Cells, RowBuf};

use super::arrange::Arrangement;
use super::checkpoint::keeps_nothing_of_its_own;
use super::fuel::{Allowance, instalment};
use super::memory::caused;
use super::sealed::Sealed;
use super::send;
use super::time::{ScopeTime, frontier_of};
use super::updates::{Builder, Updates};
use crate::Error;
use crate::typed::{Input, Output, Typed};

/// The result for a key's count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Total {
    /// The key, while its count is more than 0.
    Distinct,
    /// The key and its count, unless that is 0.
    Count,
}

impl Arrangement {
    /// Returns the keys' counts, or each present key once, of an arrangement in a scope whose times are
    /// numbers.
    ///
    /// # Errors
    ///
    /// [`Error::NotTotal`] in a scope whose times are not totally ordered; errors of building an operator.
    pub fn totals(&self, total: Total, name: &str) -> Result<Typed<Updates>, Error> {
        let Arrangement::One(arranged) = self else {
            return Err(Error::NotTotal);
        };
        let builder = arranged.stream.scope().operator(name)?;
        let input = Input::new(&builder, &arranged.stream, Pact::Pipeline)?;
        let (output, result) = Output::new(&builder)?;
        builder.notify();
        let activator = builder.activator();
        let is_restored = keeps_nothing_of_its_own(&builder);
        let source = arranged.readers.source()?;
        let mut counting = Counting {
            totals: if is_restored {
                Totals::restored(source)
            } else {
                Totals::new(source)
            },
            makes: total,
            count: RowBuf::default(),
        };
        let mut allowance = Allowance::default();
        builder.build(move || {
            let came = counting.receive(&input)?;
            allowance.spend(came, &activator, || counting.instalment(&output))?;
            Ok(false)
        });
        Ok(result)
    }
}

struct Counting {
    totals: Totals<Cells, Cells, u64, Capability>,
    makes: Total,
    count: RowBuf,
}

impl Counting {
    /// Takes waiting batches, and returns whether there were any.
    fn receive(&mut self, input: &Input<Sealed>) -> Result<bool, BoxError> {
        let mut came = false;
        while let Some((message, batch)) = input.next()? {
            let sealed = u64::unseal(batch)?;
            self.totals.push(&sealed, message.retain(0)?);
            came = true;
        }
        self.totals
            .advance(&frontier_of(input.port().frontier().frontier()));
        Ok(came)
    }

    /// Works for a while and sends the results; returns whether more waits.
    fn instalment(&mut self, output: &Output<Updates>) -> Result<bool, BoxError> {
        let mut fuel = instalment();
        let mut builder = Builder::default();
        let (makes, count) = (self.makes, &mut self.count);
        let step = self.totals.work(&mut fuel, |key, time, before, after| {
            let time = time.point();
            match makes {
                Total::Distinct => {
                    let diff = i64::from(after > 0) - i64::from(before > 0);
                    if diff != 0 {
                        builder.push(key, &time, diff);
                    }
                }
                Total::Count => {
                    for (number, diff) in [(before, -1), (after, 1)] {
                        if number != 0 {
                            builder.push_pair(key, count.int(number), &time, diff);
                        }
                    }
                }
            }
        });
        let step = step.map_err(caused)?;
        let Some(capability) = step.capability() else {
            return Ok(false);
        };
        send(&mut builder, capability, output)?;
        Ok(!self.totals.is_idle())
    }
}
