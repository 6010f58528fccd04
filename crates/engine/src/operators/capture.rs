//! A stream as a sequence of events, from which it can be played again.

use pointstamp_order::{ChangeBatch, Point};

use crate::build::operator::OperatorBuilder;
use crate::build::stream::Stream;
use crate::error::{Error, UserResult};
use crate::payload::Payload;
use crate::run::pact::Pact;

/// An event on a stream, in an order that is consistent: no message comes at a time that earlier progress has
/// excluded.
#[derive(Debug, Clone)]
pub enum Event<P> {
    /// Changes to the frontier. The first event adds the minimum time.
    Progress(Vec<(Point, i64)>),
    /// A batch at a time.
    Messages(Point, P),
}

/// Hands every event of a stream, on this worker, to `sink`.
///
/// # Errors
///
/// [`Error::Build`] when the scope is no longer being built.
pub fn capture<P: Payload>(
    stream: &Stream<P>,
    sink: impl FnMut(Event<P>) -> UserResult<()> + 'static,
) -> Result<(), Error> {
    capture_from(stream, |_| Ok(None), sink)
}

/// Hands every event of a stream, on this worker, to `sink`.
///
/// # Arguments
///
/// `begin` declares the state of the operator, and returns the frontier after the events of a checkpoint; `None` where there
/// are no earlier events.
///
/// # Errors
///
/// [`Error::Build`] when the scope is no longer being built; errors of `begin`.
pub fn capture_from<P: Payload, E: From<Error>>(
    stream: &Stream<P>,
    begin: impl FnOnce(&OperatorBuilder<P>) -> Result<Option<Vec<Point>>, E>,
    mut sink: impl FnMut(Event<P>) -> UserResult<()> + 'static,
) -> Result<(), E> {
    let scope = stream.scope();
    let builder = scope.operator("capture")?;
    let input = builder.new_input(stream, Pact::Pipeline)?;
    builder.notify();
    builder.start();
    let minimum = Point::minimum(scope.dims());
    let mut announced = begin(&builder)?;
    builder.build(move || {
        let mut changes = ChangeBatch::new();
        if announced.is_none() {
            changes.update(minimum.clone(), 1);
            sink(Event::Progress(changes.drain().collect()))?;
            announced = Some(vec![minimum.clone()]);
        }
        while let Some((capability, data)) = input.next()? {
            sink(Event::Messages(capability.time().clone(), data))?;
        }
        let frontier = input.frontier().frontier().to_vec();
        if let Some(announced) = &mut announced
            && *announced != frontier
        {
            changes.extend(announced.drain(..).map(|time| (time, -1)));
            changes.extend(frontier.iter().map(|time| (time.clone(), 1)));
            *announced = frontier;
            let changes: Vec<_> = changes.drain().collect();
            if !changes.is_empty() {
                sink(Event::Progress(changes))?;
            }
        }
        Ok(false)
    });
    Ok(())
}
