//! The examples print the expected output.

use std::process::Command;

/// The lines that an example prints, sorted.
fn lines(arguments: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "pointstamp-net", "--example"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut lines: Vec<_> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}

/// The expected output of so many workers that all greet each other.
fn greetings(workers: usize) -> Vec<String> {
    let mut lines: Vec<_> = (0..workers)
        .flat_map(|to| {
            (0..workers).map(move |from| format!("worker {to} received: hello, {to}, from {from}"))
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn workers_on_threads_greet_each_other() {
    assert_eq!(lines(&["allocate", "--", "threads", "3"]), greetings(3));
}

#[test]
fn workers_in_processes_greet_each_other() {
    assert_eq!(lines(&["allocate", "--", "processes", "3"]), greetings(6));
}
