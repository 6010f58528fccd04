//! Invariants of every batch.

use pointstamp_arrange::{Batch, Rows, Time};

/// Checks that a batch is consistent.
pub(crate) fn check_batch<K: Rows, V: Rows, T: Time>(batch: &Batch<K, V, T>) {
    let rows: Vec<_> = batch
        .iter()
        .map(|(k, v, t, d)| ((k, v, t.clone()), d))
        .collect();
    assert!(
        rows.is_sorted_by(|a, b| a.0 < b.0),
        "in order, each once: {rows:?}"
    );
    assert!(rows.iter().all(|(_, diff)| *diff != 0));
    assert_eq!(rows.len(), batch.len());
    let mut times: Vec<T> = rows.iter().map(|((_, _, time), _)| time.clone()).collect();
    times.sort();
    times.dedup();
    assert_eq!(times, batch.times());
    for time in &times {
        assert!(batch.lower().is_empty() || batch.lower().less_equal(time));
        assert!(!batch.upper().less_equal(time));
    }
}
