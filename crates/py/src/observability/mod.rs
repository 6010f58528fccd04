//! A worker's reports of itself: the lines that made its operators and capabilities, their contents, and the
//! reasons why it waits.
//!
//! `notes` is what is noted while a program runs, so that it can be said later; `frames` finds the line of the program that
//! runs now; `graph` is a dataflow's graph as it is installed; `inquiry` is how any thread asks a worker, which answers
//! between two steps; `hearing` counts the threads that hear other processes; `look` is the answer; `record` is the recorder of all that a worker does, where that was asked for; `guard` ends a
//! program that cannot answer a signal; `diagnostics` is
//! what the engine says of itself; `naming` gives the `name=` of a method to its operators.

pub(crate) mod diagnostics;
pub(crate) mod frames;
pub(crate) mod graph;
pub(crate) mod guard;
pub(crate) mod hearing;
pub(crate) mod inquiry;
pub(crate) mod look;
pub(crate) mod naming;
pub(crate) mod notes;
pub(crate) mod record;
