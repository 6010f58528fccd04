//! Processes of workers, joined in memory, and the events that they receive from each other.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use pointstamp_channels::{
    ChannelId, Combine, Encode, Fabric, Farewell, Mailbox, Overseer, Receiver, Transport,
};
use pointstamp_testkit::memory::{self, Delay, Memory};

pub(crate) const ID: ChannelId = ChannelId {
    dataflow: 0,
    channel: 9,
};

#[derive(Default)]
pub(crate) struct Log(pub(crate) Mutex<Vec<String>>);

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
    pub(crate) fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    pub(crate) fn wait_for(&self, text: &str) {
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

pub(crate) struct Node {
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) mailboxes: Vec<Mailbox>,
    pub(crate) log: Arc<Log>,
    pub(crate) transport: Arc<Memory>,
}

pub(crate) const LONG: Duration = Duration::from_secs(1000);

pub(crate) fn cluster(processes: usize, workers: usize) -> Vec<Node> {
    patient_cluster(processes, workers, LONG)
}

/// Starts processes that wait up to `linger` to combine the messages of their workers.
pub(crate) fn patient_cluster(processes: usize, workers: usize, linger: Duration) -> Vec<Node> {
    nodes(processes, |transport| {
        Fabric::in_cluster_lingering(workers, 1 << 20, transport, linger)
    })
}

/// Starts processes of one worker in groups of so many, whose relays wait up to `linger`.
pub(crate) fn grouped<T: Combine + Send>(
    processes: usize,
    group: usize,
    linger: Duration,
) -> Vec<Node> {
    nodes(processes, |transport| {
        Fabric::in_cluster_of_groups::<T>(1, 1 << 20, transport, linger, group)
    })
}

fn nodes(
    processes: usize,
    fabric: impl Fn(Arc<Memory>) -> (Arc<Fabric>, Vec<Mailbox>),
) -> Vec<Node> {
    let transports = memory::connect(processes, Delay::None);
    let node = |transport: Arc<Memory>| {
        let (fabric, mailboxes) = fabric(Arc::clone(&transport));
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

pub(crate) fn close(nodes: &[Node]) {
    for node in nodes {
        node.transport.close();
    }
}

/// Waits for a control message that follows everything sent before.
pub(crate) fn barrier(nodes: &[Node], from: usize, to: usize) {
    nodes[from]
        .fabric
        .send_control(&[Bytes::from_static(b"barrier")]);
    nodes[to].log.wait_for(&format!("{from}: barrier"));
    nodes[to].log.0.lock().unwrap().clear();
}

pub(crate) fn receive<T: Encode>(mailbox: &Mailbox, receiver: &Receiver<T>) -> T {
    loop {
        if let Some(message) = receiver.pop().unwrap() {
            return message;
        }
        mailbox.park(None);
    }
}
