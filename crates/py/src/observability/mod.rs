//! A worker's reports of itself: the lines that made its operators and capabilities, their contents, and the
//! reasons why it waits.
//!
//! `notes` has the notes while a program runs, for later reports; `frames` finds the line of the program that runs
//! now; `graph` is a dataflow's graph as it is installed; `inquiry` is the way in which any thread asks a worker,
//! which answers between two steps; `receiver_threads` counts the threads that receive messages of other processes;
//! `statistics` is the answer; `record` is the recorder of a worker's events, on request; `guard` ends a program that
//! cannot answer a signal; `diagnostics` are the engine's own messages; `naming` gives the `name=` of a method to its
//! operators.

pub(crate) mod diagnostics;
pub(crate) mod frames;
pub(crate) mod graph;
pub(crate) mod guard;
pub(crate) mod inquiry;
pub(crate) mod naming;
pub(crate) mod notes;
pub(crate) mod receiver_threads;
pub(crate) mod record;
pub(crate) mod statistics;
