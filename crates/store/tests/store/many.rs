//! Ten thousand checkpoints.

use std::sync::Arc;

use pointstamp_store::{Cloud, Store};

use crate::computation::{Run, all, named, start_again};

#[test]
fn ten_thousand_checkpoints_leave_what_is_kept() {
    let store: Arc<dyn Store> = Arc::new(Cloud::default().client());
    let mut run = Run::start(&store, 3).unwrap();
    let mut most = 0;
    for step in 1..=10_000_u64 {
        run.advance().unwrap();
        run.execution.prune().unwrap();
        if step.is_multiple_of(500) {
            let left = all(&store);
            let mut needed = named(&store);
            needed.insert("head".to_owned());
            assert_eq!(left, needed, "after {step}");
            most = most.max(left.len());
            // Needed bytes are at least a third of all, since sparse packs are written again.
            let manifest = run.execution.base().unwrap();
            let live: u64 = manifest.packs.iter().map(|pack| pack.live).sum();
            let stored: u64 = manifest.packs.iter().map(|pack| pack.stored).sum();
            assert!(live * 3 > stored, "{live} of {stored} bytes are needed");
        }
        if step.is_multiple_of(1000) {
            run = Run::start(&store, 3).unwrap();
            run.execution.prune().unwrap();
        }
    }
    assert!(most < 60, "{most} objects");
    assert_eq!(start_again(&store), 10_000);
}
