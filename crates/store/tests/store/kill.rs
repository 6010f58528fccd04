//! A process is killed at every call, again and again.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use pointstamp_store::disk::Files;
use pointstamp_store::failing::{Failing, Plan};
use pointstamp_store::{Local, Store};

use crate::computation::{Run, start_again};

const FOLDER: &str = "POINTSTAMP_TEST_FOLDER";
const PLAN: &str = "POINTSTAMP_TEST_PLAN";
const STEPS: u64 = 3;

/// Runs the child: some steps from the current position, with a note for each confirmed one.
#[test]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else {
        return;
    };
    let plan: Plan = std::env::var(PLAN).unwrap().parse().unwrap();
    let folder = Path::new(&folder);
    let disk = Failing::new(Files, plan.hook());
    let store: Arc<dyn Store> = Arc::new(Local::on(disk, folder.join("state")));
    let mut run = Run::start(&store, 2).unwrap();
    run.execution.prune().unwrap();
    for _ in 0..STEPS {
        let step = run.advance().unwrap();
        fs::write(folder.join("answered"), step.to_string()).unwrap();
        run.execution.prune().unwrap();
    }
}

/// Runs the child; returns whether it came to its end, and not to the point at which it is killed.
fn spawn(folder: &Path, at: u64) -> bool {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child", "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(PLAN, format!("kill@{at}"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
    assert!(
        child.status.success() || child.status.code().is_none(),
        "{said}"
    );
    assert!(!said.contains("panicked"), "{said}");
    assert!(said.contains("running 1 test"), "{said}");
    child.status.success()
}

fn answered(folder: &Path) -> u64 {
    fs::read_to_string(folder.join("answered")).map_or(0, |text| text.parse().unwrap())
}

fn temporaries(folder: &Path) -> usize {
    let folders = ["state", "state/log", "state/packs"];
    let names = folders
        .iter()
        .filter_map(|name| fs::read_dir(folder.join(name)).ok())
        .flatten();
    let temporary = |entry: std::io::Result<fs::DirEntry>| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.starts_with('.')
    };
    names.map(temporary).filter(|is| *is).count()
}

/// Starts again, and returns the number of steps.
fn check(folder: &Path, at: u64) -> u64 {
    let store: Arc<dyn Store> = Arc::new(Local::new(folder.join("state")));
    let there = start_again(&store);
    let answered = answered(folder);
    assert!(
        answered <= there && there <= answered + 1,
        "killed at {at}: {answered} were answered, {there} are there"
    );
    assert_eq!(temporaries(folder), 0, "killed at {at}");
    there
}

#[test]
fn a_process_that_is_killed_at_any_call_goes_on() {
    let mut killed = 0;
    for at in 1.. {
        let folder = tempfile::tempdir().unwrap();
        if spawn(folder.path(), at) {
            assert_eq!(check(folder.path(), at), STEPS);
            break;
        }
        killed += 1;
        check(folder.path(), at);
    }
    assert!(killed > 80, "killed {killed} times");
}

#[test]
fn a_process_that_is_killed_again_and_again_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    // At each point of a start after the earlier kills, without a clean-up between.
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..60 {
        spawn(folder.path(), random.u64(1..70));
    }
    assert!(check(folder.path(), 0) > 5);
}
