//! The world: the worker that has the turn, and the next event.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use pointstamp_channels::Receive;

use crate::draw::{Choice, Draw};
use crate::links::{Item, Links};

/// The time for which a worker sleeps where no worker has anything to do: only another thread of the program, or a
/// timer, can change that.
const NAP: Duration = Duration::from_millis(1);

/// The interval at which a worker that waits for its turn looks for questions, while a thread asks.
const LOOKS: Duration = Duration::from_millis(1);

/// The reason why a worker cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// No worker had anything to do, and nothing was on its way.
    Stalled,
    /// All processes are killed.
    Killed,
}

/// The odds of a checkpoint request: about one in so many turns of a writer in which nothing waits for it.
const ASKS: u64 = 24;

/// The result of a worker's turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Found {
    /// Something.
    #[default]
    Something,
    /// Nothing yet.
    Nothing {
        /// Whether it has something to do later, whatever others do.
        is_due: bool,
    },
}

/// The workers of a computation, and the links between its processes.
pub struct World {
    state: Mutex<State>,
    turned: Condvar,
    /// The limit of a time in which nothing happens.
    patience: Duration,
    processes: usize,
    /// The number of workers.
    workers: usize,
}

struct State {
    draw: Draw,
    /// The worker or writer that has the turn.
    holder: Option<usize>,
    /// The workers that have not ended.
    live: BTreeSet<usize>,
    /// The live workers that have found nothing to do since the last event, and whether they are due later.
    idle: BTreeMap<usize, bool>,
    /// Since when nothing has happened at all.
    still: Option<Instant>,
    links: Links,
    /// The receiver of each process, between its start and its end.
    receivers: Vec<Option<Arc<dyn Receive>>>,
    /// The process that is lost, and after how many draws.
    loss: Option<(usize, u64)>,
    /// The process that was lost.
    lost: Option<usize>,
    /// The number of threads that ask waiting workers.
    asking: usize,
    /// Calls of the store so far.
    calls: u64,
    /// The step at which all is killed.
    kill: Option<u64>,
}

impl World {
    /// Creates a world of `processes` with `workers` each. Where `fails`, a process is lost at some moment, if the
    /// computation lasts so long. A worker with the turn gets [`Ended::Stalled`] after nothing has happened for
    /// `patience`, where none is due later.
    pub fn new(
        processes: usize,
        workers: usize,
        seed: u64,
        fails: bool,
        patience: Duration,
    ) -> Arc<World> {
        let mut draw = Draw::new(seed, processes * workers, processes);
        let loss = fails.then(|| draw.loss(processes));
        let live: BTreeSet<usize> = (0..processes * workers).collect();
        let holder = draw.member(&live);
        Arc::new(World {
            state: Mutex::new(State {
                draw,
                holder: Some(holder),
                live,
                idle: BTreeMap::new(),
                still: None,
                links: Links::new(processes),
                receivers: vec![None; processes],
                loss,
                lost: None,
                asking: 0,
                calls: 0,
                kill: None,
            }),
            turned: Condvar::new(),
            patience,
            processes,
            workers: processes * workers,
        })
    }

    /// Adds the writers of checkpoints, one to each process, and kills all at a step, if there is one. To be called before anything else.
    pub fn records(&self, kill: Option<u64>) {
        let mut state = self.state.lock();
        state.kill = kill;
        let members = self.workers..self.workers + self.processes;
        state.draw.add(self.processes);
        state.live.extend(members);
    }

    /// Notes a call of the store; whether it is made, and not after the kill.
    pub fn call(&self) -> bool {
        let mut state = self.state.lock();
        state.calls += 1;
        !state.is_killed()
    }

    /// The number of steps so far.
    pub fn steps(&self) -> u64 {
        self.state.lock().steps()
    }

    /// Whether all was killed.
    pub fn is_killed(&self) -> bool {
        self.state.lock().is_killed()
    }

    /// Waits for the first turn of the writer of a process.
    pub fn enter_writer(&self, process: usize) {
        self.enter(self.workers + process);
    }

