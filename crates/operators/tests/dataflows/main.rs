//! Operators over columns against recomputation with plain maps, on several workers and with several times open at once; and
//! captures, written and played.

mod aggregate;
mod captures;
mod in_time;
mod keyed;
mod movement;
mod program;
mod timed;
