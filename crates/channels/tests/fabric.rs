//! Processes of workers, joined in memory: what goes where, what waits, and what goes out together.

use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use pointstamp_channels::encode::CodecError;
use pointstamp_channels::{
    ChannelId, Combine, Combined, Encode, Encoder, Fabric, Farewell, LINGER, Mailbox, Overseer,
    Receiver, Recipient, Ring, Transport,
};
use pointstamp_testkit::memory::{self, Delay, Memory};

const ID: ChannelId = ChannelId {
    dataflow: 0,
    channel: 9,
};

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Overseer for Log {
    fn control(&self, from: usize, body: Bytes) {
        self.note(format!("{from}: {}", String::from_utf8_lossy(&body)));
    }

    fn left(&self, from: usize, how: Farewell) {
        self.note(format!("{from} left: {how:?}"));
    }

    fn lost(&self, from: usize, why: String) {
        self.note(format!("{from} lost: {why}"));
    }
}

impl Log {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn wait_for(&self, text: &str) {
        while !self
            .0
            .lock()
            .unwrap()
            .iter()
            .any(|line| line.contains(text))
        {
            std::thread::yield_now();
        }
    }
}

struct Node {
    fabric: Arc<Fabric>,
    mailboxes: Vec<Mailbox>,
    log: Arc<Log>,
    transport: Arc<Memory>,
}

const LONG: Duration = Duration::from_secs(1000);

fn cluster(processes: usize, workers: usize) -> Vec<Node> {
    patient_cluster(processes, workers, LONG)
}

/// Processes that wait for as long to combine what their workers say.
fn patient_cluster(processes: usize, workers: usize, linger: Duration) -> Vec<Node> {
    let transports = memory::connect(processes, Delay::None);
    let node = |transport: Arc<Memory>| {
        let (fabric, mailboxes) =
            Fabric::in_cluster_lingering(workers, 1 << 20, transport.clone(), linger);
        let log = Arc::new(Log::default());
        let overseer: Weak<Log> = Arc::downgrade(&log);
        fabric.start(overseer);
        Node {
            fabric,
            mailboxes,
            log,
            transport,
        }
    };
    transports.into_iter().map(node).collect()
}

fn close(nodes: &[Node]) {
    for node in nodes {
        node.transport.close();
    }
}

/// Waits for a control message that follows everything sent before.
fn barrier(nodes: &[Node], from: usize, to: usize) {
    nodes[from]
        .fabric
        .send_control(&[Bytes::from_static(b"barrier")]);
    nodes[to].log.wait_for(&format!("{from}: barrier"));
    nodes[to].log.0.lock().unwrap().clear();
}

fn receive<T: Encode>(mailbox: &Mailbox, receiver: &Receiver<T>) -> T {
    loop {
        if let Some(message) = receiver.pop().unwrap() {
            return message;
        }
        mailbox.park(None);
    }
}

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
    // No worker will open anything any more.
    nodes[1].fabric.end_worker();
    let early = ChannelId { dataflow: 7, ..ID };
    let (senders, _mine) = nodes[0].fabric.open::<u64>(0, early).unwrap();
    senders[3].push(1).unwrap();
    barrier(&nodes, 0, 1);
    assert_eq!(nodes[1].fabric.in_flight(), 8);
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

/// Numbers that are added up.
#[derive(Clone, Debug, PartialEq)]
struct Sum(i64);

impl Encode for Sum {
    fn encode(&self, out: &mut Encoder) -> Result<(), CodecError> {
        self.put(out);
        Ok(())
    }

    fn decode(bytes: Bytes) -> Result<Self, CodecError> {
        Ok(Sum(i64::from_le_bytes(bytes.as_ref().try_into()?)))
    }

    fn footprint(&self) -> usize {
        0
    }
}

impl Combine for Sum {
    fn add(&mut self, other: &Self) {
        self.0 += other.0;
    }

    fn is_nothing(&mut self) -> bool {
        self.0 == 0
    }

    fn put(&self, out: &mut Encoder) {
        out.put_slice(&self.0.to_le_bytes());
    }
}

/// A process of three workers, and one that listens.
fn combining(linger: Duration) -> (Vec<Node>, Vec<Combined<Sum>>) {
    let nodes = patient_cluster(2, 3, linger);
    let open = |worker| nodes[0].fabric.open_combined::<Sum>(worker, ID).unwrap().0;
    let senders = (0..3).map(open).collect();
    (nodes, senders)
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
    fabric.step_begins(0);
    senders[0].push(Sum(1));
    fabric.step_ended(0);
    assert_eq!(frames(&nodes), 1);
    // It has been rung: it is about to say something.
    fabric.doorbell(1).ring(Ring::Activate(0));
    fabric.step_begins(0);
    senders[0].push(Sum(1));
    fabric.step_ended(0);
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
            "it hears in one step and acts in another"
        );
    }
    close(&nodes);
}

#[test]
fn who_was_waited_for_in_vain_is_not_waited_for_again_before_he_steps() {
    let (nodes, senders) = combining(LONG);
    let fabric = &nodes[0].fabric;
    assert_eq!(fabric.parks(2), None);
    let speak = || {
        fabric.step_begins(0);
        senders[0].push(Sum(1));
        fabric.step_ended(0);
        frames(&nodes)
    };
    assert_eq!(speak(), 0, "worker 1 is awake, and may speak");
    fabric.flush(); // as when the time is over
    assert_eq!(speak(), 2);
    assert_eq!(speak(), 3);
    fabric.step_begins(1);
    assert_eq!(speak(), 3);
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
    fabric.step_begins(3);
    senders[0].push(Sum(1));
    fabric.step_ended(3);
    assert_eq!(sent(), 1, "the others sleep");
    fabric.woke(5);
    fabric.step_begins(3);
    senders[0].push(Sum(1));
    fabric.step_ended(3);
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
fn what_waits_is_sent_although_no_worker_comes_back() {
    let (nodes, senders) = combining(LINGER);
    let fabric = &nodes[0].fabric;
    fabric.step_begins(0);
    senders[0].push(Sum(1));
    fabric.step_ended(0);
    while frames(&nodes) == 0 {
        std::thread::yield_now();
    }
    close(&nodes);
}

#[test]
fn nothing_waits_for_ever_for_a_worker_in_a_long_step() {
    let (nodes, senders) = combining(Duration::from_millis(300));
    let fabric = &nodes[0].fabric;
    fabric.step_begins(1);
    fabric.step_begins(0);
    senders[0].push(Sum(1));
    fabric.step_ended(0);
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
    fabric.step_begins(0);
    senders[0].push(Sum(7));
    fabric.step_ended(0);
    assert_eq!(fabric.parks(1), None);
    assert_eq!(frames(&nodes), 1);
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
