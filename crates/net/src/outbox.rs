//! The outbox: frames that wait to be written to one process, and the turn to write them.
//!
//! Frames are written in the order of the calls. The writing thread has set `busy`; no other writes then. A sender
//! that finds nothing waiting and no thread writing writes a small frame itself, without waiting, which spares it and
//! the receiver a switch of threads; the writer thread writes everything else. A frame of which a part was written is
//! always finished, unless the connection ends.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::frame::{self, HEADER, Kind};
use super::wire::Wire;
use pointstamp_channels::Farewell;
use pointstamp_channels::MAX_BODY;

/// A frame up to this length is written by its sender; a longer one by the writer thread, while the sender continues.
const WRITTEN_BY_SENDER: usize = 32 << 10;
/// Slices handed to the operating system at once, at most (it takes 1024).
const SLICES: usize = 512;
/// Bytes handed to the operating system at once, about: so often is looked for a failure that has to jump the queue.
const BYTES: usize = 1 << 20;

/// A frame that is to be written.
struct Parcel {
    header: [u8; HEADER],
    body: Vec<Bytes>,
    len: usize,
    /// Whether its bytes are those of a message, which are counted.
    counts: bool,
}

impl Parcel {
    fn new(kind: Kind, body: Vec<Bytes>) -> Option<Self> {
        let len = body.iter().map(Bytes::len).sum::<usize>();
        let announced = u32::try_from(len).ok().filter(|_| len <= MAX_BODY)?;
        Some(Parcel {
            header: frame::header(kind, announced),
            body,
            len: HEADER + len,
            counts: matches!(kind, Kind::Message(_)),
        })
    }

    /// Its bytes, so far as they count, without the first `written`.
    fn counted_after(&self, written: usize) -> usize {
        if self.counts { self.len - written } else { 0 }
    }
}

/// The frames that are being written. Only the thread that set `busy` accesses it.
#[derive(Default)]
struct Batch {
    parcels: VecDeque<Parcel>,
    /// Bytes of the first of them that were written.
    written: usize,
}

impl Batch {
    /// The rest of the batch, as far as one call can write it.
    fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut slices = Vec::new();
        let (mut skip, mut bytes) = (self.written, 0);
        for parcel in &self.parcels {
            for part in
                std::iter::once(&parcel.header[..]).chain(parcel.body.iter().map(|part| &part[..]))
            {
                let skipped = skip.min(part.len());
                skip -= skipped;
                if skipped < part.len() {
                    slices.push(IoSlice::new(&part[skipped..]));
                    bytes += part.len() - skipped;
                }
            }
            if slices.len() >= SLICES || bytes >= BYTES {
                break;
            }
        }
        slices.truncate(SLICES);
        slices
    }

    /// Takes note that so many bytes were written, and returns the number of those that count.
    fn advance(&mut self, count: usize) -> usize {
        let mut counted = 0;
        self.written += count;
        let mut before = self.written - count;
        while let Some(first) = self.parcels.front() {
            let now = self.written.min(first.len);
            counted += first.counted_after(before) - first.counted_after(now);
            if now < first.len {
                break;
            }
            self.written -= first.len;
            before = 0;
            self.parcels.pop_front();
        }
        counted
    }

    /// Drops all frames whose writing has not begun, and returns the number of their bytes that count.
    fn abandon(&mut self) -> usize {
        let begun = usize::from(self.written > 0).min(self.parcels.len());
        let dropped = self.parcels.drain(begun..);
        dropped.map(|parcel| parcel.counted_after(0)).sum()
    }

    /// Drops everything, and returns the number of bytes that count.
    fn clear(&mut self) -> usize {
        let dropped = self.abandon();
        let begun = self.parcels.pop_front();
        dropped
            + begun.map_or(0, |parcel| {
                parcel.counted_after(std::mem::take(&mut self.written))
            })
    }
}

#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // facts that are independent of each other
struct State {
    queue: VecDeque<Parcel>,
    /// A thread writes.
    busy: bool,
    /// A sender could not write all of its frame, or TLS has encrypted bytes left to write.
    left_over: bool,
    /// The writer thread sleeps.
    asleep: bool,
    /// Something was written since the last heartbeat was due.
    wrote: bool,
    /// No frames are taken any more.
    shut: bool,
    /// Frames that were not begun are not to be written.
    abandoned: bool,
    /// To be written after everything else, and then nothing.
    farewell: Option<Parcel>,
    /// A farewell was said.
    said: bool,
    /// Nothing is to be written any more, not even a farewell.
    ended: bool,
}

impl State {
    fn waits(&self) -> bool {
        self.left_over || !self.queue.is_empty() || self.farewell.is_some()
    }

    /// Drops all that waits, and returns the number of bytes that count.
    fn abandon(&mut self) -> usize {
        self.abandoned = true;
        let dropped = self.queue.drain(..);
        dropped.map(|parcel| parcel.counted_after(0)).sum()
    }
}

pub(crate) struct Outbox {
    wire: Arc<Wire>,
    state: Mutex<State>,
    batch: Mutex<Batch>,
    wake: Condvar,
}

/// The way in which the writer thread ended.
#[derive(Debug)]
pub(crate) enum End {
    /// It wrote a farewell, or was closed.
    Complete,
    /// The other side takes nothing, or the connection broke.
    Broken(io::Error),
}

