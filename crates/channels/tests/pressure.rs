//! Back-pressure between processes, joined in memory.

use std::sync::{Arc, Weak};
use std::time::Instant;

use bytes::Bytes;
use pointstamp_channels::{
    ASK, ChannelId, Fabric, Farewell, Mailbox, Overseer, Receiver, STALLED, Sender, Transport,
};
use pointstamp_testkit::memory::{self, Delay, Memory};

const ID: ChannelId = ChannelId {
    dataflow: 0,
    channel: 0,
};

struct NoOverseer;

impl Overseer for NoOverseer {
    fn control(&self, _: usize, _: Bytes) {}
    fn left(&self, _: usize, _: Farewell) {}
    fn lost(&self, _: usize, _: String) {}
}

struct Node {
    fabric: Arc<Fabric>,
    mailboxes: Vec<Mailbox>,
    transport: Arc<Memory>,
    senders: Vec<Sender<Bytes>>,
    receiver: Receiver<Bytes>,
}

/// Starts three processes of one worker each with a high water mark of 1000 bytes.
fn cluster() -> (Vec<Node>, Arc<dyn Overseer>) {
    let overseer: Arc<dyn Overseer> = Arc::new(NoOverseer);
    let nodes = memory::connect(3, Delay::None).into_iter();
    let nodes = nodes.map(|transport| {
        let (fabric, mailboxes) = Fabric::in_cluster(1, 1000, transport.clone());
        let overseer: Weak<dyn Overseer> = Arc::downgrade(&overseer);
        fabric.start(overseer);
        let (senders, receiver) = fabric.open(transport.process(), ID).unwrap();
        Node {
            fabric,
            mailboxes,
            transport,
            senders,
            receiver,
        }
    });
    (nodes.collect(), overseer)
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

/// Takes one message. Bytes in flight are counted before their message is in the queue: a count means that it comes.
fn take(node: &Node) {
    until(|| node.receiver.pop().unwrap().is_some());
}

fn bytes(count: usize) -> Bytes {
    vec![0; count].into()
}

#[test]
fn every_process_hears_when_one_is_pressed_and_when_it_is_no_more() {
    let (nodes, _overseer) = cluster();
    let pressed = |on: bool| until(|| nodes.iter().all(|node| node.fabric.is_pressed() == on));
    let releases = || nodes.iter().map(|node| node.fabric.releases());
    nodes[0].senders[1].push(bytes(900)).unwrap();
    until(|| nodes[1].fabric.in_flight() == 900 && nodes[0].fabric.in_flight() == 0);
    assert!(!nodes[1].fabric.is_pressed());
    nodes[0].senders[1].push(bytes(200)).unwrap();
    pressed(true);
    assert_eq!(releases().sum::<u64>(), 0);
    // Not before it is below half of the mark.
    nodes[0].senders[1].push(bytes(400)).unwrap();
    until(|| nodes[1].fabric.in_flight() == 1500);
    take(&nodes[1]);
    nodes[1].fabric.step_ended(1);
    assert!(nodes[1].fabric.is_pressed());
    take(&nodes[1]);
    nodes[1].fabric.step_ended(1);
    pressed(false);
    until(|| releases().all(|releases| releases == 1));
    nodes[0].mailboxes[0].park(None); // it was woken
    // Two are pressed: it ends with the second.
    nodes[0].senders[1].push(bytes(2000)).unwrap();
    nodes[0].senders[2].push(bytes(2000)).unwrap();
    let elsewhere = || nodes[0].fabric.pressed_elsewhere();
    until(|| elsewhere() == 2);
    for node in [1, 2] {
        until(|| {
            nodes[node].receiver.pop().unwrap().is_none() && nodes[node].fabric.in_flight() == 0
        });
        nodes[node].fabric.step_ended(node);
        until(|| elsewhere() == 2 - node);
        assert_eq!(nodes[0].fabric.is_pressed(), node == 1);
    }
    pressed(false);
    // A process that has left is not pressed any more.
    nodes[0].senders[2].push(bytes(2000)).unwrap();
    pressed(true);
    nodes[2].transport.farewell(Farewell::Done);
    until(|| !nodes[0].fabric.is_pressed() && !nodes[1].fabric.is_pressed());
    for node in &nodes {
        node.transport.close();
    }
}

/// Asks until no worker waits for the second node.
fn ask_until_it_gives_way(nodes: &[Node]) {
    while nodes[0].fabric.is_pressed() || nodes[2].fabric.is_pressed() {
        nodes[0].fabric.ask_for_release();
        std::thread::sleep(ASK / 4);
    }
}

#[test]
fn who_has_given_way_and_then_consumes_is_pressed_again() {
    let (nodes, _overseer) = cluster();
    nodes[0].senders[1].push(bytes(500)).unwrap();
    nodes[0].senders[1].push(bytes(1500)).unwrap();
    until(|| nodes[0].fabric.is_pressed() && nodes[2].fabric.is_pressed());
    ask_until_it_gives_way(&nodes);
    take(&nodes[1]);
    nodes[1].fabric.step_ended(1);
    until(|| nodes[0].fabric.is_pressed() && nodes[2].fabric.is_pressed());
    for node in &nodes {
        node.transport.close();
    }
}

#[test]
fn who_does_not_move_gives_way_until_he_moves() {
    let (nodes, _overseer) = cluster();
    let others = || !nodes[0].fabric.is_pressed() && !nodes[2].fabric.is_pressed();
    nodes[0].senders[1].push(bytes(2000)).unwrap();
    until(|| nodes[0].fabric.is_pressed() && nodes[2].fabric.is_pressed());
    nodes[1].fabric.step_begins(1); // it is busy
    let begun = Instant::now();
    while begun.elapsed() < STALLED + 3 * ASK {
        nodes[0].fabric.ask_for_release();
        std::thread::sleep(ASK / 4);
    }
    assert!(nodes[0].fabric.is_pressed(), "it may take its time");
    nodes[1].fabric.step_ended(1);
    let begun = Instant::now();
    ask_until_it_gives_way(&nodes);
    assert!(begun.elapsed() >= STALLED / 2);
    nodes[1].fabric.weigh();
    assert!(others(), "nothing has moved since");
    nodes[2].senders[1].push(bytes(1000)).unwrap();
    until(|| nodes[1].fabric.in_flight() == 3000);
    nodes[1].fabric.weigh();
    assert!(others(), "it takes as much again as the mark");
    nodes[2].senders[1].push(bytes(1)).unwrap();
    until(|| nodes[0].fabric.is_pressed() && nodes[2].fabric.is_pressed());
    for node in &nodes {
        node.transport.close();
    }
}

#[test]
fn who_holds_the_sources_does_not_give_way() {
    let (nodes, _overseer) = cluster();
    let pressed = |on: bool| until(|| nodes.iter().all(|node| node.fabric.is_pressed() == on));
    nodes[1].fabric.hold();
    nodes[1].fabric.hold();
    pressed(true);
    let begun = Instant::now();
    while begun.elapsed() < STALLED + 3 * ASK {
        nodes[0].fabric.ask_for_release();
        std::thread::sleep(ASK / 4);
    }
    assert!(nodes[0].fabric.is_pressed(), "it waits for something else");
    // The last release ends it, and not consumption.
    nodes[0].senders[1].push(bytes(1500)).unwrap();
    until(|| nodes[1].fabric.in_flight() == 1500);
    take(&nodes[1]);
    nodes[1].fabric.step_ended(1);
    nodes[1].fabric.let_go();
    assert!(nodes[1].fabric.is_pressed());
    nodes[1].fabric.let_go();
    pressed(false);
    // Where there is too much besides, that has to end, too.
    nodes[1].fabric.hold();
    nodes[0].senders[1].push(bytes(1500)).unwrap();
    until(|| nodes[1].fabric.in_flight() == 1500);
    nodes[1].fabric.let_go();
    assert!(nodes[1].fabric.is_pressed());
    take(&nodes[1]);
    nodes[1].fabric.step_ended(1);
    pressed(false);
    for node in &nodes {
        node.transport.close();
    }
}
