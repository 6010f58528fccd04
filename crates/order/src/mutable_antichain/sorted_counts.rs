//! Counts of elements in the order of a linear extension.
//!
//! Owns [`SortedCounts`]: sorted blocks of counts, and changes that have been put off. A change is
//! put off for the price of a push until a reader looks, or until there are twice as many as counts;
//! few are then inserted one by one, and many are merged in one pass. Each change costs
//! its share of that: a search among the blocks or, in bulk, a sort and a few moves.
//!
//! In a partial order each block also learns a lower bound of its elements, and one of all later elements, when a
//! search for minimal elements first reaches it. Searches skip blocks that are behind a frontier.

use std::collections::VecDeque;

use crate::PartialOrder;

/// A block is split when it has more entries; fewer where tests run.
const BLOCK: usize = if cfg!(debug_assertions) { 4 } else { 32 };
/// Merging makes blocks of this size, which leaves room.
const FILL: usize = BLOCK / 4 * 3;
/// Up to this many changes are put off, whatever the number of counts.
const PUT_OFF: usize = BLOCK;

#[derive(Clone, Debug)]
pub(super) struct SortedCounts<T> {
    /// None is empty; sorted within and across blocks; no count is zero.
    blocks: VecDeque<Block<T>>,
    /// The number of entries in all blocks.
    len: usize,
    /// Changes in no order, on top of the blocks.
    pending: Vec<(T, i64)>,
    /// An upper bound of the number of negative changes in `pending` and negative counts in `blocks`.
    negative: usize,
    /// Whether the blocks' bounds are kept up; no search has needed them where not.
    bounded: bool,
}

#[derive(Clone, Debug)]
struct Block<T> {
    entries: VecDeque<(T, i64)>,
    /// At or before every element here; absent if unknown.
    bound: Option<T>,
    /// At or before every element here and in the blocks that follow; absent if unknown, and then in all blocks before, too.
    suffix: Option<T>,
}

impl<T> SortedCounts<T> {
    pub(super) const fn new() -> Self {
        Self {
            blocks: VecDeque::new(),
            len: 0,
            pending: Vec::new(),
            negative: 0,
            bounded: false,
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new();
    }

    /// False when certainly no element has a negative count.
    #[inline]
    pub(super) fn may_owe(&self) -> bool {
        self.negative > 0
    }
}

impl<T: PartialOrder + Ord + Clone> SortedCounts<T> {
    /// Changes the count of `element`, sooner or later.
    #[inline]
    pub(super) fn add(&mut self, element: T, diff: i64) {
        self.negative += usize::from(diff < 0);
        self.pending.push((element, diff));
        if self.pending.len() > PUT_OFF.max(2 * self.len) {
            self.settle();
        }
    }

    /// The count of `element`.
    pub(super) fn count_for(&self, element: &T) -> i64 {
        let pending = self.pending.iter().filter(|(other, _)| other == element);
        let pending: i64 = pending.map(|(_, diff)| diff).sum();
        let settled = self.locate(element).and_then(|block| {
            let entries = &self.blocks[block].entries;
            search(entries, element).ok().map(|index| entries[index].1)
        });
        pending + settled.unwrap_or(0)
    }

    /// Removes the count of `element` and returns it.
    pub(super) fn take(&mut self, element: &T) -> i64 {
        self.settle();
        let Some(block) = self.locate(element) else {
            return 0;
        };
        match search(&self.blocks[block].entries, element) {
            Ok(index) => self.remove(block, index).1,
            Err(_) => 0,
        }
    }

    /// Every count, in order.
    pub(super) fn to_vec(&self) -> Vec<(T, i64)> {
        let mut copy = self.clone();
        copy.settle();
        copy.blocks
            .into_iter()
            .flat_map(|block| block.entries)
            .collect()
    }

    /// Calls `found`, in order, with each element that follows `start`, has a positive count, and
    /// comes behind nothing in the frontier, and removes it. `found` adds it to the frontier.
    pub(super) fn take_minimal(
        &mut self,
        start: &T,
        frontier: &mut Vec<T>,
        mut found: impl FnMut(&mut Vec<T>, T, i64),
    ) {
        self.settle();
        if !self.bounded && self.blocks.len() > 2 && !start.totally_ordered() {
            self.blocks.iter_mut().for_each(Block::find_bound);
            self.find_suffixes();
            self.bounded = true;
        }
        let Some(mut at) = self.locate(start) else {
            return;
        };
        let mut index = match search(&self.blocks[at].entries, start) {
            Ok(index) | Err(index) => index,
        };
        let behind = |frontier: &[T], bound: &Option<T>| {
            bound
                .as_ref()
                .is_some_and(|bound| frontier.iter().any(|f| f.less_equal(bound)))
        };
        let mut visited = 0;
        while at < self.blocks.len() {
            if behind(frontier, &self.blocks[at].suffix) {
                break;
            }
            visited += 1;
            if behind(frontier, &self.blocks[at].bound) {
                at += 1;
                index = 0;
                continue;
            }
            let whole = index == 0;
            let blocks = self.blocks.len();
            while let Some((element, count)) = self.blocks[at].entries.get(index) {
                if *count > 0
                    && start.less_equal(element)
                    && !frontier.iter().any(|f| f.less_equal(element))
                {
                    let last = element.totally_ordered();
                    let (element, count) = self.remove(at, index);
                    found(frontier, element, count);
                    if last {
                        return;
                    }
                    if self.blocks.len() < blocks {
                        break;
                    }
                } else {
                    index += 1;
                }
            }
            index = 0;
            if self.blocks.len() == blocks {
                if self.bounded && whole {
                    self.blocks[at].find_bound();
                }
                at += 1;
            }
        }
        // Bounds get loose as elements go; a long walk tightens them.
        if visited > 8 && self.bounded {
            self.find_suffixes();
        }
    }

