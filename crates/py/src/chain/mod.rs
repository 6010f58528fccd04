//! Functions over records that follow one another, run as one operator.
//!
//! | module | owns |
//! |---|---|
//! | `tree` | trees of stages, and the way of records through them |
//! | `records` | stages over records, and over records at times of their own |
//! | `updates` | stages over the records of a collection |
//!
//! Lowering finds the functions that make a chain (`python/pointstamp/lowering/passes.py`) and gives them in one call.

mod records;
mod tree;
mod updates;

use pointstamp_engine::pact::Pact;
use pointstamp_operators::collections::Updates;
use pointstamp_operators::{Content, Input, Output, Typed};
use pyo3::prelude::*;

use self::records::RecordTree;
use self::tree::{At, Run, Tree};
use self::updates::UpdateTree;
use crate::batch::Batch;
use crate::errors::IntoException;
use crate::kinds::{CollectionStageKind, StageKind};
use crate::stream::Stream;

/// A stage as lowering describes it: its kind, its name, its function, the number of parts of its result, and the part of
/// an earlier stage that it reads, or none for the operator's input.
type Described<K> = (K, String, Py<PyAny>, usize, Option<At>);

/// Runs functions over a stream of records, or of records at times of their own, as one operator. Returns a stream for each
/// of the parts `outputs`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn chain(
    stream: &Stream,
    stages: Vec<Described<StageKind>>,
    outputs: Vec<At>,
) -> PyResult<Vec<Stream>> {
    let mut tree = RecordTree::new();
    let mut kinds = Vec::with_capacity(stages.len());
    for (stage, name, function, parts, reads) in stages {
        tree.add(reads, stage, name, function, parts)?;
        let read = reads.map_or(stream.kind(), |(stage, _)| kinds[stage]);
        kinds.push(records::made_of(stage, read)?);
    }
    let streams = build(&stream.typed::<Batch>()?, tree, &outputs, records::run)?;
    let made = |(made, &(stage, _)): (Typed<Batch>, &At)| {
        Stream::plain(stream.home(), kinds[stage], made.into_stream())
    };
    Ok(streams.into_iter().zip(&outputs).map(made).collect())
}

/// Runs functions over the records of a collection as one operator. Returns a stream for each of the parts `outputs`.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "what pyo3 hands over")]
pub(crate) fn collection_chain(
    stream: &Stream,
    stages: Vec<Described<CollectionStageKind>>,
    outputs: Vec<At>,
) -> PyResult<Vec<Stream>> {
    let mut tree = UpdateTree::new();
    for (kind, name, function, parts, reads) in stages {
        tree.add(reads, kind, name, function, parts)?;
    }
    let streams = build(&stream.typed::<Updates>()?, tree, &outputs, updates::run)?;
    let made = |made| Stream::of(stream.home(), made);
    Ok(streams.into_iter().map(made).collect())
}

/// Adds the operator of a tree. Returns the streams of the parts `outputs`.
fn build<K: 'static, C: Content>(
    stream: &Typed<C>,
    mut tree: Tree<K, C>,
    outputs: &[At],
    run: Run<K, C>,
) -> PyResult<Vec<Typed<C>>> {
    let refused = IntoException::into_exception;
    let builder = stream.scope().operator(&tree.name()).map_err(refused)?;
    let input = Input::new(&builder, stream, Pact::Pipeline).map_err(refused)?;
    let mut streams = Vec::with_capacity(outputs.len());
    for &at in outputs {
        let (output, made) = Output::new(&builder).map_err(refused)?;
        tree.set_output(at, output)?;
        streams.push(made);
    }
    builder.stateless();
    builder.build(move || {
        run(&input, &tree)?;
        Ok(false)
    });
    Ok(streams)
}
