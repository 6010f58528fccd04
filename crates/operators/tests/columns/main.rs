//! Operators over columns against recomputation with plain maps, on several workers and with several times open at once.

mod aggregate;
mod in_time;
mod keyed;
mod movement;
mod program;
mod timed;