    /// Ends the turn of a writer, as that of a worker is, and waits for its next. Returns `false` when the
    /// workers of its process have ended: the writer has had its last turn.
    pub fn turn_writer(&self, process: usize, found: Found) -> bool {
        let writer = self.workers + process;
        // That nothing can happen is a worker's to say.
        let stalled = self.turn(writer, found, &|| ()) == Err(Ended::Stalled);
        if stalled {
            let _again = self.turn(writer, Found::Something, &|| ());
        }
        let workers = self.workers / self.processes;
        let mut of_process = process * workers..(process + 1) * workers;
        let goes_on = of_process.any(|worker| self.state.lock().live.contains(&worker));
        if !goes_on {
            self.leave(writer);
        }
        goes_on
    }

    /// Draws whether a checkpoint is requested now.
    pub fn asks(&self) -> bool {
        self.state.lock().draw.one_of(ASKS)
    }

    /// The number of processes.
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// Waits for the first turn of a worker. Its thread calls this before anything else.
    pub fn enter(&self, worker: usize) {
        self.wait(self.state.lock(), worker, &|| ());
    }

    /// Ends the turn of a worker, which has found so much to do, and waits for its next. While a thread asks
    /// ([`ask`](Self::ask)), `answer` is called again and again, on the worker's thread.
    ///
    /// # Errors
    ///
    /// [`Ended`], and the worker keeps the turn.
    pub fn turn(&self, worker: usize, found: Found, answer: &dyn Fn()) -> Result<(), Ended> {
        let mut state = self.state.lock();
        match found {
            Found::Something => state.stirs(),
            Found::Nothing { is_due } => {
                state.idle.insert(worker, is_due);
            }
        }
        let next = self.next(state)?.ok_or(Ended::Stalled)?;
        let state = self.state.lock();
        if next == worker {
            drop(state);
        } else {
            self.turned.notify_all();
            self.wait(state, worker, answer);
        }
        if self.is_killed() {
            Err(Ended::Killed)
        } else {
            Ok(())
        }
    }

    /// Lets waiting workers answer questions, until [`asked`](Self::asked). The turn stays with its holder.
    pub fn ask(&self) {
        self.state.lock().asking += 1;
        self.turned.notify_all();
    }

    /// Ends the period that [`ask`](Self::ask) began.
    pub fn asked(&self) {
        let mut state = self.state.lock();
        state.asking = state.asking.saturating_sub(1);
    }

    /// Ends the last turn of a worker. Where it was the last worker, all items on links are delivered. A worker whose
    /// thread never began leaves, too: its turn would have no end.
    pub fn leave(&self, worker: usize) {
        let mut state = self.state.lock();
        if !state.live.remove(&worker) || state.holder != Some(worker) {
            return;
        }
        state.stirs();
        while self.next(state).is_err() {
            state = self.state.lock(); // the remaining processes see it in their turns
            state.stirs();
        }
        self.turned.notify_all();
    }

    fn wait(&self, mut state: MutexGuard<'_, State>, worker: usize, answer: &dyn Fn()) {
        while state.holder != Some(worker) {
            if state.asking == 0 {
                self.turned.wait(&mut state);
            } else {
                MutexGuard::unlocked(&mut state, answer);
                if state.holder != Some(worker) {
                    self.turned.wait_for(&mut state, LOOKS);
                }
            }
        }
    }

