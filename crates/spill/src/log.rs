//! Records outside of memory, each found by the hash of its key.
//!
//! Owns [`Log`], of an operator: records in *segments*, files without a name, and for each [`Group`] an index from hashes to
//! places. A group is the states of a mapping, of which an operator may have one for each window. The caller knows keys: a
//! look-up returns all records of a group that have a hash. Invariant: a segment's `live` is the sum of the lengths of the
//! records that indices have in it.
//!
//! A record does not change. One that is removed leaves its index, and is *dead* until its segment goes. Where more bytes
//! are dead than live, segments are rewritten, that with the fewest live bytes first. So the files take about twice what is
//! live at most, and a record is written again once on average for each time that as much has died.
//!
//! Costs: 10 to 20 bytes of memory for a record; a look-up reads some KiB; a removal reads nothing.
//!
//! ```text
//! u32 CRC-32C of all that follows | u32 length | u64 hash | u32 group | the bytes | zeros up to a multiple of 8
//! ```

use std::fs::File;
use std::sync::Arc;

use crc32c::crc32c;
use hashbrown::HashTable;
use pointstamp_arrange::Storage;
use rustc_hash::FxHashMap;

use crate::account::Account;
use crate::error::Error;
use crate::site::Site;

const HEADER: usize = 20;
/// Records begin at multiples of this.
const UNIT: u64 = 8;
/// An entry of the index: the tag, which is a part of the hash, and the place: the segment's slot and the unit in it.
const UNIT_BITS: u32 = 26;
const SLOT_BITS: u32 = 14;
const PLACE_BITS: u32 = UNIT_BITS + SLOT_BITS;
/// The number of tables of the index; the table of a record is a part of its hash, too.
const TABLE_BITS: u32 = 8;
/// The greatest length from which on a segment takes no more: places in it are below 2^26 units.
const GREATEST: u64 = 1 << 28;
/// The bytes that are written at once, and read at once by scans.
const BLOCK: usize = 1 << 18;

/// The place of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(u64);

impl Place {
    fn new(slot: usize, start: u64) -> Self {
        Place(((slot as u64) << UNIT_BITS) | (start / UNIT))
    }

    fn slot(self) -> usize {
        usize::try_from(self.0 >> UNIT_BITS).unwrap_or(usize::MAX)
    }

    fn start(self) -> u64 {
        (self.0 & ((1 << UNIT_BITS) - 1)) * UNIT
    }
}

/// A record that was found: the number of the hash that it was sought by, its place, and its bytes.
#[derive(Clone, Debug)]
pub struct Found {
    /// The number of the hash in the list of those sought.
    pub of: usize,
    /// The place of the record.
    pub place: Place,
    /// The record.
    pub bytes: Vec<u8>,
}

#[derive(Clone)]
struct Segment {
    file: Arc<File>,
    length: u64,
    live: u64,
}

/// A group of records, and its index.
#[derive(Default)]
struct Index {
    /// None until there is a record.
    tables: Vec<HashTable<u64>>,
    count: usize,
    /// The bytes of memory of the tables.
    memory: usize,
    /// The bytes of its records in each segment.
    live: FxHashMap<usize, u64>,
}

impl Index {
    fn insert(&mut self, hash: u64, place: Place, length: usize) {
        if self.tables.is_empty() {
            self.tables.resize_with(1 << TABLE_BITS, HashTable::new);
        }
        let table = &mut self.tables[table(hash)];
        let before = table.allocation_size();
        let entry = tag(hash) << PLACE_BITS | place.0;
        table.insert_unique(spread(tag(hash)), entry, |entry| {
            spread(entry >> PLACE_BITS)
        });
        self.memory += table.allocation_size() - before;
        self.count += 1;
        *self.live.entry(place.slot()).or_default() += taken(length);
    }

    fn remove(&mut self, hash: u64, place: Place, length: usize) -> bool {
        let entry = tag(hash) << PLACE_BITS | place.0;
        let Some(table) = self.tables.get_mut(table(hash)) else {
            return false;
        };
        let Ok(found) = table.find_entry(spread(tag(hash)), |&it| it == entry) else {
            return false;
        };
        found.remove();
        self.count -= 1;
        if let Some(live) = self.live.get_mut(&place.slot()) {
            *live -= taken(length);
            if *live == 0 {
                self.live.remove(&place.slot());
            }
        }
        true
    }

