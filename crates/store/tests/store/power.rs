//! The power is cut at every call.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pointstamp_store::failing::{Call, Failing, Hook};
use pointstamp_store::{Lies, Local, SimulatedDisk, Store};

use crate::computation::{Run, start_again};

/// The disk at every call, with the number of checkpoints that were answered before.
fn moments(lies: Lies) -> Vec<(SimulatedDisk, u64)> {
    let disk = SimulatedDisk::new(lies);
    let answered = Arc::new(AtomicU64::new(0));
    let moments = Arc::new(Mutex::new(Vec::new()));
    let (seen, known, same) = (moments.clone(), answered.clone(), disk.clone());
    let hook: Hook = Arc::new(move |_: Call, _: &Path| {
        seen.lock()
            .unwrap()
            .push((same.copy(), known.load(Ordering::Relaxed)));
        Ok(())
    });
    let store: Arc<dyn Store> = Arc::new(Local::on(Failing::new(disk, hook), "/a/state"));
    for _ in 0..2 {
        let mut run = Run::start(&store, 2).unwrap();
        run.execution.prune().unwrap();
        for _ in 0..3 {
            answered.store(run.advance().unwrap(), Ordering::Relaxed);
            run.execution.prune().unwrap();
        }
    }
    drop(store);
    std::mem::take(&mut moments.lock().unwrap())
}

fn cut_everywhere(lies: Lies) {
    let moments = moments(lies);
    assert!(moments.len() > 200, "{} calls", moments.len());
    let mut random = fastrand::Rng::with_seed(7);
    for (index, (disk, answered)) in moments.into_iter().enumerate() {
        for way in 0..6 {
            let cut = disk.copy();
            match way {
                0 => cut.cut_power(|| false),
                1 => cut.cut_power(|| true),
                _ => cut.cut_power(|| random.bool()),
            }
            let store: Arc<dyn Store> = Arc::new(Local::on(cut.clone(), "/a/state"));
            let there = start_again(&store);
            assert!(
                answered <= there && there <= answered + 1,
                "call {index}: {answered} were answered, {there} are there"
            );
            // And once more, at once: the start itself was durable.
            cut.cut_power(|| false);
            let store: Arc<dyn Store> = Arc::new(Local::on(cut, "/a/state"));
            assert_eq!(start_again(&store), there);
        }
    }
}

#[test]
fn a_power_cut_loses_nothing_that_was_answered() {
    cut_everywhere(Lies::default());
}

#[test]
fn files_that_are_not_synced_are_found() {
    let lies = Lies {
        files: true,
        folders: false,
    };
    assert!(std::panic::catch_unwind(|| cut_everywhere(lies)).is_err());
}

#[test]
fn folders_that_are_not_synced_are_found() {
    let lies = Lies {
        files: false,
        folders: true,
    };
    assert!(std::panic::catch_unwind(|| cut_everywhere(lies)).is_err());
}
