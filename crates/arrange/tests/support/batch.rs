//! Invariants of every batch.

use pointstamp_arrange::{Batch, Page, Rows, Time};

/// Checks that a batch is consistent.
pub(crate) fn check_batch<K: Rows, V: Rows, T: Time>(batch: &Batch<K, V, T>) {
    let pages = (0..batch.pages()).map(|page| batch.page(page).unwrap());
    let pages: Vec<_> = pages.collect();
    let rows = pages.iter().flat_map(Page::iter);
    let rows: Vec<_> = rows.map(|(k, v, t, d)| ((k, v, t.clone()), d)).collect();
    assert!(
        rows.is_sorted_by(|a, b| a.0 < b.0),
        "in order, each once: {rows:?}"
    );
    let apart = |pair: &[Page<K, V, T>]| {
        let keys = (pair[0].keys(), pair[1].keys());
        K::compare(keys.0.get(keys.0.len() - 1), keys.1.get(0)).is_lt()
    };
    assert!(pages.windows(2).all(apart), "a key is in one page");
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
