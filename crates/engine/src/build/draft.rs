//! An operator under construction, and its description for its scope at installation.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use pointstamp_order::{Antichain, Point, Summary};
use pointstamp_progress::{Connectivity, Port};

use crate::cut::{Form, Outstanding, State};
use crate::error::{BuildError, Error, RestoreError};
use crate::observe::OperatorId;
use crate::payload::Payload;
use crate::run::activation::Activation;
use crate::run::capability::{Capability, OutputCore};
use crate::run::closure::{ClosureOperator, Logic};
use crate::run::notify::Notify;
use crate::run::port::InputCore;
use crate::run::schedule::Description;
use crate::run::site::Site;
use crate::run::taking::{Keeper, Keeps, Lends, Lent, Tray};
use crate::worker::Beginning;

/// The constructor of the shared part of an output.
pub(super) type MakeOutput = fn(usize, Rc<Site>) -> Rc<OutputCore>;

/// The capabilities of one worker, by output and time.
type Own = Vec<(usize, Point, i64)>;

/// An operator under construction.
pub(crate) struct Draft<P: Payload> {
    pub(super) name: String,
    pub(super) identity: String,
    pub(super) dataflow: usize,
    pub(super) dims: usize,
    pub(super) site: Rc<Site>,
    pub(super) inputs: Vec<Rc<InputCore<P>>>,
    pub(super) outputs: Vec<Rc<OutputCore>>,
    /// Summaries that differ from the identity; an empty list is no path.
    pub(super) summaries: BTreeMap<(usize, usize), Vec<Summary>>,
    /// When a frontier makes it run: by input, and for the inputs that are not named.
    pub(super) notify_by_input: BTreeMap<usize, Notify>,
    pub(super) notify: Notify,
    pub(super) start: bool,
    /// Outputs that begin with a capability.
    pub(super) initial: Vec<usize>,
    /// Outputs whose capabilities mark the records that are still needed: see
    /// [`Retention`](super::retention::Retention).
    pub(super) retentions: Vec<usize>,
    /// Outputs on which nothing is sent, each with the one input whose frontier it has.
    pub(super) silent: BTreeMap<usize, usize>,
    /// Whether it may need any record of its inputs for as long as it runs.
    pub(super) retains_forever: bool,
    /// Whether a source that acknowledges is upstream: known when the dataflow is complete.
    pub(super) asked: Rc<Cell<bool>>,
    /// The declaration of the operator's state for checkpoints.
    pub(super) keeps: Keeps,
    /// State that other operators read.
    pub(super) lends: Option<Box<dyn Lends>>,
    /// For an input of main: the number of records that were sent at its time.
    pub(super) position: Option<Box<dyn Fn() -> u64>>,
    pub(super) tray: Rc<Tray<P>>,
    /// Whether it pauses while sources are held. By default an operator without inputs does.
    pub(super) pauses: Option<bool>,
    pub(super) peers: usize,
    /// The state with which the operator begins. Its builder takes the state out.
    pub(super) beginning: Beginning<P>,
    /// The operator's kind and inputs, for comparison with a checkpoint.
    pub(super) form: Form,
    /// Whether its functions are others than at the checkpoint. Known when it is described.
    pub(super) changed: bool,
    /// The capabilities that it has held, by output, and that nobody has taken yet.
    pub(super) purse: BTreeMap<usize, Vec<Capability>>,
    /// The requirement that is not met yet.
    pub(super) missing: Option<BuildError>,
    pub(super) logic: Option<Logic>,
}

