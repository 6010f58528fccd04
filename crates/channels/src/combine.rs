//! Messages that can be added up on their way, and their sums.

use crate::encode::{Encode, Encoder};

/// Messages that can be added up.
pub trait Combine: Encode + Clone {
    /// Adds the content of another message.
    fn add(&mut self, other: &Self);

    /// Takes away the content of another message, which was added before.
    fn subtract(&mut self, other: &Self);

    /// Whether the message is empty, because the changes in it have cancelled. Called once, before it is
    /// sent.
    fn is_nothing(&mut self) -> bool;

    /// Writes the message, as [`Encode::encode`]; it cannot fail.
    fn put(&self, out: &mut Encoder);
}

/// A sum of messages, with their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum<T> {
    /// The number of messages.
    pub count: u32,
    /// Their sum.
    pub message: T,
}

impl<T: Combine> Sum<T> {
    /// Adds another sum to a place that may be empty.
    pub fn add_to(&self, place: &mut Option<Self>) {
        match place {
            None => *place = Some(self.clone()),
            Some(sum) => {
                sum.count = sum.count.saturating_add(self.count);
                sum.message.add(&self.message);
            }
        }
    }

    /// The sum without one that was added before; `None` where no message is left.
    pub fn without(&self, other: &Self) -> Option<Self> {
        let count = self.count.saturating_sub(other.count);
        (count > 0).then(|| {
            let mut message = self.message.clone();
            message.subtract(&other.message);
            Sum { count, message }
        })
    }
}
