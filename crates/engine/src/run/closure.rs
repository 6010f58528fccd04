//! An operator that runs: its logic, and what goes with a run of it.

use std::rc::Rc;

use pointstamp_order::Point;

use crate::error::{Error, UserResult};
use crate::payload::Payload;
use crate::run::port::InputCore;
use crate::run::schedule::{Inside, Schedule};
use crate::run::site::Site;

/// An operator's logic. `Ok(true)` keeps the dataflow from ending although no frontier shows why.
pub type Logic = Box<dyn FnMut() -> UserResult<bool>>;

/// Runs the logic of an operator.
pub(crate) struct ClosureOperator<P> {
    pub(crate) name: String,
    pub(crate) inputs: Vec<Rc<InputCore<P>>>,
    /// The inputs that other workers send to.
    pub(crate) remote: Vec<Rc<InputCore<P>>>,
    pub(crate) site: Rc<Site>,
    /// Whether it is told of frontiers.
    pub(crate) notify: bool,
    pub(crate) logic: Option<Logic>,
    /// What moved of its frontiers, which the logic looks at itself; its room is used again.
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
        self.site.room.runs(self.site.id);
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
}
