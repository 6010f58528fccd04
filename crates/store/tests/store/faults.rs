//! Every call of a disk fails, once and for good, because it is full or broken.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pointstamp_store::failing::{Call, Failing, Fault, Hook, Plan};
use pointstamp_store::{Local, SimulatedDisk, Store};

use crate::computation::{Run, start_again};

const STEPS: u64 = 5;

/// Returns the store on a disk whose calls fail as planned, and the number of calls so far.
fn failing(disk: &SimulatedDisk, plan: Plan) -> (Arc<dyn Store>, Arc<AtomicU64>) {
    let calls = Arc::new(AtomicU64::new(0));
    let count = calls.clone();
    let hook: Hook = Arc::new(move |_: Call, _: &Path| {
        let point = count.fetch_add(1, Ordering::Relaxed) + 1;
        plan.fault(point).map_or(Ok(()), Fault::strike)
    });
    (
        Arc::new(Local::on(Failing::new(disk.clone(), hook), "/a/state")),
        calls,
    )
}

/// Runs until all steps are made or `patience` errors came; returns the steps that were answered.
fn run(store: &Arc<dyn Store>, mut patience: u32) -> u64 {
    let mut step = 0;
    while patience > 0 {
        let Ok(mut run) = Run::start(store, 2) else {
            patience -= 1;
            continue;
        };
        assert!(run.step >= step);
        step = run.step;
        while step < STEPS && patience > 0 {
            match run.advance() {
                Ok(made) => step = made,
                Err(_) => patience -= 1,
            }
            if run.execution.prune().is_err() {
                patience = patience.saturating_sub(1);
            }
        }
        if step == STEPS {
            break;
        }
    }
    step
}

#[test]
fn a_call_that_fails_is_made_again_and_nothing_is_lost() {
    let never = Plan {
        fault: Fault::Full,
        at: u64::MAX,
        on: false,
    };
    let (store, calls) = failing(&SimulatedDisk::default(), never);
    assert_eq!(run(&store, 1), STEPS);
    let points = calls.load(Ordering::Relaxed);
    assert!(points > 150, "{points} calls");
    for at in 1..=points {
        for fault in [Fault::Full, Fault::Broken] {
            for on in [false, true] {
                let disk = SimulatedDisk::default();
                let plan = Plan { fault, at, on };
                let (store, _) = failing(&disk, plan);
                let made = run(&store, 4);
                if !on {
                    assert_eq!(made, STEPS, "{plan:?}");
                }
                // Space was freed, the disk was replaced, and the power failed, too.
                disk.cut_power(|| false);
                let mended: Arc<dyn Store> = Arc::new(Local::on(disk, "/a/state"));
                let there = start_again(&mended);
                assert!(
                    made <= there && there <= made + 1,
                    "{plan:?}: {made} were made, {there} are there"
                );
            }
        }
    }
}