impl<P: Payload> Draft<P> {
    /// Returns the operator's description for its scope, and ends the construction.
    ///
    /// # Arguments
    ///
    /// `has_namesakes` says of an identity whether there are others of the same name, in the program or in the checkpoint.
    pub(crate) fn describe(
        &mut self,
        has_namesakes: impl FnOnce(&str) -> bool,
    ) -> Result<Description, Error> {
        if let Some(missing) = self.missing.take() {
            return Err(missing.into());
        }
        if self.logic.is_none() && !self.inputs.is_empty() {
            return Err(BuildError::NeverBuilt(self.name.clone()).into());
        }
        let (inputs, outputs) = (self.inputs.len(), self.outputs.len());
        let identity = Summary::identity(self.dims);
        let mut summary = Connectivity::empty();
        for (port, input) in self.inputs.iter().enumerate() {
            let mut row = Vec::new();
            for output in 0..outputs {
                if self.silent.get(&output).is_some_and(|&of| of != port) {
                    continue;
                }
                let named = self.summaries.get(&(port, output));
                row.push((
                    output,
                    named.cloned().unwrap_or_else(|| vec![identity.clone()]),
                ));
            }
            row.retain(|(_, list)| !list.is_empty());
            for (output, list) in &row {
                summary.set(
                    port,
                    *output,
                    list.iter().cloned().collect::<Antichain<_>>(),
                );
            }
            *input.ticket.summaries.borrow_mut() = row;
            input.ticket.outputs.borrow_mut().clone_from(&self.outputs);
        }
        let (initial, begins) = self.outstanding(has_namesakes)?;
        let (finished, restored) = match self.beginning {
            Beginning::Fresh | Beginning::New(..) => (false, false),
            Beginning::Ended(_) => (true, false),
            Beginning::Goes(..) => (false, true),
        };
        if let Some(lends) = self.lends.take()
            && !self.identity.is_empty()
        {
            self.tray.lend(Lent {
                dataflow: self.dataflow,
                identity: self.identity.clone(),
                name: self.name.clone(),
                lends,
            });
        }
        let named = |port| self.notify_by_input.get(&port).copied();
        let notify: Vec<_> = (0..inputs)
            .map(|port| named(port).unwrap_or(self.notify))
            .collect();
        let is_notified = notify.iter().any(|notify| *notify != Notify::Never);
        Ok(Description {
            name: self.name.clone(),
            inputs,
            outputs,
            summary,
            initial,
            begins,
            finished,
            pauses: self.pauses.unwrap_or(inputs == 0),
            local: true,
            notify,
            start: self.start || restored,
            id: self.site.id,
            progress: Rc::clone(&self.site.progress),
            operator: Box::new(ClosureOperator {
                name: self.name.clone(),
                remote: self
                    .inputs
                    .iter()
                    .filter(|input| input.remote.borrow().is_some())
                    .cloned()
                    .collect(),
                inputs: std::mem::take(&mut self.inputs),
                site: Rc::clone(&self.site),
                notify: is_notified,
                logic: self.logic.take(),
                keeper: Box::new(Keeper {
                    tray: Rc::clone(&self.tray),
                    keeps: std::mem::replace(&mut self.keeps, Keeps::Unsaid),
                    position: self.position.take(),
                    outputs: self.outputs.clone(),
                    form: Arc::new(std::mem::take(&mut self.form)),
                }),
                moved: Vec::new(),
            }),
        })
    }

