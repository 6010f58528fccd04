//! Processes of workers, joined in memory: destinations of messages, and waiting frames.

#[path = "support/nodes.rs"]
mod nodes;

use bytes::Bytes;
use pointstamp_channels::{ChannelId, Fabric, Farewell, Recipient, Transport};

use nodes::{ID, barrier, close, cluster, receive};

#[test]
fn messages_wait_for_a_worker_that_opens_late() {
    let (fabric, _mailboxes) = Fabric::in_process(2, 1 << 20);
    let (senders, _mine) = fabric.open::<u64>(0, ID).unwrap();
    senders[1].push(5).unwrap();
    let (_, receiver) = fabric.open::<u64>(1, ID).unwrap();
    assert_eq!(fabric.in_flight(), 8);
    assert_eq!(receiver.pop().unwrap(), Some(5));
    assert_eq!(fabric.in_flight(), 0);
    fabric.end_dataflow(0, 0);
    assert_eq!(fabric.channels(), 1);
    fabric.end_dataflow(0, 0); // the same worker: the other still reads
    assert_eq!(fabric.channels(), 1);
    fabric.end_dataflow(1, 0);
    assert_eq!(
        fabric.channels(),
        0,
        "a dataflow that ended leaves nothing behind"
    );
}

#[test]
fn what_a_worker_never_came_for_is_gone_with_its_dataflow() {
    let (fabric, _mailboxes) = Fabric::in_process(2, 1 << 20);
    let (senders, mine) = fabric.open::<u64>(0, ID).unwrap();
    senders[1].push(5).unwrap();
    drop((senders, mine));
    fabric.end_dataflow(0, 0);
    assert_eq!(fabric.in_flight(), 8);
    fabric.end_dataflow(1, 0);
    assert_eq!(fabric.in_flight(), 0);
}

#[test]
fn each_worker_of_each_process_is_reached_by_its_number() {
    let nodes = cluster(3, 2);
    let mut senders = Vec::new();
    let mut receivers = Vec::new();
    for worker in 0..6 {
        let (to_each, receiver) = nodes[worker / 2].fabric.open::<u64>(worker, ID).unwrap();
        assert_eq!(to_each.len(), 6);
        senders.push(to_each);
        receivers.push(receiver);
    }
    for (from, to_each) in senders.iter().enumerate() {
        for (to, sender) in to_each.iter().enumerate() {
            sender.push((10 * from + to) as u64).unwrap();
        }
    }
    for (to, receiver) in receivers.iter().enumerate() {
        let mailbox = &nodes[to / 2].mailboxes[to % 2];
        let mut got: Vec<u64> = (0..6).map(|_| receive(mailbox, receiver)).collect();
        got.sort_unstable();
        let expected: Vec<u64> = (0..6).map(|from| 10 * from + to as u64).collect();
        assert_eq!(got, expected);
    }
    close(&nodes);
    assert_eq!(nodes[0].fabric.traffic().data_frames, 8);
}

#[test]
fn a_broadcast_crosses_once_to_each_process() {
    let nodes = cluster(3, 2);
    let open = |worker: usize| {
        let fabric = &nodes[worker / 2].fabric;
        fabric.open_broadcast::<String>(worker, ID).unwrap()
    };
    let (mut senders, mut receivers): (Vec<_>, Vec<_>) = (0..6).map(open).unzip();
    for sender in senders.swap_remove(3) {
        sender.push("all".to_owned()).unwrap();
    }
    assert_eq!(nodes[1].fabric.traffic().data_frames, 2);
    assert_eq!(nodes[1].fabric.traffic().data_bytes, 6);
    assert_eq!(receivers.remove(3).pop().unwrap(), None);
    for (worker, receiver) in [0, 1, 2, 4, 5].into_iter().zip(&receivers) {
        let mailbox = &nodes[worker / 2].mailboxes[worker % 2];
        assert_eq!(receive(mailbox, receiver), "all");
    }
    close(&nodes);
}

