//! The rows of a batch by worker.
//!
//! A batch whose rows all belong to one part is passed on unchanged. For others, one pass counts and orders the rows
//! by their part, and each part is then gathered once, in the rows' order. Cost: linear in the rows and parts.

use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;
use pointstamp_order::worker_of_hash;

use crate::column_hash::hash_rows;
use crate::error::Error;
use crate::pieces::slices;
use crate::schema::project;

/// Splits a batch by the hash of its key columns; calls `emit` with each part that has rows.
///
/// # Errors
///
/// [`Error::Unhashable`] for a key column that cannot be hashed, and an error of a kernel.
pub fn partition(
    batch: &RecordBatch,
    key: &[usize],
    parts: usize,
    emit: impl FnMut(usize, RecordBatch),
) -> Result<(), Error> {
    partition_by(batch, key, parts, |_| (), emit)
}

/// Splits a batch by the key groups of its key columns, of which each part has a range; else as [`partition`].
///
/// # Errors
///
/// As [`partition`].
pub fn partition_by_group(
    batch: &RecordBatch,
    key: &[usize],
    parts: usize,
    emit: impl FnMut(usize, RecordBatch),
) -> Result<(), Error> {
    let places = |hashes: &mut [u64]| {
        for hash in hashes {
            *hash = worker_of_hash(*hash, parts) as u64;
        }
    };
    partition_by(batch, key, parts, places, emit)
}

/// Splits a batch by the hash of its key columns, after a change of the hashes.
fn partition_by(
    batch: &RecordBatch,
    key: &[usize],
    parts: usize,
    change: impl Fn(&mut [u64]),
    mut emit: impl FnMut(usize, RecordBatch),
) -> Result<(), Error> {
    if batch.num_rows() == 0 {
        return Ok(());
    }
    if parts == 1 {
        emit(0, batch.clone());
        return Ok(());
    }
    for piece in slices(batch) {
        let mut hashes = hash_rows(&project(&piece, key))?;
        change(&mut hashes);
        partition_piece(&piece, &hashes, parts, &mut emit)?;
    }
    Ok(())
}

fn partition_piece(
    batch: &RecordBatch,
    hashes: &[u64],
    parts: usize,
    emit: &mut impl FnMut(usize, RecordBatch),
) -> Result<(), Error> {
    if let Some(part) = only_part(hashes, parts as u64) {
        emit(part, batch.clone());
        return Ok(());
    }
    let (starts, rows) = order_by_part(hashes, parts);
    let rows = UInt32Array::from(rows);
    for (part, bounds) in starts.windows(2).enumerate() {
        let (start, end) = (bounds[0], bounds[1]);
        if start < end {
            emit(
                part,
                take_record_batch(batch, &rows.slice(start, end - start))?,
            );
        }
    }
    Ok(())
}

/// The part that all rows belong to, if there is one. Of rows that are mixed, this looks at few.
#[allow(
    clippy::cast_possible_truncation,
    reason = "parts are below their number"
)]
fn only_part(hashes: &[u64], parts: u64) -> Option<usize> {
    let first = *hashes.first()?;
    let alone = if parts.is_power_of_two() {
        // Without a branch for each row, so that it is done for several at once.
        let differ = |stretch: &[u64]| stretch.iter().fold(0, |bits, hash| bits | (hash ^ first));
        hashes
            .chunks(256)
            .all(|stretch| differ(stretch) & (parts - 1) == 0)
    } else {
        hashes.iter().all(|hash| hash % parts == first % parts)
    };
    alone.then_some((first % parts) as usize)
}

/// The number of ranges of a batch that are processed side by side.
const LANES: usize = 4;

/// The rows in the order of their parts, and where each part begins (and the last one ends).
///
/// A row's slot is the slot of its part's last row, plus one: rows of one part wait for each other. So the batch is
/// processed in several ranges at once, each with slots of its own, which takes half of the time.
#[allow(
    clippy::cast_possible_truncation,
    reason = "parts are below their number, and a piece has fewer than 2^32 rows"
)]
fn order_by_part(hashes: &[u64], parts: usize) -> (Vec<usize>, Vec<u32>) {
    if parts == 2 {
        return order_by_bit(hashes);
    }
    let place: Vec<u32> = if parts.is_power_of_two() {
        let mask = parts as u64 - 1;
        hashes.iter().map(|hash| (hash & mask) as u32).collect()
    } else {
        hashes
            .iter()
            .map(|hash| (hash % parts as u64) as u32)
            .collect()
    };
    let length = place.len().div_ceil(LANES).max(1);
    // next[lane * parts + part]: first how many rows the lane has, then the slot of the next one.
    let mut next = vec![0_usize; LANES * parts];
    for (lane, places) in place.chunks(length).enumerate() {
        for &part in places {
            next[lane * parts + part as usize] += 1;
        }
    }
    let mut starts = Vec::with_capacity(parts + 1);
    let mut slot = 0;
    for part in 0..parts {
        starts.push(slot);
        for lane in 0..LANES {
            slot += std::mem::replace(&mut next[lane * parts + part], slot);
        }
    }
    starts.push(slot);
    let mut rows = vec![0_u32; place.len()];
    for at in 0..length {
        for lane in 0..LANES {
            let row = lane * length + at;
            let Some(&part) = place.get(row) else { break };
            let slot = &mut next[lane * parts + part as usize];
            rows[*slot] = row as u32;
            *slot += 1;
        }
    }
    (starts, rows)
}

/// Orders as [`order_by_part`] does, for two parts: the two slots stay in registers, which is several times
/// as fast.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a piece has fewer than 2^32 rows"
)]
fn order_by_bit(hashes: &[u64]) -> (Vec<usize>, Vec<u32>) {
    let odd: usize = hashes.iter().map(|hash| (hash & 1) as usize).sum();
    let even = hashes.len() - odd;
    let mut rows = vec![0_u32; hashes.len()];
    let (mut to_even, mut to_odd) = (0, even);
    for (row, hash) in hashes.iter().enumerate() {
        let bit = (hash & 1) as usize;
        rows[if bit == 1 { to_odd } else { to_even }] = row as u32;
        to_odd += bit;
        to_even += 1 - bit;
    }
    (vec![0, even, hashes.len()], rows)
}
