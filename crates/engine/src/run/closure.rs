//! A running operator: its logic, and the state of a run.

use std::rc::Rc;
use std::sync::Arc;

use pointstamp_order::Point;

use crate::cut::State;
use crate::error::{Error, UserResult};
use crate::payload::Payload;
use crate::run::port::InputCore;
use crate::run::schedule::{Inside, Schedule};
use crate::run::site::Site;
use crate::run::taking::{Keeper, Keeps, Kept, Taking};

/// An operator's logic. `Ok(true)` keeps the dataflow from ending although no frontier shows why.
pub type Logic = Box<dyn FnMut() -> UserResult<bool>>;

/// Runs the logic of an operator.
pub(crate) struct ClosureOperator<P: Payload> {
    pub(crate) name: String,
    pub(crate) inputs: Vec<Rc<InputCore<P>>>,
    /// The inputs that other workers send to.
    pub(crate) remote: Vec<Rc<InputCore<P>>>,
    pub(crate) site: Rc<Site>,
    /// Whether its logic runs when frontiers move.
    pub(crate) notify: bool,
    pub(crate) logic: Option<Logic>,
    /// The taker of its part of a checkpoint.
    pub(crate) keeper: Box<Keeper<P>>,
    /// Changes of frontiers, which the logic reads itself; the memory is reused.
    pub(crate) moved: Vec<(Point, i64)>,
}

impl<P: Payload> Schedule for ClosureOperator<P> {
    fn schedule(&mut self) -> Result<bool, Error> {
        if self.notify {
            let mut changes = self.site.progress.frontiers.borrow_mut();
            for ((port, time), diff) in changes.drain() {
                let mut frontier = self.inputs[port].frontier.borrow_mut();
                frontier.update_into(time, diff, &mut self.moved);
            }
            self.moved.clear();
        }
        let Some(logic) = &mut self.logic else {
            return Ok(false);
        };
        self.site.observers.runs(self.site.id);
        let result = logic();
        self.site.expire();
        let incomplete = result.map_err(|cause| Error::Operator {
            operator: self.name.clone(),
            cause,
        })?;
        // Logic that takes one message at a time is called again; logic that took none waits for something else.
        let took = !self.site.progress.consumed.borrow_mut().is_empty();
        if took
            && (self.site.backlog.get() > 0 || self.remote.iter().any(|input| input.has_remote()))
        {
            self.site.activation.run();
        }
        Ok(incomplete)
    }

    fn inspect(&mut self, _address: &[usize]) -> Inside {
        Inside::Operator(self.inputs.iter().map(|input| input.waiting()).collect())
    }

    fn pull(&mut self) -> Result<(), Error> {
        self.remote.iter().try_for_each(|input| input.pull())
    }

    fn take(&mut self, _taking: &mut Taking) -> Result<(), Error> {
        let Keeper {
            tray,
            keeps,
            position,
            outputs,
            form,
        } = &mut *self.keeper;
        let state = match keeps {
            Keeps::Unsaid => None,
            Keeps::Nothing => Some(State::None),
            Keeps::State(take) => {
                let taken = take().map_err(|cause| Error::Operator {
                    operator: self.name.clone(),
                    cause,
                })?;
                Some(taken)
            }
        };
        let kept = Kept {
            form: Arc::clone(form),
            queued: self.inputs.iter().flat_map(|it| it.queued()).collect(),
            state,
            latest: outputs.iter().map(|output| output.latest()).collect(),
            position: position.as_ref().map(|position| position()),
        };
        tray.put(self.site.id, kept);
        Ok(())
    }
}
