//! Collections: the native part of `pointstamp.Collection`.
//!
//! A stream of a collection carries batches of updates: rows (`pointstamp_rows`), each with a time and a diff. Functions over records run as chains (`crate::chain`), which make objects of rows and rows of objects, once for a
//! batch. Everything that keeps state keeps it in arrangements of the crate `pointstamp-arrange`, and runs without the
//! interpreter.

pub(crate) mod aggregate;
pub(crate) mod arrange;
pub(crate) mod columns;
pub(crate) mod expression;
pub(crate) mod failure;
pub(crate) mod given;
pub(crate) mod input;
pub(crate) mod join;
pub(crate) mod play;
pub(crate) mod project;
pub(crate) mod records;
pub(crate) mod reduce;
pub(crate) mod shape;
pub(crate) mod trace;
pub(crate) mod values;
