//! Farewells: the same to every other process, also where one answers before the last has received it.

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pointstamp_channels::{Farewell, LINGER, Reason, Receive, Recipient, Transport};
use pointstamp_engine::cluster::Cluster;
use pointstamp_progress::Mode;

/// One process of three, without connections.
struct Apart<S> {
    process: usize,
    receiver: Mutex<Option<Arc<dyn Receive>>>,
    /// The other processes, which hear its farewell.
    others: S,
}

/// The others of three processes.
trait Others: Send + Sync {
    fn hear(&self, receiver: Option<Arc<dyn Receive>>, how: Farewell);
}

impl<S: Default> Apart<S> {
    fn new(process: usize) -> Arc<Self> {
        Arc::new(Apart {
            process,
            receiver: Mutex::default(),
            others: S::default(),
        })
    }
}

impl<S: Others> Transport for Apart<S> {
    fn processes(&self) -> usize {
        3
    }

    fn process(&self) -> usize {
        self.process
    }

    fn address(&self, process: usize) -> String {
        format!("place {process}")
    }

    fn start(&self, receiver: Arc<dyn Receive>) {
        *self.receiver.lock().unwrap() = Some(receiver);
    }

    fn send(&self, _: usize, _: Recipient, _: Vec<Bytes>) -> usize {
        0
    }

    fn farewell(&self, how: Farewell) {
        let receiver = self.receiver.lock().unwrap().clone();
        self.others.hear(receiver, how);
    }

    fn close(&self) {
        self.receiver.lock().unwrap().take();
    }
}

/// Process 0 closes its connections as soon as it has the farewell, before process 2 receives it.
#[derive(Default)]
struct HangUp {
    /// The first farewells that processes 0 and 2 received.
    sent: Mutex<[Option<Farewell>; 2]>,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
}

impl Others for HangUp {
    fn hear(&self, receiver: Option<Arc<dyn Receive>>, how: Farewell) {
        let first = self.sent.lock().unwrap()[0].get_or_insert_with(|| how.clone()) == &how;
        if let Some(receiver) = receiver.filter(|_| first) {
            let (done, is_done) = mpsc::channel();
            let reader = thread::spawn(move || {
                receiver.lost(0, "process 0 hung up".to_owned());
                let _ = done.send(());
            });
            self.threads.lock().unwrap().push(reader);
            // As long as this thread might be kept from going on; it is not an error if the other waits for it.
            let _ = is_done.recv_timeout(Duration::from_millis(300));
        }
        self.sent.lock().unwrap()[1].get_or_insert(how);
    }
}

#[test]
fn everybody_is_told_the_same() {
    let transport = Apart::<HangUp>::new(1);
    let (cluster, _seeds) =
        Cluster::in_cluster(1, Mode::Demand, 1 << 20, Arc::clone(&transport) as _);
    cluster.ending().abandon("an interruption".to_owned());
    for reader in std::mem::take(&mut *transport.others.threads.lock().unwrap()) {
        reader.join().unwrap();
    }
    cluster.ending().leave();
    cluster.close();
    let said = Some(Farewell::Failed {
        origin: 1,
        reason: Reason::Raised("an interruption".to_owned()),
    });
    assert_eq!(*transport.others.sent.lock().unwrap(), [said.clone(), said]);
}

/// The others note what is said.
#[derive(Default)]
struct Note(Mutex<Vec<Farewell>>);

impl Others for Note {
    fn hear(&self, _: Option<Arc<dyn Receive>>, how: Farewell) {
        self.0.lock().unwrap().push(how);
    }
}

#[test]
fn a_process_that_relays_stays_until_those_that_it_relays_for_have_left() {
    // In groups of two, process 0 relays for process 1, and process 2 for itself.
    for (group, members) in [(1, 0..0), (2, 1..2), (3, 1..3)] {
        let transport = Apart::<Note>::new(0);
        let (cluster, seeds) = Cluster::in_cluster_of_groups(
            1,
            Mode::Demand,
            1 << 20,
            Arc::clone(&transport) as _,
            LINGER,
            group,
        );
        let receiver = transport.receiver.lock().unwrap().clone().unwrap();
        let said = || transport.others.0.lock().unwrap().clone();
        let soon = || Some(Instant::now() + Duration::from_millis(1));
        cluster.ending().leave();
        for member in members {
            assert!(!cluster.ending().wait_for_others(soon()));
            assert_eq!(said(), [], "{member} of a group of {group} needs it");
            receiver.left(member, Farewell::Done);
        }
        let _others = cluster.ending().wait_for_others(soon());
        assert_eq!(said(), [Farewell::Done], "groups of {group}");
        drop(seeds);
        cluster.close();
    }
}
