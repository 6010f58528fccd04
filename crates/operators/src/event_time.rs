//! Operators on event time.

use std::sync::Arc;

use pointstamp_engine::error::BoxError;
use pointstamp_order::{PartialOrder, Point};
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::host::{HostBatch, HostColumn};
use crate::timed::{Timed, Times, pieces};
use crate::typed::{Input, Output};

/// Sends the records of batches at their own times, as an operator's logic. Records of one time stay in their order.
///
/// The host's times become numbers here, once for a batch. The cost of records that share a time is one copy of their
/// column, of others a look-up and a copy for each record, and a message for each time.
///
/// # Errors
///
/// [`Error::BeforeMessage`] for a time before the message's; those of the host.
pub fn at_own_times(
    input: &Input<Timed>,
    output: &Output<Arc<dyn HostBatch>>,
) -> Result<(), BoxError> {
    while let Some((capability, timed)) = input.next()? {
        let from = capability.time();
        let send = |time: u64, records: Arc<dyn HostColumn>| {
            let time = Point::new(&[time]);
            if !from.less_equal(&time) {
                let from = from.clone();
                return Err(Error::BeforeMessage { time, from }.into());
            }
            if time == *from {
                output.send(&capability, records)
            } else {
                output.send(&capability.delayed(&time, 0)?, records)
            }
        };
        match timed.times() {
            Times::All(time) => {
                for range in pieces(timed.len()) {
                    send(*time, timed.records().slice(range)?)?;
                }
            }
            Times::Each(times) => {
                for (time, places) in grouped(&times.times()?) {
                    for range in pieces(places.len()) {
                        send(time, timed.records().select(&places[range])?)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Returns the places of each time, in the order in which the times first come up.
fn grouped(times: &[u64]) -> Vec<(u64, Vec<usize>)> {
    let mut groups: Vec<(u64, Vec<usize>)> = Vec::new();
    let mut index = FxHashMap::default();
    let mut last = 0; // neighbours often share a time
    for (place, &time) in times.iter().enumerate() {
        if groups.get(last).is_none_or(|(at, _)| *at != time) {
            last = *index.entry(time).or_insert_with(|| {
                groups.push((time, Vec::new()));
                groups.len() - 1
            });
        }
        groups[last].1.push(place);
    }
    groups
}
