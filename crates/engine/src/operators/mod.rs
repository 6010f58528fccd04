//! Operators that need no user code: they move batches and never look into them.

mod capture;
mod concatenate;
mod feedback;
mod forward;
mod input;
mod probe;
mod unordered;

pub use capture::{Event, capture, capture_from};
pub use concatenate::concatenate;
pub use feedback::LoopHandle;
pub use input::{Input, Standing};
pub use unordered::UnorderedInput;

pub use crate::run::probe::Probe;