    /// Executes drawn events until a worker has the turn, and returns the worker. `None` when no worker is
    /// left and no item is on a link.
    fn next<'a>(&'a self, mut state: MutexGuard<'a, State>) -> Result<Option<usize>, Ended> {
        loop {
            if let Some(lost) = state.loses() {
                drop(state);
                self.lose(lost);
                state = self.state.lock();
                state.stirs();
            }
            let State {
                draw,
                live,
                idle,
                links,
                receivers,
                ..
            } = &mut *state;
            let workers = live.iter().copied();
            let ready = workers.filter(|worker| !idle.contains_key(worker));
            let waits = |receiver: &Option<Arc<dyn Receive>>| {
                receiver.as_ref().is_some_and(|receiver| receiver.waits())
            };
            let times = (0..receivers.len()).filter(|&process| waits(&receivers[process]));
            match draw.choose(ready, links.waiting(), times) {
                Some(Choice::Turn(worker)) => {
                    state.holder = Some(worker);
                    return Ok(Some(worker));
                }
                Some(Choice::Frame { from, to }) => {
                    state.stirs();
                    let item = state.links.pop(from, to);
                    let sender = state.receivers[from].clone();
                    let receiver = state.receivers[to].clone();
                    drop(state);
                    if let Some(item) = item {
                        deliver(item, from, sender, receiver);
                    }
                    state = self.state.lock();
                }
                Some(Choice::Time(process)) => {
                    state.stirs();
                    let receiver = state.receivers[process].clone();
                    drop(state);
                    if let Some(receiver) = receiver {
                        receiver.time_passes();
                    }
                    state = self.state.lock();
                }
                None if state.live.is_empty() => {
                    state.holder = None;
                    return Ok(None);
                }
                None => {
                    let since = *state.still.get_or_insert_with(Instant::now);
                    let one_is_due = state.idle.values().any(|is_due| *is_due);
                    if since.elapsed() >= self.patience && !one_is_due {
                        state.stirs();
                        return Err(Ended::Stalled);
                    }
                    state.idle.clear(); // each looks again
                    drop(state);
                    std::thread::sleep(NAP);
                    state = self.state.lock();
                }
            }
        }
    }

    /// The process that was lost, if one was.
    pub fn lost(&self) -> Option<usize> {
        self.state.lock().lost
    }

    /// Loses a process: the items on the links to and from it are dropped, and the others see that it is
    /// lost.
    fn lose(&self, process: usize) {
        for other in (0..self.processes).filter(|&other| other != process) {
            for (from, to) in [(process, other), (other, process)] {
                let why = format!("the connection to process {from} (simulated:{from}) was lost");
                self.end(from, to, Item::Lost(why));
            }
        }
    }

    /// Ends the link from one process to another: its items are dropped, and `last` is delivered as the last
    /// item.
    pub(crate) fn end(&self, from: usize, to: usize, last: Item) {
        let mut state = self.state.lock();
        let dropped = state.links.end(from, to, last);
        let receiver = state.receivers[from].clone();
        drop(state);
        if let Some(receiver) = receiver.filter(|_| dropped > 0) {
            receiver.written(dropped);
        }
    }
}

impl World {
    /// Registers the receiver of a process.
    pub(crate) fn set_receiver(&self, process: usize, receiver: Arc<dyn Receive>) {
        self.state.lock().receivers[process] = Some(receiver);
    }

    /// Drops the items on the links to a process, and its receiver, which refers to the cluster, which refers
    /// to the world.
    pub(crate) fn hears_no_more(&self, process: usize) {
        let mut state = self.state.lock();
        let dropped = state.links.drop_to(process);
        let gone = state.receivers[process].take();
        let senders = state.receivers.clone();
        drop(state);
        drop(gone);
        for (sender, dropped) in senders.into_iter().zip(dropped) {
            if let Some(sender) = sender.filter(|_| dropped > 0) {
                sender.written(dropped);
            }
        }
    }

    /// Puts an item on its way; whether that was accepted.
    pub(crate) fn put(&self, from: usize, to: usize, item: Item) -> bool {
        self.state.lock().links.put(from, to, item)
    }
}

impl State {
    fn steps(&self) -> u64 {
        self.draw.count() + self.calls
    }

    fn is_killed(&self) -> bool {
        self.kill.is_some_and(|kill| self.steps() >= kill)
    }

    /// Something has happened: workers that were idle may have something to do.
    fn stirs(&mut self) {
        self.idle.clear();
        self.still = None;
    }

    /// The process that is lost now, if one is.
    fn loses(&mut self) -> Option<usize> {
        let (process, after) = self.loss?;
        if self.draw.count() < after {
            return None;
        }
        self.loss = None;
        self.lost = Some(process);
        Some(process)
    }
}

/// Delivers an item to a process, and reports to its sender that it is written.
fn deliver(
    item: Item,
    from: usize,
    sender: Option<Arc<dyn Receive>>,
    receiver: Option<Arc<dyn Receive>>,
) {
    let bytes = item.len();
    if let Some(receiver) = receiver {
        match item {
            Item::Frame(route, body) => receiver.frame(from, route, body),
            Item::Left(how) => receiver.left(from, how),
            Item::Lost(why) => receiver.lost(from, why),
        }
    }
    if let Some(sender) = sender.filter(|_| bytes > 0) {
        sender.written(bytes);
    }
}
