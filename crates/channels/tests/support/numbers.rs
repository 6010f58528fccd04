//! A message that can be added up.

use bytes::Bytes;
use pointstamp_channels::encode::CodecError;
use pointstamp_channels::{Combine, Encode, Encoder};

/// Numbers that are added up.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sum(pub(crate) i64);

impl Encode for Sum {
    fn encode(&self, out: &mut Encoder) -> Result<(), CodecError> {
        self.put(out);
        Ok(())
    }

    fn decode(bytes: Bytes) -> Result<Self, CodecError> {
        Ok(Sum(i64::from_le_bytes(bytes.as_ref().try_into()?)))
    }

    fn footprint(&self) -> usize {
        0
    }
}

impl Combine for Sum {
    fn add(&mut self, other: &Self) {
        self.0 += other.0;
    }

    fn subtract(&mut self, other: &Self) {
        self.0 -= other.0;
    }

    fn is_nothing(&mut self) -> bool {
        self.0 == 0
    }

    fn put(&self, out: &mut Encoder) {
        out.put_slice(&self.0.to_le_bytes());
    }
}