    fn has(&self, hash: u64, place: Place) -> bool {
        let entry = tag(hash) << PLACE_BITS | place.0;
        let table = self.tables.get(table(hash));
        table.is_some_and(|table| table.find(spread(tag(hash)), |&it| it == entry).is_some())
    }

    fn places(&self, hash: u64) -> impl Iterator<Item = Place> {
        let table = self.tables.get(table(hash)).into_iter();
        let entries = table.flat_map(move |table| table.iter_hash(spread(tag(hash))));
        let entries = entries.filter(move |&&entry| entry >> PLACE_BITS == tag(hash));
        entries.map(|entry| Place(entry & ((1 << PLACE_BITS) - 1)))
    }

    /// Tables that have grown keep their size: where little is left in all of them they are made again.
    fn shrink(&mut self) {
        if self.memory > 1 << 16 && self.memory / 64 > self.count {
            for table in &mut self.tables {
                table.shrink_to_fit(|entry| spread(entry >> PLACE_BITS));
            }
            self.memory = self.tables.iter().map(HashTable::allocation_size).sum();
        }
    }
}

/// A group of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group(u32);

/// The records of an operator that are on disk.
pub struct Log {
    account: Arc<Account>,
    groups: FxHashMap<Group, Index>,
    next: u32,
    segments: Vec<Option<Segment>>,
    /// The slot of the segment that is being written.
    current: Option<usize>,
    /// The bytes of live records, and of all files.
    live: u64,
    written: u64,
    count: usize,
    window: Window,
}

impl Log {
    /// A log without records.
    pub fn new(account: Arc<Account>) -> Self {
        Log {
            account,
            groups: FxHashMap::default(),
            next: 0,
            segments: Vec::new(),
            current: None,
            live: 0,
            written: 0,
            count: 0,
            window: Window::default(),
        }
    }

    /// Begins a group.
    pub fn begin(&mut self) -> Group {
        let group = Group(self.next);
        self.next += 1;
        self.groups.insert(group, Index::default());
        group
    }

    /// Forgets a group with all its records.
    pub fn end(&mut self, group: Group) {
        let Some(index) = self.groups.remove(&group) else {
            return;
        };
        self.count -= index.count;
        for (slot, live) in index.live {
            self.release(slot, live);
        }
        self.note();
    }

    /// The number of records of a group.
    pub fn len(&self, group: Group) -> usize {
        self.groups.get(&group).map_or(0, |index| index.count)
    }

    /// The bytes of memory that the index of a group takes, and the bytes of its records.
    pub fn sizes(&self, group: Group) -> (usize, u64) {
        let index = self.groups.get(&group);
        index.map_or((0, 0), |index| (index.memory, index.live.values().sum()))
    }

    /// Says to the budget what the log takes.
    fn note(&self) {
        let memory = self.groups.values().map(|index| index.memory).sum();
        self.account.set(memory, self.written);
    }

    fn site(&self) -> &Site {
        self.account.site()
    }

    /// Adds records to a group. Those of one hash are all kept.
    ///
    /// # Errors
    ///
    /// When the disk has no room. Records that were not written are not kept then.
    pub fn append<B: AsRef<[u8]>>(
        &mut self,
        group: Group,
        records: &[(u64, B)],
    ) -> Result<(), Error> {
        let records = records.iter();
        self.write(records.map(|(hash, record)| (group, mixed(*hash), record.as_ref())))?;
        self.note();
        Ok(())
    }

