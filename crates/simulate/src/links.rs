//! The links between processes: a queue of items from each to each.

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

/// The items on the way from one process to another.
#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    /// Nothing more is accepted.
    ended: bool,
}

/// All links, by receiver and sender.
pub(crate) struct Links {
    /// By the receiver and then by the sender.
    links: Vec<Vec<Queue>>,
}

impl Links {
    pub(crate) fn new(processes: usize) -> Self {
        let links = || (0..processes).map(|_| Queue::default()).collect();
        Links {
            links: (0..processes).map(|_| links()).collect(),
        }
    }

    /// The links with waiting items, as sender and receiver.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (usize, usize)> {
        self.links.iter().enumerate().flat_map(|(to, links)| {
            let links = links.iter().enumerate();
            links
                .filter(|(_, queue)| !queue.items.is_empty())
                .map(move |(from, _)| (from, to))
        })
    }

    pub(crate) fn pop(&mut self, from: usize, to: usize) -> Option<Item> {
        self.links[to][from].items.pop_front()
    }

    /// Appends an item to a link; returns whether the link accepted it.
    pub(crate) fn put(&mut self, from: usize, to: usize, item: Item) -> bool {
        let queue = &mut self.links[to][from];
        if queue.ended {
            return false;
        }
        queue.ended = matches!(item, Item::Left(_));
        queue.items.push_back(item);
        true
    }

    /// Drops the items on a link, and puts one last item in their place; returns how many bytes were dropped.
    pub(crate) fn end(&mut self, from: usize, to: usize, last: Item) -> usize {
        let queue = &mut self.links[to][from];
        if queue.ended {
            return 0;
        }
        queue.ended = true;
        let dropped = queue.items.drain(..).map(|item| item.len()).sum();
        queue.items.push_back(last);
        dropped
    }

    /// Drops all that is on its queue to a process; returns the number of bytes from each other process.
    pub(crate) fn drop_to(&mut self, to: usize) -> Vec<usize> {
        let links = self.links[to].iter_mut();
        links
            .map(|queue| queue.items.drain(..).map(|item| item.len()).sum())
            .collect()
    }
}
