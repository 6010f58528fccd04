//! A computation whose interleaving is determined by a seed.
//!
//! Workers run on threads, but only the one that has the *turn* does anything. Before each step a worker calls
//! [`World::turn`], which draws the next event: a frame of a link between two processes is delivered, or a worker has
//! its turn; or the time has passed for which progress waits in a process that relays it. Nothing else decides the order of events, so a seed gives the same execution each time, as far as the
//! program depends on neither the time nor on threads of its own.
//!
//! Every link keeps its order; links overtake each other, and so do workers. The draw is uneven on purpose, and changes:
//! some workers and links are rarely chosen for a while. The orders in which programs go wrong are those in which one is far behind.
//!
//! A draw costs time in proportion to the number of workers and links.
//!
//! With checkpoints, the thread of a process that writes them is a *writer*, which takes turns as a worker does: one thing that waits for it in each.
//! Draws, and calls of the store that change something, are *steps*. All is killed at a chosen one: from then on calls of the store fail without an
//! effect, and every turn ends with [`Ended::Killed`].

#![forbid(unsafe_code)]

mod draw;
mod link;
mod links;
mod world;

pub use crate::link::Link;
pub use crate::world::{Ended, Found, World};
