//! Tests of rows and expressions against models of a few lines; they run under Miri, too.

mod expressions;
mod rows;
mod values;
