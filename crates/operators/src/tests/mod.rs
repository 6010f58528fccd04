//! Tests of operators: each on one to four workers against recomputation, and what is refused.

mod programs;
mod support;
