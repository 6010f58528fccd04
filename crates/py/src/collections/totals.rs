//! Counts and distinct records where times are totally ordered.
//!
//! Outside of loops the kernel follows each batch's counts from what was there before it: no output is kept to be compared
//! with, and no history is replayed. The result is a stream of updates and not an arrangement; where one is asked for, a
//! reduction makes it.

use pointstamp_arrange::Totals;
use pointstamp_engine::capability::Capability;
use pointstamp_engine::error::BoxError;
use pointstamp_engine::pact::Pact;
use pointstamp_engine::port::{InputPort, OutputPort};
use pyo3::prelude::*;

use super::arrange::{Arrangement, ByTime, sealed_of};
use super::fuel::{Allowance, instalment};
use super::send;
use super::time::{ScopeTime, frontier_of};
use super::updates::Builder;
use crate::batch::Batch;
use crate::errors::{GraphError, IntoException};
use crate::kinds::Reduction;
use crate::stream::Stream;
use pointstamp_rows::{Cells, RowBuf};

/// What becomes of a count.
#[derive(Clone, Copy)]
enum Makes {
    /// The key, while its count is more than 0.
    Distinct,
    /// The key and its count, unless that is 0.
    Counts,
}

/// The counts of an arrangement's keys, or each key that is there once, in a scope of one coordinate.
#[pyfunction]
pub(crate) fn total_updates(
    arrangement: &Arrangement,
    kind: Reduction,
    name: &str,
) -> PyResult<Stream> {
    let refused = IntoException::into_exception;
    let makes = match kind {
        Reduction::Distinct => Makes::Distinct,
        Reduction::Count | Reduction::CountByKey => Makes::Counts,
        _ => {
            return Err(GraphError::new_err(format!(
                "{} is no function of a count",
                kind.label()
            )));
        }
    };
    let ByTime::One(arranged) = arrangement.inner.get()? else {
        return Err(GraphError::new_err(
            "totals are for scopes whose times are numbers: reduce the arrangement",
        ));
    };
    let builder = arranged.stream.scope().operator(name).map_err(refused)?;
    let input = builder
        .new_input(&arranged.stream, Pact::Pipeline)
        .map_err(refused)?;
    let (output, result) = builder.new_output().map_err(refused)?;
    builder.notify();
    let activator = builder.activator();
    let mut counting = Counting {
        totals: Totals::new(arranged.readers.source()?),
        makes,
        count: RowBuf::default(),
    };
    let mut allowance = Allowance::default();
    builder.build(move || {
        let came = counting.receive(&input)?;
        allowance.spend(came, &activator, || counting.instalment(&output))?;
        Ok(false)
    });
    Ok(Stream::plain(arrangement.inner.home(), result))
}

struct Counting {
    totals: Totals<Cells, Cells, u64, Capability>,
    makes: Makes,
    count: RowBuf,
}

impl Counting {
    /// Takes what has come; whether something has.
    fn receive(&mut self, input: &InputPort<Batch>) -> Result<bool, BoxError> {
        let mut came = false;
        while let Some((message, batch)) = input.next()? {
            let sealed = sealed_of::<u64>(&batch);
            self.totals.push(&sealed, message.retain(0)?);
            came = true;
        }
        self.totals
            .advance(&frontier_of(input.frontier().frontier()));
        Ok(came)
    }

    /// Works for a while and sends what comes of it; whether more waits.
    fn instalment(&mut self, output: &OutputPort<Batch>) -> Result<bool, BoxError> {
        let mut fuel = instalment();
        let mut builder = Builder::default();
        let (makes, count) = (self.makes, &mut self.count);
        let step = self.totals.work(&mut fuel, |key, time, before, after| {
            let time = time.point();
            match makes {
                Makes::Distinct => {
                    let diff = i64::from(after > 0) - i64::from(before > 0);
                    if diff != 0 {
                        builder.push(key, &time, diff);
                    }
                }
                Makes::Counts => {
                    for (number, diff) in [(before, -1), (after, 1)] {
                        if number != 0 {
                            builder.push_pair(key, count.int(number), &time, diff);
                        }
                    }
                }
            }
        })?;
        let Some(capability) = step.capability() else {
            return Ok(false);
        };
        send(&mut builder, capability, output)?;
        Ok(!self.totals.is_idle())
    }
}
