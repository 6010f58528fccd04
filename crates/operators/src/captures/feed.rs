//! The events of one capture: read from a file, or from bytes that another thread brings.
//!
//! One lock guards a feed. It is held while a file is read, which may take long; batches are decoded without it. The bytes that a
//! thread brings are bounded: it waits while [`ROOM`] bytes are there that were not taken.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex, MutexGuard};
use pointstamp_engine::error::BoxError;
use pointstamp_engine::payload::Payload;
use pointstamp_engine::wakeups::RemoteActivator;
use pointstamp_events::{Contents, Decoder, EncodedEvent, Item, Promise, Run, Start};
use pointstamp_order::Point;

use super::body::{self, Undecoded};
use super::capture_file::KnownFile;
use super::error::CaptureError;
use crate::batch::Batch;

/// The number of bytes that a feed holds before a thread that adds more waits, unless the current event needs more.
const ROOM: usize = 16 << 20;

/// The events of one capture, each to be taken once. Clones share it; it may be fed and read from any thread.
#[derive(Clone)]
pub struct Feed(Arc<Shared>);

/// Ends the thread that feeds.
type Stop = Box<dyn FnOnce() + Send>;

struct Shared {
    state: Mutex<State>,
    room: Condvar,
    /// For messages.
    name: String,
    stop: Mutex<Option<Stop>>,
}

struct State {
    decoder: Decoder,
    input: Input,
    promise: Option<Promise>,
    schema: Option<SchemaRef>,
    /// Whether a replay has claimed the feed.
    claimed: bool,
    reader: Option<RemoteActivator>,
    /// No more bytes are needed.
    closed: bool,
    /// The mark of the file before the end of the last event, once the file is closed.
    mark: Option<u32>,
}

enum Input {
    File {
        file: Option<KnownFile>,
        path: PathBuf,
        follow: bool,
    },
    Fed(Feeding),
}

/// The state of a thread that feeds.
enum Feeding {
    Going,
    Ended,
    Failed(BoxError),
}

/// The next item of a feed.
pub enum Next {
    /// An event: its offset, its kind of contents, and its bytes. It keeps the promise of the stream, except
    /// for the number of records.
    Event(u64, Contents, EncodedEvent),
    /// Nothing yet.
    Wait {
        /// Whether a file must be polled later; a thread that feeds wakes the replay itself.
        ask: bool,
    },
    /// Nothing any more.
    End {
        /// Whether the stream was complete.
        complete: bool,
    },
}

/// The beginning of a capture: the number of coordinates of its times, and the schema of columns.
pub type Beginning = (usize, Option<SchemaRef>);

impl Feed {
    /// Makes a feed of a file, which is opened when something of it is wanted. With `follow` the file may grow, or be there later.
    pub fn open(name: String, path: PathBuf, follow: bool) -> Self {
        let file = None;
        Feed::new(name, Input::File { file, path, follow })
    }

    /// Makes a feed of bytes that a thread brings.
    pub fn fed(name: String) -> Self {
        Feed::new(name, Input::Fed(Feeding::Going))
    }