impl Outbox {
    pub(crate) fn new(wire: Arc<Wire>) -> Self {
        Outbox {
            wire,
            state: Mutex::default(),
            batch: Mutex::default(),
            wake: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock()
    }

    fn rouse(&self, state: &mut State) {
        if std::mem::replace(&mut state.asleep, false) {
            self.wake.notify_one();
        }
    }

    /// Queues or writes a frame; returns how many bytes were queued, or `None` where the frame is too long.
    pub(crate) fn send(&self, kind: Kind, body: Vec<Bytes>) -> Option<usize> {
        let parcel = Parcel::new(kind, body)?;
        let mut state = self.state();
        if state.shut {
            return Some(0);
        }
        state.wrote = true;
        if state.busy || state.waits() || parcel.len > WRITTEN_BY_SENDER {
            let len = parcel.len;
            state.queue.push_back(parcel);
            self.rouse(&mut state);
            return Some(len);
        }
        state.busy = true;
        drop(state);

        let mut batch = self.batch();
        batch.parcels.push_back(parcel);
        // An error shows again when the writer thread tries.
        let written = self.wire.write(&batch.slices(), false).unwrap_or(0);
        batch.advance(written);
        let rest = batch
            .parcels
            .front()
            .map_or(0, |parcel| parcel.counted_after(batch.written));
        let flushed = batch.parcels.is_empty() && self.wire.flush(false).unwrap_or(false);
        drop(batch);

        let mut state = self.state();
        state.busy = false;
        state.left_over = !flushed;
        if state.waits() || state.ended {
            self.rouse(&mut state);
        }
        Some(rest)
    }

    /// Takes no more frames, and writes the farewell after the waiting frames, or instead of them. Returns
    /// how many bytes were dropped.
    pub(crate) fn farewell(&self, how: &Farewell) -> usize {
        let mut state = self.state();
        if state.said || state.ended {
            return 0;
        }
        state.said = true;
        let (kind, body) = frame::of_farewell(how);
        state.farewell = Parcel::new(kind, vec![body]);
        let dropped = match how {
            Farewell::Done => 0,
            Farewell::Failed { .. } => state.abandon(),
        };
        state.shut = true;
        self.rouse(&mut state);
        dropped
    }

    /// Takes no more frames and drops the waiting ones, which would not be read. A farewell may follow.
    pub(crate) fn abandon(&self) -> usize {
        let mut state = self.state();
        state.shut = true;
        let dropped = state.abandon();
        self.rouse(&mut state);
        dropped
    }

    /// Writes nothing any more.
    pub(crate) fn end(&self) -> usize {
        let mut state = self.state();
        state.shut = true;
        state.ended = true;
        let dropped = state.abandon();
        self.rouse(&mut state);
        dropped
    }

    /// Writes no more than a farewell, if one was said.
    pub(crate) fn close(&self) {
        if !self.state().said {
            self.end();
        }
    }

    /// Runs the writer thread: writes until a farewell is written, or the outbox is closed. `written` is
    /// called with numbers of queued bytes that were written or dropped; a heartbeat is written when nothing
    /// else was for `heartbeat`.
    pub(crate) fn serve(&self, heartbeat: Duration, written: &dyn Fn(usize)) -> End {
        while self.wait_for_work(heartbeat) {
            if let Err(error) = self.write_batch(written) {
                written(self.end() + self.batch().clear());
                return End::Broken(error);
            }
        }
        written(self.batch().clear());
        self.wire.end_writing();
        End::Complete
    }

    /// Waits until there are bytes to write, and takes the role of the writer; false when there will be none
    /// any more.
    fn wait_for_work(&self, heartbeat: Duration) -> bool {
        let mut state = self.state();
        loop {
            if !state.busy && (state.ended || state.waits()) {
                state.busy = true;
                return !state.ended;
            }
            state.asleep = true;
            let timeout = self.wake.wait_for(&mut state, heartbeat);
            state.asleep = false;
            if timeout.timed_out() && !std::mem::replace(&mut state.wrote, false) && !state.waits()
            {
                state.queue.extend(Parcel::new(Kind::Heartbeat, Vec::new()));
            }
        }
    }

    /// Writes all that waits, and whatever comes meanwhile.
    fn write_batch(&self, written: &dyn Fn(usize)) -> io::Result<()> {
        let mut batch = self.batch();
        loop {
            let (next, dropped) = self.refill(&mut batch);
            written(dropped);
            match next {
                Next::Batch => {
                    let count = self.wire.write(&batch.slices(), true)?;
                    written(batch.advance(count));
                }
                Next::Flush => {
                    self.wire.flush(true)?;
                    let mut state = self.state();
                    state.left_over = false;
                    if state.ended || !state.waits() {
                        state.busy = false;
                        return Ok(());
                    }
                }
                Next::Farewell(parcel) => {
                    self.wire.write_all(&parcel.header)?;
                    for part in &parcel.body {
                        self.wire.write_all(part)?;
                    }
                    let mut state = self.state();
                    state.ended = true;
                    state.busy = false;
                    return Ok(());
                }
            }
        }
    }

    /// Takes the next bytes to write, and returns how many bytes were dropped instead.
    fn refill(&self, batch: &mut Batch) -> (Next, usize) {
        let mut state = self.state();
        state.wrote = true;
        if state.ended {
            return (Next::Flush, 0);
        }
        let dropped = if state.abandoned { batch.abandon() } else { 0 };
        if batch.parcels.is_empty() {
            std::mem::swap(&mut batch.parcels, &mut state.queue);
        }
        if !batch.parcels.is_empty() {
            return (Next::Batch, dropped);
        }
        let farewell = state.farewell.take();
        (farewell.map_or(Next::Flush, Next::Farewell), dropped)
    }
}

/// The next task of the writer thread.
enum Next {
    Batch,
    Farewell(Parcel),
    /// Nothing is left except bytes that TLS may hold.
    Flush,
}
