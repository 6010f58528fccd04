//! Connections between the parts of one program, as if they were processes: for tests and examples.
//!
//! Frames between two processes keep their order. Where a delay is asked for, each link holds its frames for random times of its
//! own, so that frames of different links overtake each other, in another way for each seed. A link can be
//! cut, and a process killed.
//!
//! ```
//! use pointstamp_channels::{ChannelId, Fabric};
//! use pointstamp_testkit::memory;
//!
//! # struct NoOverseer;
//! # impl pointstamp_channels::Overseer for NoOverseer {
//! #     fn control(&self, _: usize, _: bytes::Bytes) {}
//! #     fn left(&self, _: usize, _: pointstamp_channels::Farewell) {}
//! #     fn lost(&self, _: usize, _: String) {}
//! # }
//! # let overseer = std::sync::Arc::new(NoOverseer);
//! # let overseer = || std::sync::Arc::downgrade(&overseer) as std::sync::Weak<dyn pointstamp_channels::Overseer>;
//! let transports = memory::connect(2, memory::Delay::None);
//! let (a, _) = Fabric::in_cluster(1, 1 << 20, transports[0].clone());
//! let (b, mailboxes) = Fabric::in_cluster(1, 1 << 20, transports[1].clone());
//! a.start(overseer());
//! b.start(overseer());
//!
//! let id = ChannelId { dataflow: 0, channel: 0 };
//! let (to_each, _) = a.open::<u64>(0, id)?;
//! to_each[1].push(5)?; // kept by the other process until it opens the channel
//! let (_, inbox) = b.open::<u64>(1, id)?;
//! while inbox.is_empty() {
//!     mailboxes[0].park(None);
//! }
//! assert_eq!(inbox.pop()?, Some(5));
//! transports.iter().for_each(|transport| transport.close());
//! # use pointstamp_channels::Transport;
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;

use pointstamp_channels::{Farewell, Receive, Recipient, Transport, joined};

/// The delay of frames.
#[derive(Debug, Clone, Copy)]
pub enum Delay {
    /// No additional delay.
    None,
    /// Up to `most` longer, by a generator that begins with `seed`.
    Random {
        /// The seed of the generator.
        seed: u64,
        /// The longest delay.
        most: Duration,
    },
}

/// An item in flight.
enum Item {
    Frame(Recipient, Bytes),
    Left(Farewell),
    Lost(String),
}

/// The way from one process to another.
#[derive(Default)]
struct Link {
    items: VecDeque<(Instant, Item)>,
    /// Nothing more is accepted.
    ended: bool,
}

/// The incoming items of one process.
#[derive(Default)]
struct Inbox {
    /// By sender.
    links: Vec<Link>,
    closed: bool,
    random: u64,
}

struct Process {
    inbox: Mutex<Inbox>,
    something: Condvar,
    receiver: Mutex<Option<Arc<dyn Receive>>>,
}

/// One process's connections to the others.
pub struct Memory {
    process: usize,
    hub: Arc<Vec<Process>>,
    delay: Delay,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Connects as many processes with each other.
pub fn connect(processes: usize, delay: Delay) -> Vec<Arc<Memory>> {
    let seed = match delay {
        Delay::None => 0,
        Delay::Random { seed, .. } => seed,
    };
    let process = |number: usize| Process {
        inbox: Mutex::new(Inbox {
            links: (0..processes).map(|_| Link::default()).collect(),
            closed: false,
            random: seed ^ (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        }),
        something: Condvar::new(),
        receiver: Mutex::new(None),
    };
    let hub = Arc::new((0..processes).map(process).collect::<Vec<_>>());
    let memory = |process| Memory {
        process,
        hub: Arc::clone(&hub),
        delay,
        thread: Mutex::new(None),
    };
    (0..processes).map(memory).map(Arc::new).collect()
}

impl Memory {
    /// Ends the connection with another process; items in flight are lost, and each process is notified.
    pub fn cut(&self, other: usize) {
        self.lose(self.process, other);
        self.lose(other, self.process);
    }

    fn lose(&self, from: usize, to: usize) {
        let why = format!("the connection to process {from} (memory:{from}) was cut");
        self.end(from, to, Item::Lost(why));
    }

    /// Ends the process: every other one loses it, and it loses every other one.
    pub fn kill(&self) {
        let others = (0..self.hub.len()).filter(|&other| other != self.process);
        // First its messages stop: otherwise one would report that it has lost another.
        for other in others.clone() {
            self.lose(self.process, other);
        }
        for other in others {
            self.lose(other, self.process);
        }
    }

    /// Ends a link: its items are dropped, and `last` is delivered as the last one.
    fn end(&self, from: usize, to: usize, last: Item) {
        let mut inbox = self.hub[to].inbox.lock();
        let link = &mut inbox.links[from];
        if link.ended {
            return;
        }
        link.ended = true;
        let dropped: usize = link.items.drain(..).map(|(_, item)| item.len()).sum();
        link.items.push_back((Instant::now(), last));
        drop(inbox);
        self.hub[to].something.notify_all();
        self.hub[from].written(dropped);
    }

    fn put(&self, to: usize, item: Item) -> usize {
        let len = item.len();
        let mut inbox = self.hub[to].inbox.lock();
        let mut due = Instant::now();
        if let Delay::Random { most, .. } = self.delay {
            due += most.mul_f64(inbox.chance());
        }
        if inbox.closed {
            return 0;
        }
        let link = &mut inbox.links[self.process];
        if link.ended {
            return 0;
        }
        if let Some((last, _)) = link.items.back() {
            due = due.max(*last);
        }
        link.ended = matches!(item, Item::Left(_));
        link.items.push_back((due, item));
        drop(inbox);
        self.hub[to].something.notify_all();
        len
    }
}

impl Item {
    fn len(&self) -> usize {
        match self {
            Item::Frame(_, body) => body.len(),
            _ => 0,
        }
    }
}

impl Inbox {
    /// A number from 0 to 1.
    #[allow(clippy::cast_precision_loss, reason = "a chance need not be exact")]
    fn chance(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) as f64 / u64::MAX as f64
    }

    /// The link whose first item is due first, and the time.
    fn first(&self) -> Option<(Instant, usize)> {
        let heads = self.links.iter().enumerate();
        heads
            .filter_map(|(from, link)| link.items.front().map(|&(due, _)| (due, from)))
            .min()
    }
}

impl Process {
    fn written(&self, bytes: usize) {
        let receiver = self.receiver.lock().clone();
        if let Some(receiver) = receiver.filter(|_| bytes > 0) {
            receiver.written(bytes);
        }
    }

