//! Objects that can be removed: everything that the newest entry of the log does not need, and that no one writes.

use std::collections::HashSet;

use crate::entry::Kept;
use crate::error::Error;
use crate::log;
use crate::names::{Name, Turn};
use crate::store::Store;

/// The needed objects, as one execution knows them. Objects of later executions are not considered: they may
/// have overtaken it.
#[derive(Debug)]
pub(crate) struct Garbage<'a> {
    /// The number of the newest entry of the log.
    pub(crate) newest: u64,
    /// The manifests that it keeps.
    pub(crate) kept: &'a [Kept],
    /// The last turn whose packs may be removed.
    pub(crate) until: Turn,
    /// An earlier turn whose packs are needed nevertheless.
    pub(crate) open: Option<Turn>,
    /// Whether no one else writes the head.
    pub(crate) own: bool,
}

impl Garbage<'_> {
    /// Removes it; returns how many objects that were.
    pub(crate) fn remove(&self, store: &dyn Store) -> Result<usize, Error> {
        let kept: HashSet<u64> = self.kept.iter().map(|kept| kept.number).collect();
        let named: HashSet<&str> = self
            .kept
            .iter()
            .flat_map(|kept| &kept.packs)
            .map(String::as_str)
            .collect();
        // Of a manifest that was lost nobody knows the packs; a copy of it may be put back.
        let lost = self.kept.iter().any(|kept| kept.packs.is_empty());
        let abandoned = |turn: Turn| !lost && turn <= self.until && Some(turn) != self.open;
        let mut removed = 0;
        for number in log::numbers(store)? {
            if number < self.newest && !kept.contains(&number) {
                store.delete(&Name::Log(number).to_string())?;
                removed += 1;
            }
        }
        for (name, turn, _) in log::packs(store)? {
            if abandoned(turn) && !named.contains(name.as_str()) {
                store.delete(&name)?;
                removed += 1;
            }
        }
        store.sweep(&|name| match Name::parse(name) {
            Some(Name::Head) => self.own,
            Some(Name::Log(number)) => number <= self.newest,
            Some(Name::Pack(turn, _)) => abandoned(turn),
            None => false,
        })?;
        Ok(removed)
    }
}
