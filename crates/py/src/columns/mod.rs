//! Streams of Arrow record batches: the native part of `pointstamp.ArrowStream`.
//!
//! A batch enters Rust once and leaves it only for a function of the user's. The operators are those of
//! `pointstamp_operators::columns`; this module has their arguments, and the operators that call a function with a
//! batch (`map`).

pub(crate) mod ffi;
pub(crate) mod input;
pub(crate) mod kernel;
pub(crate) mod map;
pub(crate) mod operators;
pub(crate) mod schema;
pub(crate) mod selection;