    /// Applies the changes that were put off.
    pub(super) fn settle(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        if pending.len() > PUT_OFF && pending.len() > self.len / 8 {
            pending.sort_unstable_by(|a, b| a.0.cmp(&b.0));
            self.merge(&mut pending);
        } else {
            for (element, diff) in pending.drain(..) {
                self.negative -= usize::from(diff < 0);
                self.insert(element, diff);
            }
        }
        self.pending = pending;
    }

    /// The block where `element` is, or belongs; none if there are no blocks.
    #[inline]
    fn locate(&self, element: &T) -> Option<usize> {
        let last = self.blocks.len().checked_sub(1)?;
        if last == 0 || self.blocks[last].entries[0].0 <= *element {
            return Some(last);
        }
        if self.blocks[1].entries[0].0 > *element {
            return Some(0);
        }
        let after = self
            .blocks
            .partition_point(|block| block.entries[0].0 <= *element);
        Some(after.saturating_sub(1))
    }

    fn insert(&mut self, element: T, diff: i64) {
        if diff == 0 {
            return;
        }
        let Some(at) = self.locate(&element) else {
            self.negative += usize::from(diff < 0);
            self.len = 1;
            let mut entries = VecDeque::with_capacity(8);
            entries.push_back((element, diff));
            self.bounded = false;
            self.blocks.push_back(Block::new(entries));
            return;
        };
        match search(&self.blocks[at].entries, &element) {
            Ok(index) => {
                let count = &mut self.blocks[at].entries[index].1;
                let before = *count;
                *count += diff;
                let after = *count;
                self.negative += usize::from(after < 0);
                self.negative -= usize::from(before < 0);
                if after == 0 {
                    self.remove(at, index);
                }
            }
            Err(index) => {
                self.negative += usize::from(diff < 0);
                self.len += 1;
                self.lower_bounds(at, &element);
                let block = &mut self.blocks[at];
                block.entries.insert(index, (element, diff));
                if block.entries.len() > BLOCK {
                    self.split(at);
                }
            }
        }
    }

    /// Keeps the bounds below an element that joins the block at `at`.
    #[inline]
    fn lower_bounds(&mut self, at: usize, element: &T) {
        if !self.bounded {
            return;
        }
        lower(&mut self.blocks[at].bound, element);
        // A part below a suffix is below every longer one.
        for index in (0..=at).rev() {
            let suffix = &mut self.blocks[index].suffix;
            if !lower(suffix, element) {
                break;
            }
            if suffix.is_none() {
                self.forget_suffixes(index);
                break;
            }
        }
    }

    /// Forgets the suffixes of the blocks before `end`. The suffix of the block at `end` is unknown.
    fn forget_suffixes(&mut self, end: usize) {
        for block in self.blocks.range_mut(..end).rev() {
            if block.suffix.take().is_none() {
                break;
            }
        }
    }

    fn split(&mut self, at: usize) {
        // In order of arrival, as times often are, a full block stays full.
        let middle = if at + 1 == self.blocks.len() {
            FILL
        } else {
            BLOCK / 2
        };
        let entries = self.blocks[at].entries.split_off(middle);
        let mut second = Block::new(entries);
        if self.bounded {
            second.find_bound();
            second.suffix = match self.blocks.get(at + 1) {
                Some(next) => both(second.bound.as_ref(), next.suffix.as_ref()),
                None => second.bound.clone(),
            };
            self.blocks[at].find_bound();
            if second.suffix.is_none() {
                self.forget_suffixes(at + 1);
            }
        }
        self.blocks.insert(at + 1, second);
    }

    fn remove(&mut self, at: usize, index: usize) -> (T, i64) {
        let entries = &mut self.blocks[at].entries;
        let entry = if index == 0 {
            entries.pop_front()
        } else {
            entries.remove(index)
        };
        let entry = entry.expect("an entry that was just found");
        if entries.is_empty() {
            self.blocks.remove(at);
        }
        self.len -= 1;
        self.negative -= usize::from(entry.1 < 0);
        entry
    }

