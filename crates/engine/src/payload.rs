//! The type of batches that a stream carries.

use bytes::Bytes;
use pointstamp_channels::encode::CodecError;
use pointstamp_channels::{Encode, Encoder};
use pointstamp_order::Point;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::UserResult;

/// A batch of records. The engine moves batches and counts their records; it never looks at one.
///
/// `Clone` is used when a stream has several readers, and should be cheap (a shared reference).
pub trait Payload: Clone + Send + 'static {
    /// The number of records in the batch. Empty batches are not sent.
    fn len(&self) -> usize;

    /// Whether the batch holds no record.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the batch, to be read in another process. It begins at a multiple of 16 bytes.
    ///
    /// # Errors
    ///
    /// When it holds something that has no form as bytes; the operator that sends it fails.
    fn encode(&self, out: &mut Encoder) -> UserResult<()>;

    /// Reads a batch in the format of [`encode`](Self::encode). The bytes begin at a multiple of 16, and may be kept.
    ///
    /// # Errors
    ///
    /// When they are not a batch's; the operator that reads it fails.
    fn decode(bytes: Bytes) -> UserResult<Self>;

    /// The approximate number of bytes of memory that the batch takes, for the bound on bytes in flight. It
    /// must be cheap.
    fn footprint(&self) -> usize;

    /// Called when a batch leaves a scope, for one around it whose timestamps have `dims` coordinates. A
    /// payload that holds times beside the message's drops the coordinates beyond; when it enters a scope
    /// they are 0, without a call.
    fn left(&mut self, dims: usize) {
        let _ = dims;
    }
}

impl<T: Clone + Send + Serialize + DeserializeOwned + 'static> Payload for Vec<T> {
    fn len(&self) -> usize {
        self.len()
    }

    fn encode(&self, out: &mut Encoder) -> UserResult<()> {
        out.put_bytes(postcard::to_stdvec(self)?.into());
        Ok(())
    }

    fn decode(bytes: Bytes) -> UserResult<Self> {
        Ok(postcard::from_bytes(&bytes)?)
    }

    fn footprint(&self) -> usize {
        self.len() * size_of::<T>()
    }
}

/// A batch with its timestamp, as it travels along an edge.
#[derive(Debug, Clone)]
pub struct Message<P> {
    /// The timestamp of every record in the batch.
    pub time: Point,
    /// The records.
    pub data: P,
}

/// The alignment at which an encoded batch begins.
const ALIGNMENT: usize = 16;
const WORD: usize = size_of::<u64>();

/// A malformed message of another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A message ends before its time does.
    #[error("a message without a time")]
    NoTime,
    /// A time that cannot be in the message.
    #[error("a message whose time is longer than the message")]
    LongTime,
    /// A message ends with its time.
    #[error("a message without a batch")]
    NoBatch,
    /// Progress ends within a change.
    #[error("changes to pointstamps that are cut short")]
    CutShort,
    /// Progress does not end with its last change.
    #[error("changes to pointstamps with something behind them")]
    Excess,
    /// A number in progress does not end.
    #[error("an integer of more than 64 bits")]
    LongInteger,
}

/// The number of coordinates, the coordinates, nothing up to the alignment, and the batch.
impl<P: Payload> Encode for Message<P> {
    fn encode(&self, out: &mut Encoder) -> Result<(), CodecError> {
        let coords = self.time.coords();
        out.put_slice(&(coords.len() as u64).to_le_bytes());
        for coord in coords {
            out.put_slice(&coord.to_le_bytes());
        }
        out.align(ALIGNMENT);
        self.data.encode(out)
    }

    fn decode(bytes: Bytes) -> Result<Self, CodecError> {
        let word = |index: usize| {
            let word = bytes.get(index * WORD..(index + 1) * WORD);
            let word = word.and_then(|word| word.try_into().ok());
            word.map(u64::from_le_bytes).ok_or(Malformed::NoTime)
        };
        let dims = usize::try_from(word(0)?)?;
        if dims > bytes.len() / WORD {
            return Err(Malformed::LongTime.into());
        }
        let coords = (1..=dims).map(word).collect::<Result<Vec<_>, _>>()?;
        let start = ((dims + 1) * WORD).next_multiple_of(ALIGNMENT);
        if start > bytes.len() {
            return Err(Malformed::NoBatch.into());
        }
        let data = P::decode(bytes.slice(start..))?;
        Ok(Message {
            time: Point::from(coords),
            data,
        })
    }

    fn footprint(&self) -> usize {
        size_of::<Self>() + self.data.footprint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(message: &Message<Vec<u64>>) -> Bytes {
        let mut out = Encoder::new();
        message.encode(&mut out).unwrap();
        out.finish().concat().into()
    }

    #[test]
    fn messages_come_back_whatever_their_times() {
        for dims in 0..8_u64 {
            let message = Message {
                time: (0..dims).map(|i| u64::MAX - i).collect(),
                data: vec![1, 1 << 40, u64::MAX],
            };
            let back = Message::<Vec<u64>>::decode(bytes(&message)).unwrap();
            assert_eq!((back.time, back.data), (message.time, message.data));
        }
    }

    #[test]
    fn what_is_cut_short_or_nonsense_is_an_error() {
        let whole = bytes(&Message {
            time: Point::new(&[1, 2, 3, 4]),
            data: vec![300; 10],
        });
        for len in 0..whole.len() {
            assert!(Message::<Vec<u64>>::decode(whole.slice(..len)).is_err());
        }
        assert!(Message::<Vec<u64>>::decode(vec![0xff; 64].into()).is_err());
    }
}
