//! Progress of many processes, added up on the way: the sums, their frames, and what counts as in flight.

#[path = "support/nodes.rs"]
mod nodes;
#[path = "support/numbers.rs"]
mod numbers;

use bytes::Bytes;
use pointstamp_channels::{Combined, LINGER, Receiver, Recipient, Transport};

use nodes::{ID, LONG, Node, close, grouped};
use numbers::Sum;

/// The ends of a channel in each process.
type Ends = Vec<(Combined<Sum>, Receiver<Sum>)>;

fn open(nodes: &[Node]) -> Ends {
    let each = nodes.iter().enumerate();
    each.map(|(process, node)| node.fabric.open_combined(process, ID).unwrap())
        .collect()
}

/// A process says a number, in a step of its worker.
fn speak(nodes: &[Node], ends: &Ends, process: usize, number: i64) {
    nodes[process].fabric.step_begins(process);
    ends[process].0.push(Sum(number));
    nodes[process].fabric.step_ended(process);
}

/// Waits until a process has received so much.
fn wait_for(ends: &Ends, process: usize, expected: i64) {
    let mut sum = 0;
    while sum != expected {
        match ends[process].1.pop().unwrap() {
            Some(Sum(number)) => sum += number,
            None => std::thread::yield_now(),
        }
    }
}

fn frames(nodes: &[Node]) -> Vec<u64> {
    let each = nodes.iter();
    each.map(|node| node.fabric.traffic().progress_frames)
        .collect()
}

/// The number of messages in flight: each counts once for every worker that is to get it.
fn in_flight(nodes: &[Node]) -> u64 {
    let tallies = nodes.iter().enumerate();
    let tallies = tallies.map(|(process, node)| node.fabric.tally(process));
    let (sent, taken) = tallies.fold((0, 0), |(sent, taken), tally| {
        (sent + tally.sent, taken + tally.taken)
    });
    sent - taken
}

#[test]
fn every_process_receives_what_each_other_one_says_and_not_its_own() {
    for (processes, group) in [(2, 2), (3, 2), (5, 2), (6, 3), (7, 3), (5, 8)] {
        let nodes = grouped::<Sum>(processes, group, LONG);
        let ends = open(&nodes);
        for round in 0..3 {
            let number = |process: usize| 10_i64.pow(u32::try_from(process).unwrap()) * (round + 1);
            let all: i64 = (0..processes).map(number).sum();
            (0..processes).for_each(|process| speak(&nodes, &ends, process, number(process)));
            for process in 0..processes {
                wait_for(&ends, process, all - number(process));
            }
            assert_eq!(in_flight(&nodes), 0, "{processes} in groups of {group}");
        }
        let groups = processes.div_ceil(group) as u64;
        for (process, frames) in frames(&nodes).into_iter().enumerate() {
            let members = (process + group).min(processes) - process - 1;
            let is_relay = process % group == 0;
            let each = if is_relay {
                groups - 1 + members as u64
            } else {
                1
            };
            assert_eq!(
                frames,
                3 * each,
                "process {process} of {processes} by {group}"
            );
        }
        close(&nodes);
    }
}

#[test]
fn what_waits_in_a_relay_is_in_flight() {
    let nodes = grouped::<Sum>(4, 2, LONG);
    let ends = open(&nodes);
    speak(&nodes, &ends, 1, 5);
    wait_for(&ends, 0, 5);
    assert_eq!(in_flight(&nodes), 2, "processes 2 and 3 are to get it");
    nodes[0].fabric.flush();
    for process in [2, 3] {
        wait_for(&ends, process, 5);
    }
    assert_eq!(in_flight(&nodes), 0);
    close(&nodes);
}

#[test]
fn what_cancels_in_a_relay_is_not_sent_and_not_in_flight() {
    let nodes = grouped::<Sum>(4, 2, LONG);
    let ends = open(&nodes);
    speak(&nodes, &ends, 1, 5);
    wait_for(&ends, 0, 5);
    speak(&nodes, &ends, 0, -5);
    nodes[0].fabric.flush();
    wait_for(&ends, 1, -5);
    assert_eq!(in_flight(&nodes), 0);
    assert_eq!(frames(&nodes), [1, 1, 0, 0], "nothing for process 2");
    // A member gets nothing where the rest has cancelled.
    speak(&nodes, &ends, 2, 7);
    speak(&nodes, &ends, 3, 1);
    wait_for(&ends, 0, 8);
    speak(&nodes, &ends, 0, -8);
    speak(&nodes, &ends, 1, 2);
    wait_for(&ends, 2, 1 - 8 + 2);
    wait_for(&ends, 3, 7 - 8 + 2);
    nodes[0].fabric.flush();
    wait_for(&ends, 0, 2);
    while in_flight(&nodes) > 0 {
        std::thread::yield_now(); // process 1 is told nothing: 8 - 8
    }
    close(&nodes);
}

#[test]
fn what_must_not_wait_goes_through_all_relays_with_what_waits() {
    let nodes = grouped::<Sum>(6, 3, LONG);
    let ends = open(&nodes);
    speak(&nodes, &ends, 1, 1);
    wait_for(&ends, 0, 1);
    ends[2].0.push_at_once(Sum(20));
    wait_for(&ends, 0, 20);
    wait_for(&ends, 1, 20);
    wait_for(&ends, 2, 1);
    for process in 3..6 {
        wait_for(&ends, process, 21);
    }
    assert_eq!(in_flight(&nodes), 0);
    close(&nodes);
}

#[test]
fn what_waits_in_a_relay_is_sent_although_the_others_say_nothing() {
    let nodes = grouped::<Sum>(6, 3, LINGER);
    let ends = open(&nodes);
    for number in 1..=20 {
        for process in [1, 5] {
            speak(&nodes, &ends, process, number);
            for other in (0..6).filter(|&other| other != process) {
                wait_for(&ends, other, number);
            }
        }
    }
    close(&nodes);
}

#[test]
fn workers_that_combine_nothing_by_time_say_everything_by_itself() {
    let nodes = grouped::<Sum>(4, 2, std::time::Duration::ZERO);
    let ends = open(&nodes);
    speak(&nodes, &ends, 3, 1);
    for process in 0..3 {
        wait_for(&ends, process, 1);
    }
    assert_eq!(frames(&nodes), [1, 0, 1, 1]);
    close(&nodes);
}

#[test]
fn a_sum_that_makes_no_sense_ends_the_cluster() {
    let nodes = grouped::<Sum>(3, 3, LONG);
    let (id, count, at_once) = (ID, 1, false);
    let sum = Recipient::Sum { id, count, at_once };
    nodes[1]
        .transport
        .send(0, sum, vec![Bytes::from_static(b"?")]);
    nodes[0]
        .log
        .wait_for("1 lost: process 1 sent progress that makes no sense");
    close(&nodes);
}