    /// Adds records by their mixed hashes.
    fn write<'a>(
        &mut self,
        records: impl Iterator<Item = (Group, u64, &'a [u8])>,
    ) -> Result<(), Error> {
        let mut buffer = Vec::new();
        let mut begun = Vec::new();
        for (group, hash, record) in records {
            let Ok(length) = u32::try_from(record.len()) else {
                let cause = std::io::Error::other("the state of one key has more than 4 GiB");
                return Err(self.site().cannot_write(cause));
            };
            let slot = match self.current {
                Some(slot) => slot,
                None => self.begin_segment()?,
            };
            let written = self.segments[slot].as_ref().map_or(0, |it| it.length);
            let at = buffer.len();
            let start = written + at as u64;
            buffer.extend_from_slice(&[0; 4]);
            buffer.extend_from_slice(&length.to_le_bytes());
            buffer.extend_from_slice(&hash.to_le_bytes());
            buffer.extend_from_slice(&group.0.to_le_bytes());
            buffer.extend_from_slice(record);
            let sum = crc32c(&buffer[at + 4..]);
            buffer[at..at + 4].copy_from_slice(&sum.to_le_bytes());
            buffer.resize(buffer.len().next_multiple_of(8), 0);
            begun.push((group, hash, Place::new(slot, start), record.len()));
            let is_full = written + buffer.len() as u64 >= self.target();
            if is_full || buffer.len() >= BLOCK {
                self.flush(slot, &mut buffer, &mut begun)?;
            }
            if is_full {
                self.current = None;
            }
        }
        match self.current {
            Some(slot) if !buffer.is_empty() => self.flush(slot, &mut buffer, &mut begun),
            _ => Ok(()),
        }
    }

    /// The length from which on a segment takes no more.
    fn target(&self) -> u64 {
        let least = 4 * self.account.page_bytes() as u64;
        (self.live / 32).clamp(least, GREATEST)
    }

