//! Operators on event time.

use std::sync::Arc;

use pointstamp_engine::error::{BoxError, UserResult};
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
/// [`Error::BeforeMessage`] for a time before the message's; errors of the host.
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
                    send(*time, timed.records().cut(range)?)?;
                }
            }
            Times::Each(times) => {
                let groups = Groups::of(&times.times()?);
                for (time, places) in groups.iter() {
                    for piece in pieces(places.len()) {
                        send(time, chosen(&**timed.records(), &places[piece])?)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Returns the elements at places in ascending order: neighbours are copied at once.
fn chosen(column: &dyn HostColumn, places: &[usize]) -> UserResult<Arc<dyn HostColumn>> {
    match (places.first(), places.last()) {
        (Some(&first), Some(&last)) if last - first + 1 == places.len() => {
            column.cut(first..last + 1)
        }
        _ => column.select(places),
    }
}

/// The places of each time, in the order in which the times first come up.
struct Groups {
    /// Each time, and where its places end.
    ends: Vec<(u64, usize)>,
    places: Vec<usize>,
}

impl Groups {
    fn of(times: &[u64]) -> Self {
        // First the number of places of each time, and of each place its group.
        let mut ends: Vec<(u64, usize)> = Vec::new();
        let mut index = FxHashMap::default();
        let mut last = 0; // neighbours often share a time
        let group_of: Vec<usize> = times
            .iter()
            .map(|&time| {
                if ends.get(last).is_none_or(|(at, _)| *at != time) {
                    last = *index.entry(time).or_insert(ends.len());
                    if last == ends.len() {
                        ends.push((time, 0));
                    }
                }
                ends[last].1 += 1;
                last
            })
            .collect();
        let mut start = 0;
        for (_, end) in &mut ends {
            (start, *end) = (start + *end, start);
        }
        let mut places = vec![0; times.len()];
        for (place, group) in group_of.into_iter().enumerate() {
            let end = &mut ends[group].1;
            places[*end] = place;
            *end += 1;
        }
        Groups { ends, places }
    }

    fn iter(&self) -> impl Iterator<Item = (u64, &[usize])> {
        let mut start = 0;
        self.ends.iter().map(move |&(time, end)| {
            let places = &self.places[start..end];
            start = end;
            (time, places)
        })
    }
}
