//! Progress of the workers of a process, combined before it goes to the others: its parts and its moments.

#[path = "support/nodes.rs"]
mod nodes;
#[path = "support/numbers.rs"]
mod numbers;

use std::time::{Duration, Instant};

use pointstamp_channels::{ChannelId, Combined, Fabric, LINGER, Mailbox, Ring};

use nodes::{ID, LONG, Node, close, patient_cluster, receive};
use numbers::Sum;

/// Starts a process of three workers, and one that listens.
fn combining(linger: Duration) -> (Vec<Node>, Vec<Combined<Sum>>) {
    let nodes = patient_cluster(2, 3, linger);
    let open = |worker| nodes[0].fabric.open_combined::<Sum>(worker, ID).unwrap().0;
    let senders = (0..3).map(open).collect();
    (nodes, senders)
}

/// A step of a worker, in which it says a number.
fn speak(fabric: &Fabric, worker: usize, sender: &Combined<Sum>, number: i64) {
    fabric.step_begins(worker);
    sender.push(Sum(number));
    fabric.step_ended(worker);
}

fn frames(nodes: &[Node]) -> u64 {
    nodes[0].fabric.traffic().progress_frames
}

#[test]
fn workers_in_a_step_send_one_frame_together() {
    let (nodes, senders) = combining(LONG);
    let fabric = &nodes[0].fabric;
    let (_, receiver) = nodes[1].fabric.open_combined::<Sum>(3, ID).unwrap();
    fabric.step_begins(0);
    fabric.step_begins(1);
    fabric.step_begins(2);
    senders[0].push(Sum(1));
    fabric.step_ended(0);
    senders[1].push(Sum(20));
    fabric.step_ended(1);
    assert_eq!(frames(&nodes), 0);
    senders[2].push(Sum(300));
    fabric.step_ended(2);
    assert_eq!(frames(&nodes), 1);
    assert_eq!(receive(&nodes[1].mailboxes[0], &receiver), Sum(321));
    close(&nodes);
}

#[test]
fn a_worker_that_sleeps_is_not_waited_for() {
    let (nodes, senders) = combining(LONG);
    let fabric = &nodes[0].fabric;
    assert_eq!(fabric.parks(1), None);
    assert_eq!(fabric.parks(2), None);
    speak(fabric, 0, &senders[0], 1);
    assert_eq!(frames(&nodes), 1);
    // It has been rung: it is about to say something.
    fabric.doorbell(1).ring(Ring::Activate(0));
    speak(fabric, 0, &senders[0], 1);
    assert_eq!(frames(&nodes), 1);
    assert!(
        fabric.parks(0).is_some(),
        "the first one sleeps for a moment"
    );
    fabric.woke(1);
    for sent in [1, 2] {
        fabric.step_begins(1);
        fabric.step_ended(1);
        assert_eq!(
            frames(&nodes),
            sent,
            "it receives in one step and acts in another"
        );
    }
    close(&nodes);
}

#[test]
fn who_was_waited_for_in_vain_is_not_waited_for_again_before_he_steps() {
    let (nodes, senders) = combining(LONG);
    let fabric = &nodes[0].fabric;
    assert_eq!(fabric.parks(2), None);
    let spoken = || {
        speak(fabric, 0, &senders[0], 1);
        frames(&nodes)
    };
    assert_eq!(spoken(), 0, "worker 1 is awake, and may speak");
    fabric.flush(); // as when the time is over
    assert_eq!(spoken(), 2);
    assert_eq!(spoken(), 3);
    fabric.step_begins(1);
    assert_eq!(spoken(), 3);
    assert_eq!(fabric.parks(1), None);
    assert_eq!(frames(&nodes), 4);
    close(&nodes);
}

