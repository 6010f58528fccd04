//! Trees of functions that run as one operator.
//!
//! A function over a stream is a *stage*. Stages that follow one another, with branches, form a tree in one operator:
//! it attaches once for all waiting messages, runs each stage over a whole batch, and passes a stage's results to the
//! stages that read them. A part of a stage's result has an output of the operator only where another operator reads
//! it, so a chain of maps and filters costs one operator, and no function runs twice however many read its result.
//!
//! [`Carried`] is the interface of the data between stages, and of a stage's operation on it.

use pointstamp_engine::error::BoxError;
use pointstamp_operators::{Content, Input, Output};
use pyo3::prelude::*;

use crate::errors::GraphError;
use crate::gil::Held;

/// A part of a stage's result: the numbers of both.
pub(super) type At = (usize, usize);

/// The function that runs a tree over the messages that wait at an operator's input.
pub(super) type Run<K, C> = fn(&Input<C>, &Tree<K, C>) -> Result<(), BoxError>;

/// A tree of stages.
pub(super) struct Tree<K, C: Content> {
    stages: Vec<Stage<K, C>>,
    /// The stages that read the operator's input.
    roots: Vec<usize>,
}

/// One function.
pub(super) struct Stage<K, C: Content> {
    pub(super) kind: K,
    pub(super) name: String,
    pub(super) function: Held,
    /// The readers of each part of the result.
    parts: Vec<Readers<C>>,
}

struct Readers<C: Content> {
    stages: Vec<usize>,
    output: Option<Output<C>>,
}

impl<K, C: Content> Stage<K, C> {
    /// The number of parts of the result.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Whether nothing reads the result.
    pub(super) fn is_unread(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.all(|part| part.stages.is_empty() && part.output.is_none())
    }
}

impl<K, C: Content> Tree<K, C> {
    pub(super) fn new() -> Self {
        Tree {
            stages: Vec::new(),
            roots: Vec::new(),
        }
    }

    /// Adds a stage that reads the operator's input, or a part of an earlier stage's result. Returns its number.
    ///
    /// # Errors
    ///
    /// `GraphError` where there is no such part.
    pub(super) fn add(
        &mut self,
        reads: Option<At>,
        kind: K,
        name: String,
        function: Py<PyAny>,
        parts: usize,
    ) -> PyResult<usize> {
        let number = self.stages.len();
        match reads {
            None => self.roots.push(number),
            Some(at) => self.readers(at)?.stages.push(number),
        }
        let unread = || Readers {
            stages: Vec::new(),
            output: None,
        };
        self.stages.push(Stage {
            kind,
            name,
            function: Held::new(function),
            parts: std::iter::repeat_with(unread).take(parts).collect(),
        });
        Ok(number)
    }

    /// Gives a part of a stage's result its output.
    ///
    /// # Errors
    ///
    /// `GraphError` where there is no such part, or it has an output.
    pub(super) fn set_output(&mut self, at: At, output: Output<C>) -> PyResult<()> {
        let before = self.readers(at)?.output.replace(output);
        if before.is_some() {
            let (stage, part) = at;
            return Err(GraphError::new_err(format!(
                "part {part} of stage {stage} has two outputs in a chain: one stream has any number of readers"
            )));
        }
        Ok(())
    }

    fn readers(&mut self, (stage, part): At) -> PyResult<&mut Readers<C>> {
        let count = self.stages.len();
        let found = self.stages.get_mut(stage);
        let found = found.and_then(|stage| stage.parts.get_mut(part));
        found.ok_or_else(|| {
            GraphError::new_err(format!(
                "a chain of {count} stages has no part {part} of stage {stage}: a stage is described before its readers"
            ))
        })
    }

    /// The name of the operator: the names of the stages.
    pub(super) fn name(&self) -> String {
        let names = self.stages.iter().map(|stage| stage.name.as_str());
        names.collect::<Vec<_>>().join(" > ")
    }