#[test]
fn frames_that_come_early_wait_and_those_that_come_late_are_dropped() {
    let nodes = cluster(2, 2);
    let (senders, mine) = nodes[0].fabric.open::<u64>(0, ID).unwrap();
    for number in 0..3 {
        senders[2].push(number).unwrap();
    }
    barrier(&nodes, 0, 1);
    assert_eq!(nodes[1].fabric.in_flight(), 24);
    // The other worker of the process opens first: it makes the queues of both.
    let (_, other) = nodes[1].fabric.open::<u64>(3, ID).unwrap();
    assert_eq!(other.pop().unwrap(), None);
    senders[2].push(3).unwrap();
    let (_, receiver) = nodes[1].fabric.open::<u64>(2, ID).unwrap();
    for number in 0..4 {
        assert_eq!(receive(&nodes[1].mailboxes[0], &receiver), number);
    }
    assert_eq!(nodes[1].fabric.in_flight(), 0);
    // One worker of two is done: the queues are still there, and its own takes nothing.
    drop(other);
    nodes[1].fabric.end_dataflow(3, 0);
    senders[2].push(4).unwrap();
    assert_eq!(receive(&nodes[1].mailboxes[0], &receiver), 4);
    drop(receiver);
    nodes[1].fabric.end_dataflow(2, 0);
    senders[2].push(5).unwrap();
    barrier(&nodes, 0, 1);
    assert_eq!(nodes[1].fabric.in_flight(), 0);
    assert_eq!(nodes[1].fabric.channels(), 0);
    drop(mine);
    // One of two workers, and then the other one, will not open anything any more.
    let early = ChannelId { dataflow: 7, ..ID };
    let (senders, _mine) = nodes[0].fabric.open::<u64>(0, early).unwrap();
    senders[3].push(1).unwrap();
    barrier(&nodes, 0, 1);
    nodes[1].fabric.end_worker();
    assert_eq!(nodes[1].fabric.in_flight(), 8);
    senders[3].push(1).unwrap();
    barrier(&nodes, 0, 1);
    assert_eq!(nodes[1].fabric.in_flight(), 16);
    nodes[1].fabric.end_worker();
    assert_eq!(nodes[1].fabric.in_flight(), 0);
    senders[3].push(1).unwrap();
    barrier(&nodes, 0, 1);
    assert_eq!(nodes[1].fabric.in_flight(), 0);
    close(&nodes);
}

#[test]
fn a_frame_for_a_worker_that_is_not_there_ends_the_trust_in_its_sender() {
    let nodes = cluster(2, 1);
    for worker in [4, 1] {
        let body = vec![Bytes::from_static(b"12345678")];
        nodes[0]
            .transport
            .send(1, Recipient::Worker(ID, worker), body);
        let says = format!("for worker {worker} of a process of 1");
        nodes[1].log.wait_for(&says);
    }
    close(&nodes);
}

#[test]
fn a_message_that_makes_no_sense_ends_the_trust_in_its_sender() {
    let nodes = cluster(2, 1);
    nodes[0]
        .fabric
        .send_control(&[Bytes::from_static(b"sense")]);
    nodes[1].log.wait_for("0: sense");
    assert_eq!(nodes[1].log.0.lock().unwrap().len(), 1);
    for word in [&b"\x09"[..], b""] {
        nodes[1].log.0.lock().unwrap().clear();
        let word = vec![Bytes::copy_from_slice(word)];
        nodes[0].transport.send(1, Recipient::Control, word);
        nodes[1]
            .log
            .wait_for("0 lost: process 0 sent a message that makes no sense");
    }
    close(&nodes);
}

#[test]
fn a_lost_process_is_heard_of_by_all() {
    let nodes = cluster(3, 1);
    nodes[1].transport.kill();
    nodes[0]
        .log
        .wait_for("1 lost: the connection to process 1 (memory:1) was cut");
    nodes[2].log.wait_for("1 lost");
    nodes[1].log.wait_for("0 lost");
    nodes[0].transport.farewell(Farewell::Done);
    nodes[2].log.wait_for("0 left: Done");
    close(&nodes);
}

#[test]
fn who_is_closed_sends_nothing_more() {
    let nodes = cluster(2, 2);
    nodes[0].fabric.close();
    nodes[1].log.wait_for("0 lost: process 0");
    nodes[0].fabric.send_control(&[Bytes::from_static(b"late")]);
    assert_eq!(nodes[0].fabric.in_flight(), 0);
    nodes[1].fabric.close();
    assert_eq!(nodes[1].log.0.lock().unwrap().len(), 1);
}
