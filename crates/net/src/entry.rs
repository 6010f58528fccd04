//! The parsers of foreign bytes, as the fuzzer calls them: `fuzz/` at the root of the repository, and a bounded run of the same in
//! the tests.

use std::io::{self, Read};
use std::sync::LazyLock;

use super::frame::{self, FrameReader, ReadError};
use super::introduction::Introduction;
use super::noise::{Greeted, HELLO, Hello, Terms, VERSION};
use super::records::{Opener, PREFIX};
use super::secret::Secret;

/// A source that gives its bytes in pieces, and now and then none, as a socket that may not wait does.
struct Pieces<'a> {
    bytes: &'a [u8],
    sizes: &'a [u8],
    at: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self
            .sizes
            .get(self.at % self.sizes.len().max(1))
            .copied()
            .unwrap_or(255);
        self.at += 1;
        if size == 0 && self.at <= self.sizes.len() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let len = usize::from(size)
            .pow(2)
            .max(1)
            .min(buffer.len())
            .min(self.bytes.len());
        let (now, later) = self.bytes.split_at(len);
        buffer[..len].copy_from_slice(now);
        self.bytes = later;
        Ok(len)
    }
}

/// Reads all frames; `data` begins with the sizes of the pieces in which the rest is read.
///
/// # Panics
///
/// When the encoding of the decoded value differs from the bytes read.
pub fn frames(data: &[u8]) {
    let Some((&count, rest)) = data.split_first() else {
        return;
    };
    let (sizes, bytes) = rest.split_at(rest.len().min(usize::from(count)));
    let mut source = Pieces {
        bytes,
        sizes,
        at: 0,
    };
    let mut reader = FrameReader::new();
    let mut again = Vec::new();
    loop {
        match reader.next(&mut source) {
            Ok(frame) => {
                assert_eq!(
                    frame.body.as_ptr().align_offset(16),
                    0,
                    "a body out of line"
                );
                let len = u32::try_from(frame.body.len()).expect("limited");
                again.extend_from_slice(&frame::header(frame.kind, len));
                again.extend_from_slice(&frame.body);
                if let Some(how) = frame::farewell(&frame) {
                    assert!(frame::of_farewell(&how).1.len() <= frame::MAX_REASON);
                }
            }
            Err(ReadError::Io(error)) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            Err(ReadError::Ended { within_frame }) => {
                assert_eq!(within_frame, again.len() < bytes.len());
                break;
            }
            Err(ReadError::Malformed(_)) => break,
        }
    }
    assert!(bytes.starts_with(&again), "frames that were not sent");
}

/// Reads a hello, a first message of the handshake, and an introduction.
///
/// # Panics
///
/// When the encoding of the decoded value differs from the bytes read, or a message verifies that no member made.
pub fn handshake(data: &[u8]) {
    static SECRET: LazyLock<Secret> = LazyLock::new(|| Secret::new(b"the fuzzer's"));
    if let Some(bytes) = data.first_chunk::<HELLO>()
        && let Some(hello) = Hello::parse(bytes)
    {
        assert_eq!(&hello.to_bytes(), bytes);
    }
    let terms = Terms {
        secret: &SECRET,
        version: VERSION,
        purpose: "fuzzing",
        binding: &[],
    };
    assert!(
        Greeted::new(&terms, data).is_err(),
        "it guessed the secret's key"
    );
    if let Ok(introduction) = Introduction::parse(data) {
        let bytes = introduction.to_bytes().expect("no longer than it was");
        assert_eq!(Introduction::parse(&bytes), Ok(introduction.clone()));
        // No process may be in a cluster with itself.
        assert!(introduction.objection(&introduction).is_some());
    }
}

/// Opens records.
///
/// # Panics
///
/// When one verifies that was not sealed.
pub fn records(data: &[u8]) {
    let mut opener = Opener::new(&[7; 32]);
    let mut rest = data.to_vec();
    while let Ok(Some(len)) = Opener::length(&rest) {
        let Some(record) = rest.get_mut(PREFIX..PREFIX + len) else {
            return;
        };
        assert!(opener.open(record).is_err(), "a forged record");
        rest.drain(..PREFIX + len);
    }
}
