//! Helpers of the tests of clusters: free ports, members, a receiver that records its calls.

use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::form::{PURPOSE, form_as};
use crate::frame::{Frame, FrameReader, Kind, ReadError, header};
use crate::handshake::{self, Local, PATIENCE};
use crate::introduction::Introduction;
use crate::noise::VERSION;
use crate::wire::Incoming;
use crate::{FormError, Member, Secret};
use pointstamp_channels::{ChannelId, Farewell, Receive, Recipient, Transport};

/// Nothing in these tests takes longer, unless it hangs.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

pub(super) const CHANNEL: ChannelId = ChannelId {
    dataflow: 3,
    channel: 4,
};

/// Listeners on free ports, and their addresses.
pub(super) fn listeners(processes: usize) -> (Vec<TcpListener>, Vec<String>) {
    let listeners: Vec<_> = (0..processes)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let addresses = listeners
        .iter()
        .map(|listener| listener.local_addr().unwrap().to_string())
        .collect();
    (listeners, addresses)
}

pub(super) fn member(process: usize, addresses: &[String]) -> Member {
    Member {
        process,
        addresses: addresses.to_vec(),
        secret: b"a secret of these tests".to_vec(),
        tls: None,
        facts: vec![("workers".to_owned(), "1".to_owned())],
        connect_timeout: Duration::from_secs(30),
        stall_timeout: Duration::from_secs(30),
    }
}

pub(super) type Formed = Result<Arc<dyn Transport>, FormError>;

/// The lines that were logged, as one text.
pub(super) type Lines = Arc<Mutex<String>>;

/// Forms one process's part on a thread of its own.
pub(super) fn spawn(member: Member, listener: Option<TcpListener>) -> thread::JoinHandle<Formed> {
    spawn_logged(member, VERSION, listener, Lines::default())
}

pub(super) fn spawn_logged(
    member: Member,
    version: u16,
    listener: Option<TcpListener>,
    lines: Lines,
) -> thread::JoinHandle<Formed> {
    thread::spawn(move || {
        let log = Arc::new(move |line: &str| {
            let mut lines = lines.lock().unwrap();
            lines.push_str(line);
            lines.push('\n');
        });
        form_as(member, version, listener, log, &|| false)
    })
}

/// Joins a thread that may hang only if something is wrong.
pub(super) fn joined<T>(thread: thread::JoinHandle<T>) -> T {
    let until = Instant::now() + LIMIT;
    while !thread.is_finished() {
        assert!(Instant::now() < until, "it hangs");
        thread::sleep(Duration::from_millis(1));
    }
    thread.join().unwrap()
}

/// Forms a cluster whose members `change` has changed, and returns the transports.
pub(super) fn cluster_with(
    processes: usize,
    change: &dyn Fn(&mut Member),
) -> Vec<Arc<dyn Transport>> {
    let (listeners, addresses) = listeners(processes);
    let forming: Vec<_> = listeners
        .into_iter()
        .enumerate()
        .map(|(process, listener)| {
            let mut member = member(process, &addresses);
            change(&mut member);
            spawn(member, Some(listener))
        })
        .collect();
    forming
        .into_iter()
        .map(|thread| joined(thread).unwrap())
        .collect()
}

pub(super) fn cluster(processes: usize) -> Vec<Arc<dyn Transport>> {
    cluster_with(processes, &|_| {})
}

/// The error of a process that was not to form a cluster.
pub(super) fn error(thread: thread::JoinHandle<Formed>) -> FormError {
    match joined(thread) {
        Ok(_) => panic!("it formed a cluster"),
        Err(error) => error,
    }
}

/// A call of a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    Frame(usize, Recipient, Bytes),
    Left(usize, Farewell),
    Lost(usize, String),
}

#[derive(Default)]
struct Notes {
    events: Vec<Event>,
    written: usize,
}

/// Records its calls.
#[derive(Default)]
pub(super) struct Recorder {
    notes: Mutex<Notes>,
    changed: Condvar,
}

impl Recorder {
    fn note(&self, change: impl FnOnce(&mut Notes)) {
        change(&mut self.notes.lock().unwrap());
        self.changed.notify_all();
    }