    /// Runs the stages over the contents of a message, or a part of them.
    pub(super) fn run<M: Carried<Kind = K, Content = C>>(
        &self,
        message: &M,
        work: M::Work,
    ) -> Result<(), BoxError> {
        // The remaining work is a stack and no recursion, as chains may be of any length; the stages after one run
        // before its siblings.
        let mut tasks: Vec<Task<'_, M>> = Vec::new();
        let mut next = self.hand_on(&self.roots, None, work, &mut tasks);
        while let Some(task) = next.take().or_else(|| tasks.pop()) {
            next = match task {
                Task::Run(stage, work) => match message.apply(stage, work)? {
                    Made::One(work) => self.pass_on(stage, 0, work, &mut tasks),
                    Made::Several(works) => {
                        let parts = works.into_iter().enumerate().rev();
                        tasks.extend(parts.map(|(part, work)| Task::Pass(stage, part, work)));
                        None
                    }
                    Made::Rest(rest) => Some(Task::Continue(stage, rest)),
                },
                Task::Continue(stage, mut rest) => {
                    let (work, more) = message.take(stage, &mut rest)?;
                    if more {
                        tasks.push(Task::Continue(stage, rest));
                    }
                    self.pass_on(stage, 0, work, &mut tasks)
                }
                Task::Pass(stage, part, work) => self.pass_on(stage, part, work, &mut tasks),
                Task::Send(stage, output, work) => {
                    message.send(stage, output, work)?;
                    None
                }
            };
        }
        Ok(())
    }

    /// Hands a part of a stage's result to its readers.
    fn pass_on<'a, M: Carried<Kind = K, Content = C>>(
        &'a self,
        stage: &'a Stage<K, C>,
        part: usize,
        work: M::Work,
        tasks: &mut Vec<Task<'a, M>>,
    ) -> Option<Task<'a, M>> {
        if M::is_empty(&work) {
            return None;
        }
        let readers = &stage.parts[part];
        let output = readers.output.as_ref().map(|output| (stage, output));
        self.hand_on(&readers.stages, output, work, tasks)
    }

    /// Hands records to stages, and after them to an output. Returns the first of these tasks, and adds the others.
    fn hand_on<'a, M: Carried<Kind = K, Content = C>>(
        &'a self,
        stages: &[usize],
        output: Option<(&'a Stage<K, C>, &'a Output<C>)>,
        work: M::Work,
        tasks: &mut Vec<Task<'a, M>>,
    ) -> Option<Task<'a, M>> {
        let others = match (output, stages) {
            (None, [others @ .., _]) => others,
            (_, all) => all,
        };
        let from = tasks.len();
        let run = |&index: &usize, work| Task::Run(&self.stages[index], work);
        tasks.extend(others.iter().map(|next| run(next, work.clone())));
        // The last reader gets the records themselves: unless another owner shares them, they need not be copied.
        tasks.push(match (output, stages.last()) {
            (Some((stage, output)), _) => Task::Send(stage, output, work),
            (None, Some(last)) => run(last, work),
            (None, None) => return None,
        });
        tasks[from..].reverse();
        tasks.pop()
    }
}

/// A message whose records pass through stages.
pub(super) trait Carried {
    /// The kind of a stage.
    type Kind;
    /// The content of outputs.
    type Content: Content;
    /// Records on their way from a stage to its readers. Clones share them.
    type Work: Clone;
    /// The records that a stage has not made yet: `flat_map`.
    type Rest;

    /// Applies a stage.
    fn apply(
        &self,
        stage: &Stage<Self::Kind, Self::Content>,
        work: Self::Work,
    ) -> Result<Made<Self::Work, Self::Rest>, BoxError>;

    /// Takes a bounded number of a stage's records; returns also whether there may be more.
    fn take(
        &self,
        stage: &Stage<Self::Kind, Self::Content>,
        rest: &mut Self::Rest,
    ) -> Result<(Self::Work, bool), BoxError>;

    /// Sends a stage's result.
    fn send(
        &self,
        stage: &Stage<Self::Kind, Self::Content>,
        output: &Output<Self::Content>,
        work: Self::Work,
    ) -> Result<(), BoxError>;

    /// Whether there are no records.
    fn is_empty(work: &Self::Work) -> bool;
}

/// The result of a stage.
pub(super) enum Made<W, R> {
    /// Its only part.
    One(W),
    /// Its parts; none where nothing reads them.
    Several(Vec<W>),
    /// Its only part, which is made in pieces.
    Rest(R),
}

/// Work that is left to do for a message.
enum Task<'a, M: Carried> {
    /// A stage reads records.
    Run(&'a Stage<M::Kind, M::Content>, M::Work),
    /// A stage continues to make records.
    Continue(&'a Stage<M::Kind, M::Content>, M::Rest),
    /// A part of a stage's result goes to its readers.
    Pass(&'a Stage<M::Kind, M::Content>, usize, M::Work),
    /// A stage's result leaves the operator.
    Send(
        &'a Stage<M::Kind, M::Content>,
        &'a Output<M::Content>,
        M::Work,
    ),
}
