//! Tests of operators: each on one to four workers against recomputation, and what is refused.

mod batches;
mod columns;
mod components;
mod programs;
mod refusals;
mod support;
mod traces;