    /// Begins a segment, and returns its slot.
    fn begin_segment(&mut self) -> Result<usize, Error> {
        let file = Arc::new(self.site().create()?);
        let free = self.segments.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| {
            self.segments.push(None);
            self.segments.len() - 1
        });
        if slot >= 1 << SLOT_BITS {
            let cause = std::io::Error::other("it has 2^14 files, which is the most");
            return Err(self.site().cannot_write(cause));
        }
        self.segments[slot] = Some(Segment {
            file,
            length: 0,
            live: 0,
        });
        self.current = Some(slot);
        Ok(slot)
    }

    /// Writes what was begun, and puts it into the indices.
    fn flush(
        &mut self,
        slot: usize,
        buffer: &mut Vec<u8>,
        begun: &mut Vec<(Group, u64, Place, usize)>,
    ) -> Result<(), Error> {
        let site = self.account.site();
        let Some(segment) = &mut self.segments[slot] else {
            return Ok(());
        };
        if let Err(error) = site.write(&segment.file, buffer) {
            // A part of it may be written: nothing follows that.
            self.current = None;
            return Err(error);
        }
        segment.length += buffer.len() as u64;
        self.written += buffer.len() as u64;
        buffer.clear();
        for (group, hash, place, length) in begun.drain(..) {
            if let Some(index) = self.groups.get_mut(&group) {
                index.insert(hash, place, length);
                segment.live += taken(length);
                self.live += taken(length);
                self.count += 1;
            }
        }
        Ok(())
    }

    /// Returns the records of a group that have some hashes, in the order of their places.
    ///
    /// # Errors
    ///
    /// When one cannot be read, or is not as it was written.
    pub fn find(&mut self, group: Group, hashes: &[u64]) -> Result<Vec<Found>, Error> {
        let Some(index) = self.groups.get(&group).filter(|index| index.count > 0) else {
            return Ok(Vec::new());
        };
        let mut places: Vec<(Place, usize)> = Vec::new();
        for (of, &hash) in hashes.iter().enumerate() {
            places.extend(index.places(mixed(hash)).map(|place| (place, of)));
        }
        places.sort_unstable();
        let ahead = self.usual();
        let mut found = Vec::with_capacity(places.len());
        for (place, of) in places {
            let segment = self.segments[place.slot()].as_ref();
            let site = self.account.site();
            let segment = segment.ok_or_else(|| site.damaged("a file is gone"))?;
            let record = self.window.record(site, segment, place, ahead)?;
            let sought = mixed(hashes[of]);
            if record.group != group
                || table(record.hash) != table(sought)
                || tag(record.hash) != tag(sought)
            {
                return Err(site.damaged("another record is in its place"));
            }
            if record.hash == sought {
                let bytes = record.bytes.to_vec();
                found.push(Found { of, place, bytes });
            }
        }
        self.window.forget();
        Ok(found)
    }

    /// The bytes that a look-up reads: most records are in it.
    fn usual(&self) -> usize {
        let mean = self.live / (self.count.max(1) as u64);
        let mean = usize::try_from(mean).unwrap_or(usize::MAX);
        mean.saturating_mul(2).clamp(1 << 9, 1 << 16)
    }

    /// Forgets a record that was found, by its hash, place and length. Returns whether there was one.
    pub fn remove(&mut self, group: Group, hash: u64, place: Place, length: usize) -> bool {
        self.forget(group, mixed(hash), place, length)
    }

    fn forget(&mut self, group: Group, hash: u64, place: Place, length: usize) -> bool {
        let index = self.groups.get_mut(&group);
        let removed = index.is_some_and(|index| index.remove(hash, place, length));
        if removed {
            self.count -= 1;
            self.release(place.slot(), taken(length));
        }
        removed
    }

    /// Notes that bytes of a segment are not used any more. The segment is removed with the last used ones.
    fn release(&mut self, slot: usize, bytes: u64) {
        self.live -= bytes;
        let Some(segment) = &mut self.segments[slot] else {
            return;
        };
        segment.live -= bytes;
        if segment.live == 0 {
            self.written -= segment.length;
            self.segments[slot] = None;
            if self.current == Some(slot) {
                self.current = None;
            }
        }
    }

    /// Rewrites segments while more bytes are dead than live. To be called now and then.
    ///
    /// # Errors
    ///
    /// When a record cannot be read or written.
    pub fn collect(&mut self) -> Result<(), Error> {
        while self.written - self.live > self.live + self.target() {
            let live = |segment: &Segment| (segment.live << 8) / segment.length.max(1);
            let segments = self.segments.iter().enumerate();
            let emptiest = segments.filter_map(|(slot, it)| Some((live(it.as_ref()?), slot)));
            let Some((_, slot)) = emptiest.min() else {
                break;
            };
            self.rewrite(slot)?;
        }
        for index in self.groups.values_mut() {
            index.shrink();
        }
        self.note();
        Ok(())
    }

    /// Moves the live records of a segment. With the last of them it is gone.
    fn rewrite(&mut self, slot: usize) -> Result<(), Error> {
        if self.current == Some(slot) {
            self.current = None;
        }
        let mut window = Window::default();
        let mut start = 0;
        while let Some(segment) = self.segments[slot].clone()
            && window.is_of(&segment)
            && start < segment.length
        {
            let mut moved: Vec<(Group, u64, Place, Vec<u8>)> = Vec::new();
            let mut length = 0;
            while start < segment.length && length < BLOCK {
                let place = Place::new(slot, start);
                let record = window.record(self.account.site(), &segment, place, BLOCK)?;
                start += taken(record.bytes.len());
                let index = self.groups.get(&record.group);
                if index.is_some_and(|index| index.has(record.hash, place)) {
                    length += record.bytes.len();
                    moved.push((record.group, record.hash, place, record.bytes.to_vec()));
                }
            }
            let records = moved.iter();
            self.write(records.map(|(group, hash, _, bytes)| (*group, *hash, &**bytes)))?;
            for (group, hash, place, bytes) in moved {
                self.forget(group, hash, place, bytes.len());
            }
        }
        Ok(())
    }

    /// Returns the records of a group that have a hash, to be read later, whatever happens to them meanwhile. They keep
    /// their files.
    pub fn pin(&self, group: Group, hash: u64) -> Vec<Pinned> {
        let index = self.groups.get(&group).into_iter();
        let places = index.flat_map(|index| index.places(mixed(hash)));
        let pinned = places.filter_map(|place| {
            Some(Pinned {
                site: self.site().clone(),
                segment: self.segments[place.slot()].clone()?,
                place,
                group,
                hash: mixed(hash),
            })
        });
        pinned.collect()
    }

    /// Returns the records of a group that there are now, for one pass, whatever happens to them meanwhile.
    ///
    /// It takes 8 bytes for each, and keeps the files.
    pub fn scan(&self, group: Group) -> Scan {
        let tables = self
            .groups
            .get(&group)
            .map_or(&[][..], |index| &index.tables);
        let entries = tables.iter().flat_map(HashTable::iter);
        let mut places: Vec<Place> = entries
            .map(|entry| Place(entry & ((1 << PLACE_BITS) - 1)))
            .collect();
        places.sort_unstable();
        Scan {
            site: self.site().clone(),
            segments: self.segments.clone(),
            places,
            next: 0,
            window: Window::default(),
        }
    }
}

