//! Finding out that workers built different dataflows.
//!
//! Progress is counted for the sum of all workers, so a worker with another graph would make every frontier wrong, or
//! stop it for ever. Each worker posts a [`Blueprint`] of its dataflow before it installs it; the first is kept until
//! all have posted, and the first line that differs names the difference. A worker that ends while others built more
//! is detected in the same way. No worker waits here.
//!
//! Each process keeps the same record of all workers: the posts of its own workers are sent to the other processes,
//! which enter them in the same way. The text of a blueprint is sent with the first worker of a process; its others
//! have been compared with it.

use std::collections::{BTreeMap, btree_map};
use std::ops::Range;

use parking_lot::{Mutex, MutexGuard};

use super::blueprint::Blueprint;
use crate::error::Disagreement;

/// The dataflows that the workers have built so far, as far as this process knows.
pub(crate) struct Agreement {
    peers: usize,
    book: Mutex<Book>,
}

struct Book {
    /// By number. A number that no worker installed (its block raised everywhere) is left out.
    dataflows: BTreeMap<usize, Entry>,
    /// Workers that will build no more.
    finished: Vec<bool>,
}

struct Entry {
    name: String,
    /// The blueprint and the worker that posted it, until every worker has posted.
    blueprint: Option<(usize, Blueprint)>,
    /// The worker that built it first, as far as this process knows.
    first: usize,
    posted: Vec<bool>,
    dropped: Vec<bool>,
    /// Workers that are done with it; when all are, the entry goes.
    ended: Vec<bool>,
}

impl Entry {
    fn not_built(&self, dataflow: usize, builder: usize, other: usize) -> Disagreement {
        Disagreement::NotBuilt {
            dataflow,
            name: self.name.clone(),
            builder,
            other,
        }
    }
}

impl Agreement {
    pub(crate) fn new(peers: usize) -> Self {
        let book = Book {
            dataflows: BTreeMap::new(),
            finished: vec![false; peers],
        };
        Agreement {
            peers,
            book: Mutex::new(book),
        }
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock()
    }

    /// Compares the dataflow that `worker` built as number `index` with those of other workers. Where another
    /// process reports that the worker built the same as one before it, there is no blueprint to compare.
    pub(crate) fn post(
        &self,
        worker: usize,
        index: usize,
        name: &str,
        blueprint: Option<Blueprint>,
    ) -> Result<(), Disagreement> {
        let mut book = self.book();
        let book = &mut *book;
        let entry = match book.dataflows.entry(index) {
            btree_map::Entry::Occupied(entry) => entry.into_mut(),
            btree_map::Entry::Vacant(vacant) => vacant.insert(Entry {
                name: name.to_owned(),
                blueprint: None,
                first: worker,
                posted: vec![false; self.peers],
                dropped: vec![false; self.peers],
                ended: vec![false; self.peers],
            }),
        };
        if let Some((theirs, other)) = &entry.blueprint
            && let Some(blueprint) = &blueprint
            && let Some(difference) = blueprint.difference(index, worker, other, *theirs)
        {
            return Err(difference);
        }
        entry.posted[worker] = true;
        let mine = blueprint.map(|blueprint| (worker, blueprint));
        entry.blueprint = entry.blueprint.take().or(mine);
        if !entry.posted.contains(&false) {
            entry.blueprint = None;
        }
        let gone = |&other: &usize| book.finished[other] && !entry.posted[other];
        match (0..self.peers).find(gone) {
            Some(other) => Err(entry.not_built(index, worker, other)),
            None => Ok(()),
        }
    }

    /// Whether a worker of these has posted the dataflow.
    pub(crate) fn has_posted(&self, workers: Range<usize>, index: usize) -> bool {
        let book = self.book();
        let entry = book.dataflows.get(&index);
        entry.is_some_and(|entry| entry.posted[workers].contains(&true))
    }

    /// Notes that `worker` will build no more.
    pub(crate) fn finish(&self, worker: usize) -> Result<(), Disagreement> {
        let mut book = self.book();
        book.finished[worker] = true;
        let missing = |(_, entry): &(&usize, &Entry)| !entry.posted[worker];
        match book.dataflows.iter().find(missing) {
            Some((&index, entry)) => Err(entry.not_built(index, entry.first, worker)),
            None => Ok(()),
        }
    }

    /// Whether no worker builds any more.
    pub(crate) fn all_finished(&self) -> bool {
        !self.book().finished.contains(&false)
    }

    /// Notes that `worker` dropped a dataflow.
    pub(crate) fn dropped(&self, worker: usize, index: usize) {
        if let Some(entry) = self.book().dataflows.get_mut(&index) {
            entry.dropped[worker] = true;
        }
    }

    /// Notes that workers are done with a dataflow, because it is complete or they dropped it.
    pub(crate) fn ended(&self, workers: Range<usize>, index: usize) {
        let mut book = self.book();
        if let Some(entry) = book.dataflows.get_mut(&index) {
            entry.ended[workers].fill(true);
            if !entry.ended.contains(&false) {
                book.dataflows.remove(&index);
            }
        }
    }

    /// Returns the disagreement by which a dataflow that `worker` still has can never end, because another
    /// worker dropped it.
    pub(crate) fn abandoned(&self, worker: usize, index: usize) -> Option<Disagreement> {
        let book = self.book();
        let entry = book.dataflows.get(&index)?;
        let other = entry.dropped.iter().position(|&dropped| dropped)?;
        (!entry.dropped[worker]).then(|| Disagreement::Dropped {
            dataflow: index,
            name: entry.name.clone(),
            dropped: other,
            kept: worker,
        })
    }

    #[cfg(test)]
    fn entries(&self) -> usize {
        self.book().dataflows.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_worker_is_done_with_is_forgotten() {
        let agreement = Agreement::new(4);
        let blueprint = Blueprint::new("flow");
        for worker in [2, 0, 1] {
            let blueprint = (worker != 1).then(|| blueprint.clone());
            agreement.post(worker, 5, "flow", blueprint).unwrap();
        }
        assert!(agreement.has_posted(0..2, 5) && !agreement.has_posted(3..4, 5));
        agreement.ended(0..2, 5);
        agreement.dropped(2, 5);
        agreement.ended(2..3, 5);
        assert!(agreement.abandoned(3, 5).is_some());
        let other = Blueprint::new("float");
        let error = agreement.post(3, 5, "float", Some(other)).unwrap_err();
        let names = Disagreement::Names {
            dataflow: 5,
            here: (3, "float".to_owned()),
            there: (2, "flow".to_owned()),
        };
        assert_eq!(error, names);
        agreement.post(3, 5, "flow", Some(blueprint)).unwrap();
        agreement.ended(3..4, 5);
        assert_eq!(agreement.entries(), 0);
    }
}
