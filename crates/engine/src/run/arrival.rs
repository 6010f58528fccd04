//! Registries of a worker's channels and open inputs.
//!
//! Owns the registries of readers that are notified of arrivals ([`Arrivals`]), and of inputs that are closed when
//! `main` ends ([`OpenInputs`]). Neither keeps its entries alive.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use pointstamp_channels::ChannelId;
use pointstamp_order::Point;
use rustc_hash::FxHashMap;

use crate::cut::Stands;

/// A reader that is notified when a channel has messages.
pub(crate) trait Arrival {
    /// The channel was empty and has messages now, or it may have.
    fn arrived(&self);
}

/// Something that `main` may leave open and that must be closed for the dataflow to end.
pub(crate) trait Close {
    /// Closes it.
    fn close(&self);

    /// Its time, and whether nothing was sent at it. `None` where it is closed, or may be at any time.
    fn stands(&self) -> Option<(Point, bool)> {
        None
    }
}

/// The readers of channels.
#[derive(Default)]
pub(crate) struct Arrivals(RefCell<FxHashMap<ChannelId, Weak<dyn Arrival>>>);

impl Arrivals {
    /// Registers the reader that is notified when a channel has messages.
    pub(crate) fn expect(&self, id: ChannelId, reader: &Rc<dyn Arrival>) {
        self.0.borrow_mut().insert(id, Rc::downgrade(reader));
        // Another worker may have sent before; if this one was stepping, the event found no sleeper and was dropped.
        reader.arrived();
    }

    /// Notifies the reader of a channel, if it still exists.
    pub(crate) fn arrived(&self, id: ChannelId) {
        let reader = self.0.borrow().get(&id).and_then(Weak::upgrade);
        if let Some(reader) = reader {
            reader.arrived();
        }
    }

    /// Removes the channels of a dataflow that has ended.
    pub(crate) fn forget(&self, dataflow: u32) {
        self.0.borrow_mut().retain(|id, _| id.dataflow != dataflow);
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        self.0.take();
    }
}

/// The inputs that `main` may leave open.
#[derive(Default)]
pub(crate) struct OpenInputs(RefCell<Vec<Weak<dyn Close>>>);

impl OpenInputs {
    /// Adds an input; inputs that no longer exist are removed now and then.
    pub(crate) fn add(&self, input: Weak<dyn Close>) {
        let mut open = self.0.borrow_mut();
        if open.len() >= 64 && open.len().is_power_of_two() {
            open.retain(|input| input.strong_count() > 0);
        }
        open.push(input);
    }

    /// Whether there are any.
    pub(crate) fn are_some(&self) -> bool {
        !self.0.borrow().is_empty()
    }

    /// The times of the inputs; `None` where something was sent at the time of one.
    pub(crate) fn stands(&self) -> Option<Stands> {
        let inputs = self.0.borrow();
        let stands =
            inputs.iter().map(
                |input| match input.upgrade().and_then(|input| input.stands()) {
                    None => Some(None),
                    Some((time, true)) => Some(Some(time.coords().to_vec())),
                    Some((_, false)) => None,
                },
            );
        stands.collect()
    }

    /// Closes them all.
    pub(crate) fn close(&self) {
        for input in self.0.take() {
            if let Some(input) = input.upgrade() {
                input.close();
            }
        }
    }
}