    /// Returns the initial counts: the capabilities of this worker, and the counts of all workers together.
    fn outstanding(
        &mut self,
        has_namesakes: impl FnOnce(&str) -> bool,
    ) -> Result<(Own, Outstanding), Error> {
        match &self.beginning {
            Beginning::Fresh => {
                let minimum = || Point::minimum(self.dims);
                let own = self.initial.iter().map(|&port| (port, minimum(), 1));
                let peers = self.peers as i64;
                let all = self.initial.iter();
                let all = all.map(|&port| (Port::Source(port), minimum(), peers));
                Ok((own.collect(), all.collect()))
            }
            Beginning::Ended(_) => Ok((Vec::new(), Outstanding::new())),
            Beginning::New(part, said) => {
                let (operator, identity) = (self.name.clone(), part.identity.clone());
                if matches!(self.keeps, Keeps::Nothing) {
                    return Ok((Vec::new(), Outstanding::new()));
                }
                if self.inputs.is_empty() {
                    return Err(RestoreError::NewSource { operator, identity }.into());
                }
                if !said {
                    return Err(RestoreError::Unknown { operator, identity }.into());
                }
                Ok((Vec::new(), Outstanding::new()))
            }
            Beginning::Goes(part, totals) => {
                let fits = totals.iter().all(|(at, time, _)| {
                    let is_there = match *at {
                        Port::Target(input) => input < self.inputs.len(),
                        Port::Source(output) => output < self.outputs.len(),
                    };
                    is_there && time.dims() == self.dims
                });
                let operator = || (self.name.clone(), part.identity.clone());
                if self.form.types_differ(&part.form) {
                    let (operator, identity) = operator();
                    let (before, now) = (part.form.types(), self.form.types());
                    let (before, now) = (before.to_owned(), now.to_owned());
                    return Err(RestoreError::Kind {
                        operator,
                        identity,
                        before,
                        now,
                    }
                    .into());
                }
                if !matches!(self.keeps, Keeps::Nothing)
                    && part.form.inputs != self.form.inputs
                    && has_namesakes(&part.identity)
                {
                    let (operator, identity) = operator();
                    let (before, now) = (part.form.inputs.join(", "), self.form.inputs.join(", "));
                    return Err(RestoreError::Reads {
                        operator,
                        identity,
                        before,
                        now,
                    }
                    .into());
                }
                if !fits {
                    let (operator, identity) = operator();
                    return Err(RestoreError::Shape { operator, identity }.into());
                }
                if !matches!(part.state, None | Some(State::None)) {
                    let (operator, identity) = operator();
                    return Err(RestoreError::Left { operator, identity }.into());
                }
                self.changed = self.form.functions_differ(&part.form);
                let own = part.held.iter();
                let own = own.map(|held| (held.port, held.time.clone(), held.count));
                let (own, totals) = (own.collect(), totals.clone());
                self.purse.clear(); // remaining state is given up
                Ok((own, totals))
            }
        }
    }

    /// Gives up the operator, which will not be installed. Returns its logic and state, to be dropped by the
    /// caller.
    pub(crate) fn give_up(&mut self) -> impl Sized + use<P> {
        self.site.progress.close();
        let keeps = std::mem::replace(&mut self.keeps, Keeps::Unsaid);
        let beginning = std::mem::replace(&mut self.beginning, Beginning::Ended(None));
        self.purse.clear();
        let lends = self.lends.take();
        (
            self.logic.take(),
            keeps,
            lends,
            self.position.take(),
            beginning,
        )
    }

    /// The output on which nothing is ever sent, and whose frontier is the frontier of an input.
    pub(crate) fn silent_output(&mut self, input: usize) -> usize {
        let there = self.silent.iter().find(|&(_, &of)| of == input);
        if let Some((&port, _)) = there {
            return port;
        }
        let port = self.add_output(OutputCore::new).port;
        self.silent.insert(port, input);
        port
    }

    /// The outputs that records of an input may lead to.
    ///
    /// # Arguments
    ///
    /// `retained` includes the outputs of retentions.
    pub(crate) fn outputs_of(&self, input: usize, retained: bool) -> Vec<usize> {
        (0..self.outputs.len())
            .filter(|port| !self.silent.contains_key(port))
            .filter(|port| retained || !self.retentions.contains(port))
            .filter(|&port| {
                let named = self.summaries.get(&(input, port));
                named.is_none_or(|summaries| !summaries.is_empty())
            })
            .collect()
    }

    pub(super) fn add_output(&mut self, make: MakeOutput) -> Rc<OutputCore> {
        let core = make(self.outputs.len(), Rc::clone(&self.site));
        self.outputs.push(Rc::clone(&core));
        core
    }

    /// Whether times do not simply pass from every input to every output.
    pub(crate) fn advances_times(&self) -> bool {
        !self.summaries.is_empty()
    }

    /// Whether it may need any record of its inputs for as long as it runs.
    pub(crate) fn retains_forever(&self) -> bool {
        self.retains_forever
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn id(&self) -> OperatorId {
        self.site.id
    }

    pub(crate) fn activation(&self) -> &Activation {
        &self.site.activation
    }

    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.inputs.len(), self.outputs.len())
    }
}
