//! The transport of a simulated process: frames wait until they are drawn.

use std::sync::Arc;

use bytes::Bytes;
use pointstamp_channels::{Farewell, Receive, Recipient, Transport, joined};

use crate::links::Item;
use crate::world::World;

/// One process's connections to the others.
pub struct Link {
    world: Arc<World>,
    process: usize,
}

impl Link {
    /// The connections of a process of that world, by its number.
    pub fn new(world: Arc<World>, process: usize) -> Self {
        Link { world, process }
    }

    fn others(&self) -> impl Iterator<Item = usize> {
        let here = self.process;
        (0..self.world.processes()).filter(move |&other| other != here)
    }
}

impl Transport for Link {
    fn processes(&self) -> usize {
        self.world.processes()
    }

    fn process(&self) -> usize {
        self.process
    }

    fn address(&self, process: usize) -> String {
        format!("simulated:{process}")
    }

    fn keeps_time(&self) -> bool {
        true
    }

    fn start(&self, receiver: Arc<dyn Receive>) {
        self.world.set_receiver(self.process, receiver);
    }

    fn send(&self, process: usize, route: Recipient, body: Vec<Bytes>) -> usize {
        let item = Item::Frame(route, joined(&body));
        let len = item.len();
        if self.world.put(self.process, process, item) {
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
                    self.world.put(self.process, other, last);
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
        self.world.hears_no_more(here);
    }
}