/// A record of a moment, if it has the hash that it was sought by.
#[derive(Clone)]
pub struct Pinned {
    site: Site,
    segment: Segment,
    place: Place,
    group: Group,
    hash: u64,
}

impl Pinned {
    /// Reads the record. None where another hash has the same place in the index.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is not as it was written.
    pub fn read(&self) -> Result<Option<Vec<u8>>, Error> {
        let mut window = Window::default();
        let record = window.record(&self.site, &self.segment, self.place, HEADER)?;
        let is_sought = record.group == self.group && record.hash == self.hash;
        Ok(is_sought.then(|| record.bytes.to_vec()))
    }
}

/// The records of a moment, in the order of their places.
pub struct Scan {
    site: Site,
    segments: Vec<Option<Segment>>,
    places: Vec<Place>,
    next: usize,
    window: Window,
}

impl Scan {
    /// Returns further records, of some bytes together; none at the end.
    ///
    /// # Errors
    ///
    /// When one cannot be read, or is not as it was written.
    pub fn some(&mut self, bytes: usize) -> Result<Vec<Vec<u8>>, Error> {
        let mut some = Vec::new();
        let mut length = 0;
        while length < bytes
            && let Some(&place) = self.places.get(self.next)
        {
            let segment = self.segments[place.slot()].as_ref();
            let segment = segment.ok_or_else(|| self.site.damaged("a file is gone"))?;
            let record = self.window.record(&self.site, segment, place, BLOCK)?;
            length += record.bytes.len().max(1);
            some.push(record.bytes.to_vec());
            self.next += 1;
        }
        Ok(some)
    }
}

/// A record as it is in a file.
struct Record<'a> {
    group: Group,
    hash: u64,
    bytes: &'a [u8],
}

/// The bytes of a file that were read last.
#[derive(Default)]
struct Window {
    of: Option<Arc<File>>,
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// Returns a record; reads so many bytes ahead.
    fn record(
        &mut self,
        site: &Site,
        segment: &Segment,
        place: Place,
        ahead: usize,
    ) -> Result<Record<'_>, Error> {
        let start = place.start();
        let header = self.at(site, segment, start, HEADER, ahead)?;
        let number = |at: usize| header[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let (sum, length) = (number(0), number(4) as usize);
        let hash = header[8..16].try_into().map_or(0, u64::from_le_bytes);
        let group = Group(number(16));
        let record = self.at(site, segment, start, HEADER + length, ahead)?;
        if crc32c(&record[4..]) != sum {
            return Err(site.damaged("the checksum of a record is another"));
        }
        Ok(Record {
            group,
            hash,
            bytes: &record[HEADER..],
        })
    }

    fn at(
        &mut self,
        site: &Site,
        segment: &Segment,
        start: u64,
        length: usize,
        ahead: usize,
    ) -> Result<&[u8], Error> {
        let end = start + length as u64;
        let is_same = |of: &Arc<File>| Arc::ptr_eq(of, &segment.file);
        let has = self.of.as_ref().is_some_and(is_same)
            && self.start <= start
            && end <= self.start + self.bytes.len() as u64;
        if !has {
            if end > segment.length {
                return Err(site.damaged("a record is cut"));
            }
            let rest = usize::try_from(segment.length - start).unwrap_or(usize::MAX);
            // What it has of it is not read again.
            let before = start.checked_sub(self.start).filter(|_| {
                let of = self.of.as_ref();
                of.is_some_and(is_same)
            });
            let before = before.and_then(|before| usize::try_from(before).ok());
            let before = before.map_or(self.bytes.len(), |before| before.min(self.bytes.len()));
            self.of = None;
            self.bytes.drain(..before);
            let known = self.bytes.len();
            self.bytes.resize(length.max(ahead).min(rest), 0);
            site.read(
                &segment.file,
                &mut self.bytes[known..],
                start + known as u64,
            )?;
            self.start = start;
            self.of = Some(Arc::clone(&segment.file));
        }
        let at = usize::try_from(start - self.start).unwrap_or(usize::MAX);
        Ok(&self.bytes[at..at + length])
    }

