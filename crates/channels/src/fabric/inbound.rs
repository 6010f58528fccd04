//! Messages from other processes: frames go to their queues, words to back-pressure and to the computation.
//!
//! Called by the threads that read connections; nothing here waits for a worker.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;

use super::{Fabric, Overseer};
use crate::routes::{Arrival, Arrived};
use crate::sender::{COMPUTATION, PRESSURE};
use crate::{Farewell, Receive, Recipient};

/// Takes in frames from other processes.
struct Inbound {
    fabric: Weak<Fabric>,
}

impl Fabric {
    /// Begins to take in frames from other processes.
    pub fn start(self: &Arc<Self>, overseer: Weak<dyn Overseer>) {
        let _once = self.overseer.set(overseer);
        if let Some(uplink) = &self.uplink {
            let fabric = Arc::downgrade(self);
            uplink.transport().start(Arc::new(Inbound { fabric }));
        }
    }
}

impl Inbound {
    fn overseer(&self) -> Option<Arc<dyn Overseer>> {
        self.fabric.upgrade()?.overseer.get()?.upgrade()
    }

    fn forget(&self, process: usize) {
        if let Some(fabric) = self.fabric.upgrade() {
            fabric.pressure.forget(process);
        }
    }

    /// A word of another process to this one.
    fn control(&self, fabric: &Fabric, from: usize, body: &Bytes) {
        let made_sense = match body.first() {
            Some(&PRESSURE) => fabric.pressure.receive(from, &body[1..]),
            Some(&COMPUTATION) => {
                if let Some(overseer) = self.overseer() {
                    overseer.control(from, body.slice(1..));
                }
                true
            }
            _ => false,
        };
        if !made_sense && let Some(overseer) = self.overseer() {
            overseer.lost(
                from,
                format!("process {from} sent a message that makes no sense"),
            );
        }
    }
}

impl Receive for Inbound {
    fn frame(&self, from: usize, route: Recipient, body: Bytes) {
        let Some(fabric) = self.fabric.upgrade() else {
            return;
        };
        let workers = fabric.doorbells.len();
        let (id, worker, count) = match route {
            Recipient::Control => return self.control(&fabric, from, &body),
            Recipient::Everyone(id) => (id, None, 1),
            Recipient::Sum { id, count, at_once } => {
                if let Some(combiner) = &fabric.combiner
                    && let Err(why) = combiner.relay(from, id, count, at_once, body.clone())
                    && let Some(overseer) = self.overseer()
                {
                    let why = format!("process {from} sent progress that makes no sense: {why}");
                    return overseer.lost(from, why);
                }
                (id, None, count)
            }
            Recipient::Worker(id, worker) if (worker as usize) < workers => {
                (id, Some(worker as usize), 1)
            }
            Recipient::Worker(id, worker) => {
                if let Some(overseer) = self.overseer() {
                    overseer.lost(
                        from,
                        format!(
                            "process {from} sent a message of channel {id} for worker {worker} of a process of {workers}"
                        ),
                    );
                }
                return;
            }
        };
        let bytes = body.len();
        let arrival = Arrival {
            worker,
            count,
            body,
        };
        let arrived = fabric.routes().arrive(id, arrival, workers);
        match arrived {
            Arrived::At(inlet, arrival) => inlet.deliver(arrival),
            Arrived::Kept => fabric.gauge.add(fabric.gauge.others(), bytes),
            Arrived::Dropped(arrival) => {
                let messages = arrival.messages(workers);
                fabric.gauge.taken(fabric.gauge.others(), messages);
            }
        }
        fabric.pressure.weigh();
    }

    fn left(&self, from: usize, how: Farewell) {
        self.forget(from);
        if let Some(overseer) = self.overseer() {
            overseer.left(from, how);
        }
    }

    fn lost(&self, from: usize, why: String) {
        self.forget(from);
        if let Some(overseer) = self.overseer() {
            overseer.lost(from, why);
        }
    }

    fn written(&self, bytes: usize) {
        if let Some(fabric) = self.fabric.upgrade() {
            fabric.gauge.sub(fabric.gauge.others(), bytes);
            fabric.pressure.weigh();
        }
    }

    fn waits(&self) -> bool {
        let fabric = self.fabric.upgrade();
        let combiner = fabric.as_ref().and_then(|fabric| fabric.combiner.as_ref());
        combiner.is_some_and(|combiner| combiner.relay_waits())
    }

    fn time_passes(&self) {
        if let Some(combiner) = self
            .fabric
            .upgrade()
            .and_then(|fabric| fabric.combiner.clone())
        {
            combiner.relay_time_passes(Duration::ZERO);
        }
    }
}
