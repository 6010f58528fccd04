//! The payload of every stream of a program.

use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::{Buf, Bytes};
use pointstamp_channels::Encoder;
use pointstamp_columnar::ipc;
use pointstamp_engine::error::UserResult;
use pointstamp_engine::payload::Payload;

use crate::Error;
use crate::collections::{Sealed, Updates};
use crate::host::{self, HostBatch};
use crate::kind::Kind;
use crate::timed::Timed;

/// A batch of records. Clones share it.
#[derive(Clone)]
pub enum Batch {
    /// Records of the host language.
    Host(Arc<dyn HostBatch>),
    /// Arrow columns.
    Columns(RecordBatch),
    /// Records of the host at times of their own.
    Timed(Timed),
    /// Updates of a collection.
    Updates(Updates),
    /// A batch of an arrangement, which stays on its worker.
    Sealed(Sealed),
}

/// The contents of a batch of one kind, or of any kind.
pub trait Content: Sized + 'static {
    /// The kind; `None` for [`Batch`] itself, the contents of any kind.
    const KIND: Option<Kind>;

    /// Makes a batch of the contents.
    fn into_batch(self) -> Batch;

    /// Takes the contents out of a batch.
    ///
    /// # Errors
    ///
    /// [`Error::WrongKind`] for a batch of another kind.
    fn from_batch(batch: Batch) -> Result<Self, Error>;
}

/// Implements [`Content`] for the type that one variant of [`Batch`] holds.
macro_rules! content {
    ($($type:ty => $kind:ident,)+) => {
        $(impl Content for $type {
            const KIND: Option<Kind> = Some(Kind::$kind);

            #[inline]
            fn into_batch(self) -> Batch {
                Batch::$kind(self)
            }

            #[inline]
            fn from_batch(batch: Batch) -> Result<Self, Error> {
                match batch {
                    Batch::$kind(contents) => Ok(contents),
                    other => Err(Error::WrongKind { expected: Kind::$kind, found: other.kind() }),
                }
            }
        })+
    };
}

content! {
    Arc<dyn HostBatch> => Host,
    RecordBatch => Columns,
    Timed => Timed,
    Updates => Updates,
    Sealed => Sealed,
}

/// An operator that reads batches of any kind.
impl Content for Batch {
    const KIND: Option<Kind> = None;

    #[inline]
    fn into_batch(self) -> Batch {
        self
    }

    #[inline]
    fn from_batch(batch: Batch) -> Result<Self, Error> {
        Ok(batch)
    }
}

/// The first byte of an encoded batch; the rest begins at a multiple of 16.
mod tag {
    pub(super) const HOST: u8 = 0;
    pub(super) const COLUMNS: u8 = 1;
    pub(super) const UPDATES: u8 = 2;
    pub(super) const TIMED: u8 = 3;
    /// Updates of columns.
    pub(super) const COLUMN_UPDATES: u8 = 4;
}

impl Batch {
    /// Returns the kind of the batch.
    pub fn kind(&self) -> Kind {
        match self {
            Batch::Host(_) => Kind::Host,
            Batch::Columns(_) => Kind::Columns,
            Batch::Timed(_) => Kind::Timed,
            Batch::Updates(_) => Kind::Updates,
            Batch::Sealed(_) => Kind::Sealed,
        }
    }
}

impl Payload for Batch {
    fn len(&self) -> usize {
        match self {
            Batch::Host(records) => records.len(),
            Batch::Columns(columns) => columns.num_rows(),
            Batch::Timed(timed) => timed.len(),
            Batch::Updates(updates) => updates.len(),
            Batch::Sealed(sealed) => sealed.len(),
        }
    }

    fn encode(&self, out: &mut Encoder) -> UserResult<()> {
        let begin = |tag, out: &mut Encoder| {
            out.put_slice(&[tag]);
            out.align(ipc::ALIGNMENT);
        };
        match self {
            Batch::Host(records) => {
                begin(tag::HOST, out);
                records.encode(out)?;
            }
            Batch::Columns(columns) => {
                let pieces = ipc::encode(columns)?;
                begin(tag::COLUMNS, out);
                for piece in pieces {
                    out.put_bytes(piece);
                }
            }
            Batch::Timed(timed) => {
                begin(tag::TIMED, out);
                timed.encode(out)?;
            }
            Batch::Updates(updates) => {
                let columns = updates.travels_as_columns();
                begin(
                    [tag::UPDATES, tag::COLUMN_UPDATES][usize::from(columns)],
                    out,
                );
                updates.encode(out)?;
            }
            Batch::Sealed(_) => return Err(Error::Immovable.into()),
        }
        Ok(())
    }

    fn decode(mut bytes: Bytes) -> UserResult<Self> {
        if bytes.len() < ipc::ALIGNMENT {
            return Err(Error::NotABatch.into());
        }
        let tag = bytes[0];
        bytes.advance(ipc::ALIGNMENT);
        Ok(match tag {
            tag::HOST => Batch::Host(host::decoder().ok_or(Error::NotABatch)?(&bytes)?),
            tag::COLUMNS => Batch::Columns(ipc::decode(bytes)?),
            tag::TIMED => Batch::Timed(Timed::decode(bytes)?),
            tag::UPDATES => Batch::Updates(Updates::decode(bytes).ok_or(Error::NotABatch)?),
            tag::COLUMN_UPDATES => {
                Batch::Updates(Updates::decode_columns(bytes).ok_or(Error::NotABatch)?)
            }
            _ => return Err(Error::NotABatch.into()),
        })
    }

    fn footprint(&self) -> usize {
        match self {
            Batch::Host(records) => records.footprint(),
            Batch::Columns(columns) => ipc::footprint(columns),
            Batch::Timed(timed) => timed.footprint(),
            Batch::Updates(updates) => updates.footprint(),
            // The arrangement keeps it, whether the message is there or not.
            Batch::Sealed(_) => 0,
        }
    }

    fn left(&mut self, dims: usize) {
        if let Batch::Updates(updates) = self {
            updates.left(dims);
        }
    }
}
