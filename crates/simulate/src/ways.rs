//! The messages under way between processes: a queue from each to each.

use std::collections::VecDeque;

use bytes::Bytes;
use pointstamp_channels::{Farewell, Recipient};

/// An item that travels on a link.
pub(crate) enum Item {
    Frame(Recipient, Bytes),
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
pub(crate) struct Ways {
    /// By the receiver and then by the sender.
    ways: Vec<Vec<Way>>,
}

impl Ways {
    pub(crate) fn new(processes: usize) -> Self {
        let ways = || (0..processes).map(|_| Way::default()).collect();
        Ways {
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
    pub(crate) fn put(&mut self, from: usize, to: usize, item: Item) -> bool {
        let way = &mut self.ways[to][from];
        if way.ended {
            return false;
        }
        way.ended = matches!(item, Item::Left(_));
        way.items.push_back(item);
        true
    }

    /// Drops the items on a link, and puts one last item in their place; returns how many bytes were dropped.
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
    pub(crate) fn drop_to(&mut self, to: usize) -> Vec<usize> {
        let ways = self.ways[to].iter_mut();
        ways.map(|way| way.items.drain(..).map(|item| item.len()).sum())
            .collect()
    }
}
