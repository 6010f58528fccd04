//! `Sketch`: quantiles of a stream of numbers in bounded memory.
//!
//! A `DDSketch` (Masson, Rim, Lee, 2019): logarithmic buckets, so that a quantile is within one percent of a value that
//! stands there, whatever the numbers are. Two sketches add up to that of both streams. Cost: a logarithm and an addition
//! for each number.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sketches_ddsketch::{Config, DDSketch};

use crate::errors::{CodecError, PointstampError};

/// Counts of numbers in buckets, from which quantiles are read.
#[pyclass(module = "pointstamp._core")]
pub(crate) struct Sketch(DDSketch);

#[pymethods]
impl Sketch {
    /// A sketch of no numbers.
    #[new]
    fn new() -> Self {
        Sketch(DDSketch::new(Config::defaults()))
    }

    /// Adds a number.
    ///
    /// Raises:
    ///     ValueError: If it is not finite.
    fn add(&mut self, number: f64) -> PyResult<()> {
        if !number.is_finite() {
            return Err(PyValueError::new_err(format!(
                "{number} has no place among numbers: a sketch takes finite ones, filter others out before"
            )));
        }
        self.0.add(number);
        Ok(())
    }

    /// The least number that a share of all numbers does not exceed, by nearest rank: within one percent of
    /// one that was added; None without any.
    ///
    /// Raises:
    ///     ValueError: If the share is not from 0 to 1.
    fn quantile(&self, share: f64) -> PyResult<Option<f64>> {
        if !(0.0..=1.0).contains(&share) {
            return Err(PyValueError::new_err(format!(
                "{share} is not a quantile: it is a share, from 0 to 1"
            )));
        }
        // The sketch takes the rank, from 0, for the whole part of its argument times the count less one.
        let at = match (nearest_rank(share, self.0.count()), self.0.count()) {
            (_, 0) => return Ok(None),
            (1, _) => 0.0,
            (rank, count) if rank >= count => 1.0,
            (rank, count) => (exact(rank) - 0.5) / (exact(count) - 1.0),
        };
        self.0
            .quantile(at)
            .map_err(|error| PointstampError::new_err(error.to_string()))
    }

    /// Adds the counts of another sketch.
    fn merge(&mut self, other: &Self) -> PyResult<()> {
        self.0
            .merge(&other.0)
            .map_err(|error| PointstampError::new_err(error.to_string()))
    }

    /// The sketch that `__reduce__` wrote.
    ///
    /// Raises:
    ///     CodecError: For bytes that are no sketch.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        let read = DDSketch::from_java_bytes(bytes);
        read.map(Sketch)
            .map_err(|error| CodecError::new_err(format!("these bytes are no sketch: {error}")))
    }

    /// Pickles the sketch, so that a snapshot can hold it.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = PyBytes::new(slf.py(), &slf.borrow().0.to_java_bytes());
        Ok((slf.get_type().getattr("from_bytes")?, (bytes,)))
    }

    fn __len__(&self) -> usize {
        self.0.count()
    }
}

/// The number of least numbers that are a share of so many: at least one.
fn nearest_rank(share: f64, count: usize) -> usize {
    let exactly = share * exact(count);
    // 0.1 of 30 is 3, and not a little more.
    let whole = exactly.round();
    let rank = if (exactly - whole).abs() <= 1e-9 * exactly {
        whole
    } else {
        exactly.ceil()
    };
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to the count"
    )]
    let rank = rank as usize;
    rank.max(1)
}

fn exact(count: usize) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "no sketch counts 2^52 numbers")]
    let count = count as f64;
    count
}