    fn new(name: String, input: Input) -> Self {
        let state = State {
            decoder: Decoder::new(),
            input,
            promise: None,
            schema: None,
            claimed: false,
            reader: None,
            closed: false,
            mark: None,
        };
        Feed(Arc::new(Shared {
            state: Mutex::new(state),
            room: Condvar::new(),
            name,
            stop: Mutex::default(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    /// Returns the name of the capture, for messages.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Has an operator run when something comes.
    pub(super) fn wake(&self, reader: RemoteActivator) {
        self.state().reader = Some(reader);
    }

    /// Appends bytes, and waits for space before. Returns false when no more bytes are needed.
    pub fn feed(&self, bytes: &[u8]) -> bool {
        let mut state = self.state();
        while !state.closed && !state.decoder.has_room(ROOM) {
            self.0.room.wait(&mut state);
        }
        state.decoder.buffer().extend_from_slice(bytes);
        if let Some(reader) = &state.reader {
            reader.activate();
        }
        !state.closed
    }

    /// Says that nothing more comes, or why.
    pub fn end(&self, error: Option<BoxError>) {
        let said = error.map_or(Feeding::Ended, Feeding::Failed);
        let before = {
            let mut state = self.state();
            let before = match &mut state.input {
                Input::Fed(feeding) => std::mem::replace(feeding, said),
                Input::File { .. } => said,
            };
            if let Some(reader) = &state.reader {
                reader.activate();
            }
            before
        };
        drop(before); // without the lock: dropping an error may run the host's code
    }

    /// Sets the function that ends the thread that feeds; it is called when no more bytes are needed.
    pub fn on_close(&self, stop: Stop) {
        let before = self.0.stop.lock().replace(stop);
        drop(before); // without the lock: dropping it may run the host's code
    }

    /// Declares that no more bytes are needed: the thread that feeds stops.
    pub fn close(&self) {
        self.state().close();
        self.0.room.notify_all();
        let stop = self.0.stop.lock().take();
        if let Some(stop) = stop {
            stop();
        }
    }

    /// Claims the feed for one replay; false where another has claimed it.
    pub fn claim(&self) -> bool {
        !std::mem::replace(&mut self.state().claimed, true)
    }

    /// Returns true if a replay has the feed for itself.
    pub fn is_claimed(&self) -> bool {
        self.state().claimed
    }

    /// Returns true if no more bytes are needed.
    pub fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Returns how the capture begins; `None` while that is not known.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Damaged`] for bytes that are no beginning of a capture, and as [`next`](Self::next).
    pub fn start(&self) -> Result<Option<Beginning>, CaptureError> {
        let mut state = self.state();
        loop {
            if let Some(start) = state.decoder.start() {
                let dims = start.dims;
                return Ok(Some((dims, state.schema.clone())));
            }
            let offset = state.decoder.offset();
            let item = state.decoder.take();
            match item.map_err(|damage| self.damaged(damage.offset, damage.what))? {
                Some(Item::Start(start)) => {
                    let begun = state.begin(start);
                    begun.map_err(|what| self.damaged(offset, what))?;
                }
                Some(Item::Event(_)) => {
                    return Err(self.damaged(offset, "an event before the beginning"));
                }
                None => {
                    self.0.room.notify_all();
                    match state.more()? {
                        None => {}
                        Some(Next::Wait { .. } | Next::Event(..)) => return Ok(None),
                        Some(Next::End { .. }) => {
                            let end = state.decoder.offset();
                            return Err(self.damaged(
                                end,
                                "it ends before it says what it holds: nothing was captured",
                            ));
                        }
                    }
                }
            }
        }
    }

    /// Returns the place where the last event that was taken ended, in bytes from the beginning.
    pub fn offset(&self) -> u64 {
        self.state().decoder.offset()
    }

    /// Returns the least times that may still come; none before the beginning was read.
    pub fn frontier(&self) -> Vec<Point> {
        let state = self.state();
        let promise = state.promise.iter();
        promise
            .flat_map(|promise| promise.frontier().to_vec())
            .collect()
    }

    /// Returns the sums of the changes so far, by time; `None` before the first event. [`seek`](Self::seek) takes
    /// them with [`offset`](Self::offset).
    pub fn counts(&self) -> Option<Vec<(Point, i64)>> {
        let state = self.state();
        let promise = state.promise.as_ref();
        promise
            .filter(|promise| promise.has_begun())
            .map(Promise::counts)
    }

    /// Returns a checksum of the file before [`offset`](Self::offset), by which it is recognised; `None` for
    /// other sources.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Changed`] where the file is not the one that was read; errors of the file.
    pub fn mark(&self) -> Result<Option<u32>, CaptureError> {
        let mut state = self.state();
        let (offset, mark) = (state.decoder.offset(), state.mark);
        let Input::File {
            file: Some(open),
            path,
            ..
        } = &mut state.input
        else {
            return Ok(mark);
        };
        let marked = open
            .mark(offset)
            .and_then(|mark| Ok((mark, open.changed()?)));
        match marked {
            Ok((mark, None)) => Ok(mark),
            Ok((_, Some(what))) => Err(CaptureError::Changed {
                what,
                path: path.clone(),
            }),
            Err(error) => Err(CaptureError::file(error, &*path)),
        }
    }

    /// Seeks to the end of the event at `offset` in a file, with the counts and the checksum at that point.
    /// The beginning has been read.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Damaged`] where the file is shorter; [`CaptureError::Changed`] where its mark is another;
    /// errors of the file.
    pub fn seek(
        &self,
        offset: u64,
        counts: Vec<(Point, i64)>,
        mark: Option<u32>,
    ) -> Result<(), CaptureError> {
        let mut state = self.state();
        let Some(start) = state.decoder.start().cloned() else {
            return Err(self.damaged(0, "it has not said what it holds"));
        };
        let Input::File {
            file: Some(file),
            path,
            ..
        } = &mut state.input
        else {
            return Err(self.damaged(offset, "only a file can be read from there"));
        };
        let sought = file.go_to(offset).and_then(|len| {
            let there = if len < offset {
                None
            } else {
                file.mark(offset)?
            };
            Ok((len, there))
        });
        let (len, there) = sought.map_err(|error| CaptureError::file(error, self.name()))?;
        if len < offset {
            let what = format!("it was read up to there and now ends at byte {len}");
            return Err(self.damaged(offset, what));
        }
        if let (Some(mark), Some(there)) = (mark, there)
            && mark != there
        {
            let what = format!(
                "it was written anew: what was read up to byte {offset} stands there no more"
            );
            let path = path.clone();
            return Err(CaptureError::Changed { what, path });
        }
        state.promise = Some(Promise::resumed(start.dims, counts));
        state.decoder = Decoder::resumed(start, offset);
        Ok(())
    }

    /// Takes the next event.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Damaged`] for bytes that are no event, or an event that breaks the promise of earlier ones;
    /// [`CaptureError::Changed`] for a file that is not the one that was read; errors of the file; the error of the
    /// thread that feeds.
    pub fn next(&self) -> Result<Next, CaptureError> {
        let mut state = self.state();
        loop {
            if let Some(promise) = &state.promise
                && promise.is_complete()
            {
                if !state.closed && state.has_more()? {
                    let offset = state.decoder.offset();
                    return Err(self.damaged(
                        offset,
                        "the capture is complete, and more follows: read captures from files of their own",
                    ));
                }
                state.close();
                self.0.room.notify_all();
                return Ok(Next::End { complete: true });
            }
            let offset = state.decoder.offset();
            let item = state.decoder.take();
            match item.map_err(|damage| self.damaged(damage.offset, damage.what))? {
                Some(Item::Start(start)) => {
                    let begun = state.begin(start);
                    begun.map_err(|what| self.damaged(offset, what))?;
                }
                Some(Item::Event(event)) => {
                    self.0.room.notify_all();
                    let contents = state.decoder.start().map(|start| start.contents);
                    let (Some(contents), Some(promise)) = (contents, &mut state.promise) else {
                        return Err(self.damaged(offset, "an event before the beginning"));
                    };
                    let kept = match &event {
                        EncodedEvent::Progress(changes) => promise.progress(changes),
                        EncodedEvent::Messages(runs, _) => {
                            let records =
                                runs.iter().map(|run| u128::from(run.records)).sum::<u128>();
                            promise.message(runs, u64::try_from(records).unwrap_or(u64::MAX))
                        }
                    };
                    kept.map_err(|broken| self.damaged(offset, broken.to_string()))?;
                    return Ok(Next::Event(offset, contents, event));
                }
                None => {
                    // The current event may be known to be longer than the space for others.
                    self.0.room.notify_all();
                    if let Some(next) = state.more()? {
                        return Ok(next);
                    }
                }
            }
        }
    }

    /// Returns the batches of a message that [`next`](Self::next) gave, at their times, in order.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Damaged`] for bytes that are no such batch; the host's error for records that it refuses.
    pub fn batches(
        &self,
        offset: u64,
        contents: Contents,
        runs: Vec<Run>,
        bytes: &Bytes,
    ) -> Result<Vec<(Point, Batch)>, CaptureError> {
        let batch = body::batch(contents, bytes).map_err(|error| match error {
            Undecoded::Damaged(what) => self.damaged(offset, what),
            Undecoded::Other(error) => error,
        })?;
        let records: u64 = runs.iter().map(|run| run.records).sum();
        if records != batch.len() as u64 {
            let what = format!("a message of {records} records has {}", batch.len());
            return Err(self.damaged(offset, what));
        }
        let schema = self.state().schema.clone();
        if let (Batch::Columns(columns), Some(schema)) = (&batch, schema) {
            // As a file of one stream has it; the batches of another are not let in under its schema.
            if columns.schema() != schema {
                return Err(self.damaged(offset, "a batch of another schema than the capture's"));
            }
        }
        Ok(body::by_time(runs, batch))
    }

    fn damaged(&self, offset: u64, what: impl Into<String>) -> CaptureError {
        CaptureError::Damaged {
            name: self.0.name.clone(),
            offset,
            what: what.into(),
        }
    }
}

impl State {
    /// Takes the beginning of the capture.
    fn begin(&mut self, start: Start) -> Result<(), String> {
        if start.contents == Contents::Columns {
            let schema = body::schema_of(start.schema);
            self.schema = Some(schema.map_err(|why| format!("the schema cannot be read ({why})"))?);
        }
        self.promise = Some(Promise::new(start.dims));
        Ok(())
    }

    /// Returns whether anything follows in a file.
    fn has_more(&mut self) -> Result<bool, CaptureError> {
        let Input::File { file, path, .. } = &mut self.input else {
            return Ok(false); // later bytes of a connection may belong to another program
        };
        if self.decoder.is_amid() {
            return Ok(true);
        }
        let Some(open) = file else { return Ok(false) };
        if !open.is_regular() {
            return Ok(false); // it would be waited for
        }
        let read = self.decoder.read_from(open);
        let read = read.map_err(|error| CaptureError::file(error, &*path))?;
        Ok(read > 0)
    }

    fn close(&mut self) {
        self.closed = true;
        let offset = self.decoder.offset();
        if let Input::File { file, .. } = &mut self.input
            && let Some(mut open) = file.take()
        {
            self.mark = open.mark(offset).unwrap_or(None);
        }
    }

    /// Reads more, or says why there is none.
    fn more(&mut self) -> Result<Option<Next>, CaptureError> {
        let end = Next::End { complete: false };
        if self.closed {
            return Ok(Some(end));
        }
        match &mut self.input {
            Input::File { file, path, follow } => {
                let open = match file {
                    Some(open) => open,
                    None => match KnownFile::open(path) {
                        Ok(opened) => file.insert(opened),
                        Err(error) if *follow && error.kind() == ErrorKind::NotFound => {
                            return Ok(Some(Next::Wait { ask: true }));
                        }
                        Err(error) => return Err(CaptureError::file(error, &*path)),
                    },
                };
                let read = self.decoder.read_from(open);
                // After the read: the bytes are then from the known file.
                let read = read.and_then(|count| Ok((count, open.changed()?)));
                let what = match read {
                    Ok((0, None)) if *follow && open.is_replaced(path) => {
                        "it was replaced: the name is another file's, and the capture that was read had not ended"
                            .to_owned()
                    }
                    Ok((0, None)) if *follow => return Ok(Some(Next::Wait { ask: true })),
                    Ok((0, None)) => return Ok(Some(end)),
                    Ok((_, None)) => return Ok(None),
                    Ok((_, Some(what))) => what,
                    Err(error) => return Err(CaptureError::file(error, &*path)),
                };
                let path = path.clone();
                self.decoder.buffer().clear(); // of two files
                self.close();
                Err(CaptureError::Changed { what, path })
            }
            Input::Fed(feeding) => match std::mem::replace(feeding, Feeding::Ended) {
                Feeding::Going => {
                    *feeding = Feeding::Going;
                    Ok(Some(Next::Wait { ask: false }))
                }
                Feeding::Ended => Ok(Some(end)),
                Feeding::Failed(error) => Err(CaptureError::Host(error)),
            },
        }
    }
}
