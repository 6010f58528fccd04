//! Dataflows under construction: scopes, operators and the streams between them, and their installation.

mod crossing;
mod dataflow;
mod downstream;
mod draft;
mod install;
pub mod operator;
pub mod retention;
pub mod scope;
pub mod stream;
