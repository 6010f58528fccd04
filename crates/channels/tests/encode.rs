//! Messages as bytes: the layout that an encoder produces, and messages of this crate there and back.

use bytes::Bytes;
use pointstamp_channels::encode::CodecError;
use pointstamp_channels::{Encode, Encoder, joined};

/// A value that is put into an encoder.
#[derive(Clone, Copy)]
enum Put {
    Slice(usize),
    Bytes(usize),
    Align(usize),
}

/// Pieces from this length on are not copied.
const SHARED: usize = 4096;

#[test]
fn what_is_put_comes_out_in_order_and_what_is_long_is_shared() {
    let puts = [
        Put::Slice(0),
        Put::Slice(3),
        Put::Bytes(0),
        Put::Bytes(5),
        Put::Bytes(SHARED - 1),
        Put::Bytes(SHARED),
        Put::Bytes(5000),
        Put::Align(1),
        Put::Align(8),
        Put::Align(64),
    ];
    let source = Bytes::from((0..=255).cycle().take(6000).collect::<Vec<u8>>());
    let three = |a: Put| puts.map(|b| puts.map(|c| [a, b, c]));
    for put in puts.into_iter().flat_map(three).flatten() {
        let mut encoder = Encoder::new();
        assert!(encoder.is_empty());
        let (mut expected, mut shared) = (Vec::new(), 0);
        for (index, put) in put.into_iter().enumerate() {
            match put {
                Put::Slice(len) => {
                    encoder.put_slice(&source[index..index + len]);
                    expected.extend_from_slice(&source[index..index + len]);
                }
                Put::Bytes(len) => {
                    encoder.put_bytes(source.slice(index..index + len));
                    expected.extend_from_slice(&source[index..index + len]);
                    shared += usize::from(len >= SHARED);
                }
                Put::Align(alignment) => {
                    encoder.align(alignment);
                    expected.resize(expected.len().next_multiple_of(alignment), 0);
                }
            }
            assert_eq!(
                (encoder.len(), encoder.is_empty()),
                (expected.len(), expected.is_empty())
            );
        }
        let segments = encoder.finish();
        assert!(segments.iter().all(|segment| !segment.is_empty()));
        assert_eq!(segments.concat(), expected);
        let within = source.as_ptr_range();
        let found = segments
            .iter()
            .filter(|segment| within.contains(&segment.as_ptr()));
        assert_eq!(found.count(), shared);
    }
}

/// A message there and back, and how much memory it says that it takes.
fn sent<T: Encode>(message: &T) -> Result<(T, usize), CodecError> {
    let mut encoder = Encoder::new();
    message.encode(&mut encoder)?;
    Ok((T::decode(joined(&encoder.finish()))?, message.footprint()))
}

#[test]
fn messages_come_as_they_were() {
    assert_eq!(sent(&(u64::MAX - 1)).unwrap(), (u64::MAX - 1, 8));
    let bytes = Bytes::from_static(b"some bytes");
    assert_eq!(sent(&bytes).unwrap(), (bytes, 10));
    let string = "größer".to_owned();
    assert_eq!(sent(&string).unwrap(), (string, 8));
    assert!(u64::decode(Bytes::from_static(b"1234567")).is_err());
    assert!(String::decode(Bytes::from_static(b"\xff")).is_err());
}
