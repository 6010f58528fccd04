//! The operator that writes a stream's events, and files as its targets.
//!
//! An event is written completely before the operator continues. So a reader sees it at once, and a file of a killed
//! writer ends with a complete event or with a part of one, never with a gap.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{IoSlice, Write};
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use arrow_schema::SchemaRef;
use bytes::Bytes;
use pointstamp_engine::error::UserResult;
use pointstamp_engine::operators::{self, Event};
use pointstamp_engine::stream::Stream;
use pointstamp_events::{Contents, EncodedEvent, MAGIC, Promise, Start};

use super::body;
use super::error::CaptureError;
use crate::batch::Batch;

/// The destination of the events of one stream.
pub trait Target: Send {
    /// Writes all pieces.
    ///
    /// # Errors
    ///
    /// When they cannot be written; the computation ends with it.
    fn write(&mut self, pieces: &[Bytes]) -> Result<(), CaptureError>;

    /// Says that the stream is complete.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    fn finish(self: Box<Self>) -> Result<(), CaptureError>;
}

/// A file of events, locked against other writers.
#[derive(Debug)]
pub struct FileTarget {
    file: File,
    path: PathBuf,
}

impl FileTarget {
    /// Creates a file, or with `overwrite` truncates an existing one. Symbolic links are not followed.
    ///
    /// # Errors
    ///
    /// [`CaptureError::File`] where it cannot be created, for example because it exists; [`CaptureError::Link`] for a
    /// link; [`CaptureError::Busy`] where another writer has it.
    pub fn create(path: PathBuf, overwrite: bool) -> Result<Self, CaptureError> {
        let mut options = OpenOptions::new();
        options.write(true);
        if overwrite {
            options.create(true).truncate(false);
        } else {
            options.create_new(true);
        }
        // A link there may be another user's, so that its target would be overwritten.
        #[cfg(unix)]
        options.custom_flags(libc::O_NOFOLLOW);
        let file = match options.open(&path) {
            Ok(file) => file,
            Err(error) if overwrite && path.is_symlink() => {
                return Err(CaptureError::Link { error, path });
            }
            Err(error) => return Err(CaptureError::file(error, path)),
        };
        // Two writers of one file would each lose the other's events. A file system without locks does not report it.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(CaptureError::Busy { path });
        }
        if overwrite
            && file.metadata().is_ok_and(|there| there.is_file())
            && let Err(error) = file.set_len(0)
        {
            return Err(CaptureError::file(error, path));
        }
        Ok(FileTarget { file, path })
    }
}

impl Target for FileTarget {
    fn write(&mut self, pieces: &[Bytes]) -> Result<(), CaptureError> {
        write_pieces(&self.file, pieces).map_err(|error| CaptureError::file(error, &self.path))
    }

    fn finish(self: Box<Self>) -> Result<(), CaptureError> {
        let _kept_by_forked_processes_otherwise = self.file.unlock();
        Ok(())
    }
}

/// Writes pieces from where they lie.
fn write_pieces(mut file: &File, pieces: &[Bytes]) -> std::io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let mut rest = slices.as_mut_slice();
    IoSlice::advance_slices(&mut rest, 0); // leaves out empty parts
    while !rest.is_empty() {
        match file.write_vectored(rest) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut rest, written),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes the events of a stream to a target. A stream of columns has a schema; another one carries records
/// of the host.
///
/// # Errors
///
/// Errors of the target, for the beginning of the capture; errors of building an operator.
pub fn capture(
    stream: &Stream<Batch>,
    schema: Option<&SchemaRef>,
    mut target: Box<dyn Target>,
) -> Result<(), CaptureError> {
    let dims = stream.scope().dims();
    let (contents, bytes) = match schema {
        Some(schema) => (Contents::Columns, body::schema_bytes(schema)?),
        None => (Contents::Records, Bytes::new()),
    };
    let start = Start {
        contents,
        dims,
        schema: bytes,
    };
    let mut pieces = start.write()?;
    pieces.insert(0, Bytes::from_static(&MAGIC));
    target.write(&pieces)?;
    let (mut target, mut promise) = (Some(target), Promise::new(dims));
    let sink = move |event| -> UserResult<()> {
        write_event(&mut target, &mut promise, event).map_err(CaptureError::into_cause)
    };
    Ok(operators::capture(stream, sink)?)
}

fn write_event(
    target: &mut Option<Box<dyn Target>>,
    promise: &mut Promise,
    event: Event<Batch>,
) -> Result<(), CaptureError> {
    let Some(open) = target else {
        return Ok(()); // nothing comes after the end
    };
    match event {
        Event::Progress(changes) => {
            open.write(&EncodedEvent::progress(&changes)?)?;
            let kept = promise.progress(&changes);
            debug_assert!(kept.is_ok(), "the engine keeps its promise: {kept:?}");
            if promise.is_complete()
                && let Some(ended) = target.take()
            {
                ended.finish()?;
            }
            Ok(())
        }
        Event::Messages(time, batch) => {
            body::frames(&time, &batch, &mut |frame| open.write(&frame))
        }
    }
}
