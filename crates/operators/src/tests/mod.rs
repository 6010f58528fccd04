//! Tests of operators: each on one to four workers against recomputation, and refused input.

mod batches;
mod columns;
mod components;
mod cuts;
mod cuts_of_traces;
mod programs;
mod refusals;
mod support;
mod traces;
