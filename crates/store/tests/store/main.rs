//! Checkpoints of a small computation, on every store, with everything that can go wrong.

mod at;
mod bytes;
mod computation;
mod damage;
mod design;
mod executions;
mod faults;
mod formats;
mod kill;
mod many;
mod memory;
mod power;
mod stores;
