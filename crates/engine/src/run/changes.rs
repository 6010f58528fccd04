//! Changes to pointstamps on their way to other workers.
//!
//! As bytes: the number of changes, that of coordinates, and for each change its place, its time and its difference; all of them
//! integers of as many bytes as they need, so that a typical change takes about six.

use bytes::Bytes;
use pointstamp_channels::encode::CodecError;
use pointstamp_channels::{Combine, Encode, Encoder};
use pointstamp_order::{ChangeBatch, Point};
use pointstamp_progress::{Location, Port, ProgressBatch};

use crate::payload::Malformed;

/// One atomic batch of changes, or the sum of several.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Changes(pub(crate) ProgressBatch<Point>);

impl Combine for Changes {
    fn add(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    fn subtract(&mut self, other: &Self) {
        let other = other.0.iter().cloned();
        self.0
            .extend(other.map(|(change, diff)| (change, diff.saturating_neg())));
    }

    fn is_nothing(&mut self) -> bool {
        let sum: ChangeBatch<_> = self.0.drain(..).collect();
        self.0 = sum.into_inner();
        self.0.is_empty()
    }

    fn put(&self, out: &mut Encoder) {
        put(out, self.0.len() as u64);
        let dims = self.0.first().map_or(0, |((_, time), _)| time.dims());
        put(out, dims as u64);
        for ((location, time), diff) in &self.0 {
            debug_assert_eq!(time.dims(), dims, "a scope has times of one kind");
            let (port, source) = match location.port {
                Port::Target(port) => (port, 0),
                Port::Source(port) => (port, 1),
            };
            put(out, location.node as u64);
            put(out, (port as u64) << 1 | source);
            for &coord in time.coords() {
                put(out, coord);
            }
            put(out, ((diff << 1) ^ (diff >> 63)).cast_unsigned());
        }
    }
}

impl Encode for Changes {
    fn encode(&self, out: &mut Encoder) -> Result<(), CodecError> {
        self.put(out);
        Ok(())
    }

    fn decode(bytes: Bytes) -> Result<Self, CodecError> {
        let mut bytes = &bytes[..];
        let count = usize::try_from(take(&mut bytes)?)?;
        let dims = usize::try_from(take(&mut bytes)?)?;
        // Every integer takes a byte at least.
        if count > bytes.len() || dims > bytes.len() {
            return Err(Malformed::CutShort.into());
        }
        let mut changes = Vec::with_capacity(count);
        for _ in 0..count {
            let node = usize::try_from(take(&mut bytes)?)?;
            let port = take(&mut bytes)?;
            let number = usize::try_from(port >> 1)?;
            let location = if port & 1 == 0 {
                Location::target(node, number)
            } else {
                Location::source(node, number)
            };
            let time = (0..dims)
                .map(|_| take(&mut bytes))
                .collect::<Result<Point, _>>()?;
            let diff = take(&mut bytes)?;
            let diff = (diff >> 1).cast_signed() ^ -(diff & 1).cast_signed();
            changes.push(((location, time), diff));
        }
        if !bytes.is_empty() {
            return Err(Malformed::Excess.into());
        }
        Ok(Changes(changes))
    }

    fn footprint(&self) -> usize {
        0 // not the cause of a backlog
    }
}

/// Writes seven bits a byte, the lowest first.
#[allow(
    clippy::cast_possible_truncation,
    reason = "seven bits are taken at a time"
)]
fn put(out: &mut Encoder, mut number: u64) {
    let mut bytes = [0; 10];
    let mut len = 0;
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        bytes[len] = if number == 0 { low } else { low | 0x80 };
        len += 1;
        if number == 0 {
            return out.put_slice(&bytes[..len]);
        }
    }
}

fn take(bytes: &mut &[u8]) -> Result<u64, CodecError> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(Malformed::CutShort)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(Malformed::LongInteger.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pointstamp_testkit::cases;
    use proptest::prelude::*;

    fn bytes(changes: &Changes) -> Bytes {
        let mut out = Encoder::new();
        changes.put(&mut out);
        out.finish().concat().into()
    }

    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![0..300_u64, any::<u64>()]
    }

    fn changes() -> impl Strategy<Value = Changes> {
        (0..5_usize).prop_flat_map(|dims| {
            let time = prop::collection::vec(number(), dims).prop_map(Point::from);
            let port = any::<bool>().prop_flat_map(|source| {
                (0..1000_usize, 0..70_000_usize).prop_map(move |(node, port)| {
                    if source {
                        Location::source(node, port)
                    } else {
                        Location::target(node, port)
                    }
                })
            });
            prop::collection::vec(((port, time), any::<i64>()), 0..20).prop_map(Changes)
        })
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn changes_come_back(changes in changes()) {
            let whole = bytes(&changes);
            for len in 0..whole.len() {
                prop_assert!(Changes::decode(whole.slice(..len)).is_err());
            }
            prop_assert_eq!(Changes::decode(whole).unwrap(), changes);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            let _ = Changes::decode(bytes.into());
        }
    }

    #[test]
    fn a_typical_change_is_short_and_sums_cancel() {
        let at = |time| (Location::target(3, 0), Point::new(&[time]));
        let mut sum = Changes(vec![(at(1000), -1), (at(1001), 1)]);
        assert!(bytes(&sum).len() <= 12);
        sum.add(&Changes(vec![(at(1000), 1)]));
        assert!(!sum.is_nothing());
        assert_eq!(sum.0, [(at(1001), 1)]);
        sum.add(&Changes(vec![(at(1001), -1)]));
        assert!(sum.is_nothing());
    }
}