    /// Merges sorted changes into all blocks.
    fn merge(&mut self, changes: &mut Vec<(T, i64)>) {
        let mut changes = changes.drain(..).peekable();
        let mut merged = Merged::new(&mut self.blocks);
        while let Some(mut entries) = merged.next_old() {
            for entry in entries.drain(..) {
                while let Some(earlier) = changes.next_if(|change| change.0 < entry.0) {
                    merged.add(earlier);
                }
                merged.add(entry);
            }
            merged.spare.push(entries);
        }
        changes.for_each(|change| merged.add(change));
        (self.len, self.negative) = merged.end();
        self.bounded = false;
    }

    fn find_suffixes(&mut self) {
        let mut suffix: Option<T> = None;
        for (index, block) in self.blocks.iter_mut().rev().enumerate() {
            suffix = if index == 0 {
                block.bound.clone()
            } else {
                both(block.bound.as_ref(), suffix.as_ref())
            };
            block.suffix.clone_from(&suffix);
        }
    }
}

impl<T> Block<T> {
    fn new(entries: VecDeque<(T, i64)>) -> Self {
        Self {
            entries,
            bound: None,
            suffix: None,
        }
    }
}

impl<T: PartialOrder + Clone> Block<T> {
    /// Sets the bound to the greatest that is known.
    fn find_bound(&mut self) {
        let mut entries = self.entries.iter();
        self.bound = match entries.next() {
            Some((first, _)) => entries.try_fold(first.clone(), |bound, (element, _)| {
                bound.lower_bound(element)
            }),
            None => None,
        };
    }
}

/// Blocks being written anew, from sorted counts of which several may be for one element. New blocks reuse the memory
/// of blocks that have been read: memory that is freed here and taken again at once would be returned to the system
/// and requested back.
struct Merged<'a, T> {
    /// The blocks that are not read yet, followed by the new ones.
    blocks: &'a mut VecDeque<Block<T>>,
    /// The number of blocks that are not read yet.
    old: usize,
    /// Memory of the blocks that were read, for reuse.
    spare: Vec<VecDeque<(T, i64)>>,
    /// The block that is being written.
    filling: VecDeque<(T, i64)>,
    /// Its next entry, which may be zero still.
    last: Option<(T, i64)>,
    len: usize,
    negative: usize,
}

impl<'a, T: Eq> Merged<'a, T> {
    fn new(blocks: &'a mut VecDeque<Block<T>>) -> Self {
        Self {
            old: blocks.len(),
            blocks,
            spare: Vec::new(),
            filling: VecDeque::with_capacity(BLOCK + 1),
            last: None,
            len: 0,
            negative: 0,
        }
    }

    /// The entries of the next block that has not been read.
    fn next_old(&mut self) -> Option<VecDeque<(T, i64)>> {
        self.old = self.old.checked_sub(1)?;
        self.blocks.pop_front().map(|block| block.entries)
    }

    #[inline]
    fn add(&mut self, (element, diff): (T, i64)) {
        match &mut self.last {
            Some((last, count)) if *last == element => *count += diff,
            last => {
                if let Some(entry) = last.replace((element, diff)) {
                    self.put(entry);
                }
            }
        }
    }

    #[inline]
    fn put(&mut self, entry: (T, i64)) {
        if entry.1 == 0 {
            return;
        }
        self.len += 1;
        self.negative += usize::from(entry.1 < 0);
        if self.filling.len() == FILL {
            let room = self.spare.pop();
            let room = room.unwrap_or_else(|| VecDeque::with_capacity(BLOCK + 1));
            let full = std::mem::replace(&mut self.filling, room);
            self.blocks.push_back(Block::new(full));
        }
        self.filling.push_back(entry);
    }

    /// The number of entries in all blocks, and the number of negative ones.
    fn end(mut self) -> (usize, usize) {
        if let Some(last) = self.last.take() {
            self.put(last);
        }
        if !self.filling.is_empty() {
            self.blocks.push_back(Block::new(self.filling));
        }
        (self.len, self.negative)
    }
}

#[inline]
fn search<T: Ord>(entries: &VecDeque<(T, i64)>, element: &T) -> Result<usize, usize> {
    // Times come and go at the ends more often than elsewhere.
    match entries.back() {
        Some((last, _)) if last < element => Err(entries.len()),
        _ => match entries.front() {
            Some((first, _)) if first > element => Err(0),
            Some((first, _)) if first == element => Ok(0),
            _ => entries.binary_search_by(|(other, _)| other.cmp(element)),
        },
    }
}

/// Lowers a bound to hold for `element` too; true if it had to be.
fn lower<T: PartialOrder>(bound: &mut Option<T>, element: &T) -> bool {
    match bound {
        Some(old) if !old.less_equal(element) => {
            *bound = old.lower_bound(element);
            true
        }
        _ => false,
    }
}

fn both<T: PartialOrder>(a: Option<&T>, b: Option<&T>) -> Option<T> {
    a?.lower_bound(b?)
}