    /// The next item that is due; `None` at the end.
    fn next(&self) -> Option<(usize, Item)> {
        let mut inbox = self.inbox.lock();
        loop {
            if inbox.closed {
                return None;
            }
            let now = Instant::now();
            match inbox.first() {
                Some((due, from)) if due <= now => {
                    let (_, item) = inbox.links[from].items.pop_front()?;
                    return Some((from, item));
                }
                Some((due, _)) => {
                    self.something.wait_for(&mut inbox, due - now);
                }
                None => {
                    self.something.wait(&mut inbox);
                }
            }
        }
    }
}

/// Delivers the incoming items of a process, until it is closed.
fn deliver(hub: &[Process], to: usize, receiver: &dyn Receive) {
    while let Some((from, item)) = hub[to].next() {
        match item {
            Item::Frame(route, body) => {
                let bytes = body.len();
                receiver.frame(from, route, body);
                hub[from].written(bytes);
            }
            Item::Left(how) => receiver.left(from, how),
            Item::Lost(why) => receiver.lost(from, why),
        }
    }
}

impl Transport for Memory {
    fn processes(&self) -> usize {
        self.hub.len()
    }

    fn process(&self) -> usize {
        self.process
    }

    fn address(&self, process: usize) -> String {
        format!("memory:{process}")
    }

    fn start(&self, receiver: Arc<dyn Receive>) {
        *self.hub[self.process].receiver.lock() = Some(Arc::clone(&receiver));
        let (hub, process) = (Arc::clone(&self.hub), self.process);
        let thread = std::thread::Builder::new()
            .name(format!("memory:{process}"))
            .spawn(move || deliver(&hub, process, &*receiver))
            .expect("a thread for a process in memory");
        *self.thread.lock() = Some(thread);
    }

    fn send(&self, process: usize, route: Recipient, body: Vec<Bytes>) -> usize {
        self.put(process, Item::Frame(route, joined(&body)))
    }

    fn farewell(&self, how: Farewell) {
        for other in (0..self.hub.len()).filter(|&other| other != self.process) {
            match &how {
                Farewell::Done => {
                    self.put(other, Item::Left(how.clone()));
                }
                Farewell::Failed { .. } => self.end(self.process, other, Item::Left(how.clone())),
            }
        }
    }

    fn close(&self) {
        for other in (0..self.hub.len()).filter(|&other| other != self.process) {
            let here = self.process;
            let why = format!("process {here} (memory:{here}) ended without a word");
            self.end(here, other, Item::Lost(why));
        }
        let mut inbox = self.hub[self.process].inbox.lock();
        inbox.closed = true;
        let unread: Vec<_> = inbox
            .links
            .iter_mut()
            .map(|link| std::mem::take(&mut link.items))
            .collect();
        drop(inbox);
        self.hub[self.process].something.notify_all();
        for (from, items) in unread.into_iter().enumerate() {
            self.hub[from].written(items.iter().map(|(_, item)| item.len()).sum());
        }
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _panicked = thread.join();
        }
        *self.hub[self.process].receiver.lock() = None;
    }
}
