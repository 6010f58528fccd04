//! The links between processes: queues, from which what is drawn next is delivered.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use pointstamp_channels::{Farewell, Receive, Route, Transport};

use crate::World;

/// What is on its way.
pub(crate) enum Item {
    Frame(Route, Bytes),
    Left(Farewell),
    Lost(String),
}

impl Item {
    /// Its bytes, so far as they count.
    pub(crate) fn len(&self) -> usize {
        match self {
            Item::Frame(_, body) => body.len(),
            Item::Left(_) | Item::Lost(_) => 0,
        }
    }
}

/// The way from one process to another.
#[derive(Default)]
struct Way {
    items: VecDeque<Item>,
    /// Nothing more is accepted.
    ended: bool,
}

/// Every way there is.
pub(crate) struct Links {
    /// By the receiver and then by the sender.
    ways: Vec<Vec<Way>>,
}

impl Links {
    pub(crate) fn new(processes: usize) -> Self {
        let ways = || (0..processes).map(|_| Way::default()).collect();
        Links {
            ways: (0..processes).map(|_| ways()).collect(),
        }
    }

    /// The ways, from where to where, on which something waits.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (usize, usize)> {
        self.ways.iter().enumerate().flat_map(|(to, ways)| {
            let ways = ways.iter().enumerate();
            ways.filter(|(_, way)| !way.items.is_empty())
                .map(move |(from, _)| (from, to))
        })
    }

    pub(crate) fn pop(&mut self, from: usize, to: usize) -> Option<Item> {
        self.ways[to][from].items.pop_front()
    }

    /// Puts an item on its way; whether that was accepted.
    fn put(&mut self, from: usize, to: usize, item: Item) -> bool {
        let way = &mut self.ways[to][from];
        if way.ended {
            return false;
        }
        way.ended = matches!(item, Item::Left(_));
        way.items.push_back(item);
        true
    }

    /// Drops what is on its way, and puts one last item in its place; returns how many bytes were dropped.
    pub(crate) fn end(&mut self, from: usize, to: usize, last: Item) -> usize {
        let way = &mut self.ways[to][from];
        if way.ended {
            return 0;
        }
        way.ended = true;
        let dropped = way.items.drain(..).map(|item| item.len()).sum();
        way.items.push_back(last);
        dropped
    }

    /// Drops all that is on its way to a process: how many bytes from each other one.
    fn drop_to(&mut self, to: usize) -> Vec<usize> {
        let ways = self.ways[to].iter_mut();
        ways.map(|way| way.items.drain(..).map(|item| item.len()).sum())
            .collect()
    }
}

/// One process's connections to the others.
pub struct Link {
    world: Arc<World>,
    process: usize,
}

impl Link {
    pub(crate) fn new(world: Arc<World>, process: usize) -> Self {
        Link { world, process }
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        let here = self.process;
        (0..self.world.processes).filter(move |&other| other != here)
    }
}

/// The segments as one block that is aligned to 16 bytes.
fn joined(segments: &[Bytes]) -> Bytes {
    let len: usize = segments.iter().map(Bytes::len).sum();
    let mut block = Vec::<u8>::with_capacity(len + 15);
    let offset = block.as_ptr().align_offset(16).min(15);
    block.resize(offset, 0);
    for segment in segments {
        block.extend_from_slice(segment);
    }
    Bytes::from(block).slice(offset..)
}

impl Transport for Link {
    fn processes(&self) -> usize {
        self.world.processes
    }

    fn process(&self) -> usize {
        self.process
    }

    fn address(&self, process: usize) -> String {
        format!("simulated:{process}")
    }

    fn start(&self, receiver: Arc<dyn Receive>) {
        self.world.state.lock().receivers[self.process] = Some(receiver);
    }

    fn send(&self, process: usize, route: Route, body: Vec<Bytes>) -> usize {
        let item = Item::Frame(route, joined(&body));
        let len = item.len();
        let mut state = self.world.state.lock();
        if state.links.put(self.process, process, item) {
            len
        } else {
            0
        }
    }

    fn farewell(&self, how: Farewell) {
        for other in self.others() {
            let last = Item::Left(how.clone());
            match &how {
                Farewell::Done => {
                    let mut state = self.world.state.lock();
                    state.links.put(self.process, other, last);
                }
                Farewell::Failed { .. } => self.world.end(self.process, other, last),
            }
        }
    }

    fn close(&self) {
        let here = self.process;
        for other in self.others() {
            let why = format!("process {here} (simulated:{here}) ended without a word");
            self.world.end(here, other, Item::Lost(why));
        }
        let mut state = self.world.state.lock();
        let dropped = state.links.drop_to(here);
        // What hears for a process holds the cluster, which holds this.
        let gone = state.receivers[here].take();
        let senders = state.receivers.clone();
        drop(state);
        drop(gone);
        for (sender, dropped) in senders.into_iter().zip(dropped) {
            if let Some(sender) = sender.filter(|_| dropped > 0) {
                sender.written(dropped);
            }
        }
    }
}