#[test]
fn workers_of_a_later_process_are_known_by_their_numbers() {
    let nodes = patient_cluster(2, 3, LONG);
    let fabric = &nodes[1].fabric;
    let open = |worker| fabric.open_combined::<Sum>(worker, ID).unwrap().0;
    let senders: Vec<_> = (3..6).map(open).collect();
    assert!(senders.iter().all(Combined::is_remote));
    assert_eq!((fabric.peers(), fabric.here()), (6, 3..6));
    assert_eq!(fabric.transport().unwrap().process(), 1);
    let sent = || fabric.traffic().progress_frames;
    assert_eq!((fabric.parks(4), fabric.parks(5)), (None, None));
    speak(fabric, 3, &senders[0], 1);
    assert_eq!(sent(), 1, "the others sleep");
    fabric.woke(5);
    speak(fabric, 3, &senders[0], 1);
    assert_eq!(sent(), 1, "one is awake");
    assert!(fabric.parks(3).is_some());
    assert_eq!((fabric.parks(5), sent()), (None, 2));
    fabric.doorbell(4).ring(Ring::Activate(7));
    assert!(
        nodes[1]
            .mailboxes
            .iter()
            .map(Mailbox::is_empty)
            .eq([true, false, true])
    );
    close(&nodes);
}

#[test]
fn a_message_of_another_channel_makes_nobody_waited_for_again() {
    let (nodes, senders) = combining(LONG);
    let fabric = &nodes[0].fabric;
    let other = ChannelId { channel: 10, ..ID };
    let (second, _) = fabric.open_combined::<Sum>(1, other).unwrap();
    assert_eq!(fabric.parks(2), None);
    speak(fabric, 0, &senders[0], 1);
    fabric.step_begins(1);
    second.push(Sum(1));
    assert_eq!(frames(&nodes), 0);
    fabric.step_ended(1);
    assert_eq!(frames(&nodes), 2, "worker 0 has said what it had to say");
    close(&nodes);
}

#[test]
fn within_one_process_nothing_is_combined() {
    let (fabric, _mailboxes) = Fabric::in_process(2, 1 << 20);
    let (sender, own) = fabric.open_combined::<Sum>(0, ID).unwrap();
    let (_, receiver) = fabric.open_combined::<Sum>(1, ID).unwrap();
    assert!(!sender.is_remote());
    sender.push(Sum(5));
    assert_eq!(receiver.pop().unwrap(), Some(Sum(5)));
    assert_eq!(own.pop().unwrap(), None);
}

#[test]
fn what_waits_is_sent_although_no_worker_comes_back() {
    let (nodes, senders) = combining(LINGER);
    let fabric = &nodes[0].fabric;
    // The thread that sends may be about to sleep, or asleep.
    for round in 1..=20 {
        std::thread::sleep(2 * LINGER);
        fabric.step_begins(0);
        fabric.step_begins(1);
        senders[0].push(Sum(1));
        std::thread::sleep(LINGER / 2);
        fabric.step_ended(0);
        while frames(&nodes) < round {
            std::thread::yield_now();
        }
    }
    close(&nodes);
}

#[test]
fn nothing_waits_for_ever_for_a_worker_in_a_long_step() {
    let (nodes, senders) = combining(Duration::from_millis(300));
    let fabric = &nodes[0].fabric;
    fabric.step_begins(1);
    speak(fabric, 0, &senders[0], 1);
    if let Some(until) = fabric.parks(0) {
        while Instant::now() < until {
            std::thread::yield_now();
        }
        fabric.woke(0);
    }
    // The thread that sends where no worker does may just be doing it.
    while frames(&nodes) == 0 {
        std::thread::yield_now();
    }
    close(&nodes);
}

#[test]
fn what_cancels_is_not_sent() {
    let (nodes, senders) = combining(LONG);
    let fabric = &nodes[0].fabric;
    fabric.step_begins(0);
    fabric.step_begins(1);
    assert_eq!(fabric.parks(2), None);
    senders[0].push(Sum(1));
    fabric.step_ended(0);
    senders[1].push(Sum(-1));
    assert_eq!(fabric.parks(1), None);
    fabric.woke(1);
    assert_eq!(frames(&nodes), 0);
    speak(fabric, 0, &senders[0], 7);
    assert_eq!(fabric.parks(1), None);
    assert_eq!(frames(&nodes), 1);
    close(&nodes);
}