    fn wait<T>(&self, mut look: impl FnMut(&mut Notes) -> Option<T>) -> T {
        let until = Instant::now() + LIMIT;
        let mut notes = self.notes.lock().unwrap();
        loop {
            if let Some(found) = look(&mut notes) {
                return found;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "nothing came; so far {:?}", notes.events);
            notes = self.changed.wait_timeout(notes, left).unwrap().0;
        }
    }

    /// Returns and forgets the recorded calls, once there are `count`.
    pub(super) fn take(&self, count: usize) -> Vec<Event> {
        self.wait(|notes| {
            (notes.events.len() >= count).then(|| notes.events.drain(..count).collect())
        })
    }

    /// The next call.
    pub(super) fn next(&self) -> Event {
        self.take(1).remove(0)
    }

    pub(super) fn wait_written(&self, bytes: usize) {
        self.wait(|notes| (notes.written == bytes).then_some(()));
    }

    pub(super) fn is_silent(&self) -> bool {
        self.notes.lock().unwrap().events.is_empty()
    }
}

impl Receive for Recorder {
    fn frame(&self, from: usize, route: Recipient, body: Bytes) {
        self.note(|notes| notes.events.push(Event::Frame(from, route, body)));
    }

    fn left(&self, from: usize, how: Farewell) {
        self.note(|notes| notes.events.push(Event::Left(from, how)));
    }

    fn lost(&self, from: usize, why: String) {
        self.note(|notes| notes.events.push(Event::Lost(from, why)));
    }

    fn written(&self, bytes: usize) {
        self.note(|notes| notes.written += bytes);
    }
}

/// A started receiver for each transport.
pub(super) fn recorders(transports: &[Arc<dyn Transport>]) -> Vec<Arc<Recorder>> {
    transports
        .iter()
        .map(|transport| {
            let recorder = Arc::<Recorder>::default();
            transport.start(Arc::clone(&recorder) as Arc<dyn Receive>);
            recorder
        })
        .collect()
}

/// The end of a connection that belongs to the cluster and is not served by it: process 1 of 2, by hand.
pub(super) struct ByHand {
    pub(super) incoming: Incoming,
    pub(super) frames: FrameReader,
}

impl ByHand {
    pub(super) fn write(&self, bytes: &[u8]) {
        self.incoming.wire().write_all(bytes).unwrap();
    }

    pub(super) fn read(&mut self) -> Result<Frame, ReadError> {
        self.frames.next(&mut self.incoming)
    }
}

/// A process of a member's cluster, for handshakes by hand.
pub(super) fn local_of(member: &Member, process: u32) -> Local {
    Local {
        secret: Secret::new(&member.secret),
        purpose: PURPOSE,
        identity: None,
        introduction: Introduction {
            process,
            expects: None,
            processes: u32::try_from(member.addresses.len()).unwrap(),
            facts: member.facts.iter().cloned().collect(),
        },
        version: VERSION,
        patience: PATIENCE,
    }
}

/// The first of two processes, to which the second, played by the test, is connected and has said nothing.
pub(super) fn forming_with_one_by_hand(stall: Duration) -> (thread::JoinHandle<Formed>, ByHand) {
    let (mut listeners, addresses) = listeners(2);
    let mut first = member(0, &addresses);
    first.stall_timeout = stall;
    let local = local_of(&first, 1);
    let forming = spawn(first, Some(listeners.remove(0)));
    let socket = TcpStream::connect(&addresses[0]).unwrap();
    let established = handshake::connect(socket, &local, 0, "127.0.0.1").unwrap();
    let incoming = established.incoming;
    incoming
        .wire()
        .socket()
        .set_read_timeout(Some(LIMIT))
        .unwrap();
    let hand = ByHand {
        incoming,
        frames: FrameReader::new(),
    };
    (forming, hand)
}

/// A cluster of two, of which the second process is played by the test.
pub(super) fn with_one_by_hand(stall: Duration) -> (Arc<dyn Transport>, Arc<Recorder>, ByHand) {
    let (forming, mut hand) = forming_with_one_by_hand(stall);
    hand.write(&header(Kind::Formed, 0));
    assert_eq!(hand.read().unwrap().kind, Kind::Formed);
    let transport = joined(forming).unwrap();
    let recorder = recorders(std::slice::from_ref(&transport)).remove(0);
    (transport, recorder, hand)
}