    /// Whether it is of a segment, or of none yet.
    fn is_of(&self, segment: &Segment) -> bool {
        let is_same = |of: &Arc<File>| Arc::ptr_eq(of, &segment.file);
        self.of.as_ref().is_none_or(is_same)
    }

    /// Lets go of the file, which may be removed.
    fn forget(&mut self) {
        self.of = None;
        if self.bytes.len() > BLOCK {
            self.bytes = Vec::new();
        }
    }
}

/// The bytes that a record of so many takes in a file.
fn taken(length: usize) -> u64 {
    (HEADER + length).next_multiple_of(8) as u64
}

const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Spreads a hash: those of small numbers may be the numbers.
fn mixed(hash: u64) -> u64 {
    (hash ^ hash >> 32).wrapping_mul(MULTIPLIER)
}

fn table(hash: u64) -> usize {
    usize::try_from(hash >> (64 - TABLE_BITS)).unwrap_or(0)
}

fn tag(hash: u64) -> u64 {
    hash << TABLE_BITS >> PLACE_BITS
}

/// The hash by which a table places a tag.
fn spread(tag: u64) -> u64 {
    tag.wrapping_mul(MULTIPLIER)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pointstamp_testkit::cases;
    use proptest::prelude::*;

    use super::*;
    use crate::budget::Budget;

    fn log(folder: &std::path::Path) -> Log {
        // The least segment has 4 pages of 64 bytes.
        let budget = Budget::new(64 << 10, folder).unwrap();
        Log::new(Account::new(&budget, "totals"))
    }

    #[derive(Clone, Debug)]
    enum Step {
        Append(usize, Vec<(u64, Vec<u8>)>),
        Take(usize, Vec<u64>),
        End(usize),
        Collect,
        Scan(usize),
    }

    /// Takes a mixed hash back.
    fn unmixed(hash: u64) -> u64 {
        // Newton's iteration for the inverse: each step doubles the bits that are right, of which three are at first.
        let mut inverse = MULTIPLIER;
        for _ in 0..5 {
            inverse = inverse.wrapping_mul(2_u64.wrapping_sub(MULTIPLIER.wrapping_mul(inverse)));
        }
        let hash = hash.wrapping_mul(inverse);
        hash ^ hash >> 32
    }

    /// Few hashes: each agrees with another in what the index keeps of it.
    fn hash() -> impl Strategy<Value = u64> {
        (0..20_u64, 0..2_u64).prop_map(|(kept, rest)| unmixed(kept << 50 | kept << 32 | rest))
    }

    fn step() -> impl Strategy<Value = Step> {
        let bytes = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40),
            (any::<u8>(), 0..2000_usize).prop_map(|(byte, len)| vec![byte; len]),
        ];
        let some = proptest::collection::vec((hash(), bytes), 1..20);
        let hashes = proptest::collection::vec(hash(), 1..20);
        prop_oneof![
            6 => (0..2_usize, some).prop_map(|(group, some)| Step::Append(group, some)),
            4 => (0..2_usize, hashes).prop_map(|(group, hashes)| Step::Take(group, hashes)),
            1 => (0..2_usize).prop_map(Step::End),
            2 => Just(Step::Collect),
            2 => (0..2_usize).prop_map(Step::Scan),
        ]
    }

    fn scanned(mut scan: Scan) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        loop {
            let some = scan.some(100).unwrap();
            if some.is_empty() {
                all.sort();
                return all;
            }
            all.extend(some);
        }
    }

    type Model = BTreeMap<u64, Vec<Vec<u8>>>;

    fn listed(model: &Model) -> Vec<Vec<u8>> {
        let mut all: Vec<_> = model.values().flatten().cloned().collect();
        all.sort();
        all
    }

    proptest! {
        #![proptest_config(cases(200))]

        #[test]
        fn records_are_those_of_a_model(steps in proptest::collection::vec(step(), 1..60)) {
            let folder = tempfile::tempdir().unwrap();
            let mut log = log(folder.path());
            let mut groups = [log.begin(), log.begin()];
            let mut models = [Model::new(), Model::new()];
            let mut scans = Vec::new();
            for step in steps {
                match step {
                    Step::Append(at, some) => {
                        log.append(groups[at], &some).unwrap();
                        for (hash, bytes) in some {
                            models[at].entry(hash).or_default().push(bytes);
                        }
                    }
                    Step::Take(at, mut hashes) => {
                        let group = groups[at];
                        hashes.sort_unstable();
                        hashes.dedup();
                        let mut found = vec![Vec::new(); hashes.len()];
                        for one in log.find(group, &hashes).unwrap() {
                            let (hash, length) = (hashes[one.of], one.bytes.len());
                            prop_assert!(log.remove(group, hash, one.place, length));
                            prop_assert!(!log.remove(group, hash, one.place, length));
                            found[one.of].push(one.bytes);
                        }
                        for (hash, mut found) in hashes.into_iter().zip(found) {
                            let mut expected = models[at].remove(&hash).unwrap_or_default();
                            found.sort();
                            expected.sort();
                            prop_assert_eq!(found, expected);
                        }
                    }
                    Step::End(at) => {
                        log.end(groups[at]);
                        prop_assert!(log.find(groups[at], &[unmixed(0)]).unwrap().is_empty());
                        groups[at] = log.begin();
                        models[at].clear();
                    }
                    Step::Collect => {
                        log.collect().unwrap();
                        prop_assert!(log.written <= 2 * log.live + log.target());
                    }
                    Step::Scan(at) => scans.push((log.scan(groups[at]), listed(&models[at]))),
                }
                for (group, model) in groups.iter().zip(&models) {
                    prop_assert_eq!(log.len(*group), model.values().map(Vec::len).sum::<usize>());
                }
                let segments = log.segments.iter().flatten();
                let sums = segments.fold((0, 0), |sums, it| (sums.0 + it.live, sums.1 + it.length));
                prop_assert_eq!(sums, (log.live, log.written));
                let lives: u64 = groups.iter().map(|group| log.sizes(*group).1).sum();
                prop_assert_eq!(lives, log.live);
                log.note();
                prop_assert_eq!(log.site().budget.on_disk(), log.written);
            }
            for (scan, expected) in scans {
                prop_assert_eq!(scanned(scan), expected, "a scan is of its moment");
            }
        }

        #[cfg(unix)]
        #[test]
        fn a_changed_byte_is_noticed(at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            use std::os::unix::fs::FileExt;
            let folder = tempfile::tempdir().unwrap();
            let mut log = log(folder.path());
            let group = log.begin();
            log.append(group, &[(1, [1; 20]), (2, [2; 20])]).unwrap();
            let segment = log.segments[0].clone().unwrap();
            let at = at.index(usize::try_from(segment.length).unwrap()) as u64;
            let mut byte = [0];
            segment.file.read_exact_at(&mut byte, at).unwrap();
            segment.file.write_all_at(&[byte[0] ^ 1 << bit], at).unwrap();
            let damaged = [1, 2].map(|hash| log.find(group, &[hash]).is_err());
            prop_assert_eq!(damaged, [at < 40, at >= 40]);
        }
    }

    #[test]
    fn each_call_of_the_disk_may_fail_once() {
        let some: Vec<_> = (0..200_u64)
            .map(|number| (number, number.to_le_bytes()))
            .collect();
        let mut failures = 0;
        for calls in 0.. {
            let folder = tempfile::tempdir().unwrap();
            let mut log = log(folder.path());
            log.site().budget.fail_after(calls);
            let work = |log: &mut Log| {
                let group = log.begin();
                log.append(group, &some)?;
                for number in 0..150 {
                    for one in log.find(group, &[number])? {
                        log.remove(group, number, one.place, one.bytes.len());
                    }
                }
                log.collect()?;
                let mut scan = log.scan(group);
                while !scan.some(10)?.is_empty() {}
                Ok::<_, Error>(())
            };
            match work(&mut log) {
                Ok(()) => break,
                Err(error) => {
                    failures += 1;
                    let error = error.to_string();
                    assert!(error.starts_with("totals cannot"), "{error}");
                    assert!(error.contains(folder.path().to_str().unwrap()), "{error}");
                }
            }
        }
        assert!(failures > 150, "{failures}");
    }
}
