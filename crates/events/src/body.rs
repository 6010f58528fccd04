//! The bodies of large events: read to where they stay, and under their checksum while they are in the cache.
//!
//! A body has a buffer of its own, which goes back to the [`Pool`] when its last slice is dropped, and is reused for
//! one of the next. So a reader whose batches pass does not request memory from the system, which would clear it
//! first. The memory of a body grows with the bytes that have arrived, and not with the length in its header.

use std::io::{ErrorKind, Read, Result};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use crc32c::crc32c_append;

/// Bodies of fewer bytes come with others, by one read.
pub(crate) const LARGE: usize = 64 << 10;

/// The number of bytes that are read and added to the checksum at once: they fit into the cache of a core.
const PIECE: usize = 256 << 10;

/// The memory of a body before any of its bytes have arrived.
const FIRST: usize = 8 << 20;

/// The maximum bytes of buffers, and number of buffers, that wait for reuse.
const IDLE: (usize, usize) = (32 << 20, 16);

/// Buffers that wait to be used again. All of their bytes have been written once.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Vec<Vec<u8>>>);

impl Pool {
    /// A buffer of at least so many bytes, and of at most twice as many.
    fn take(&self, len: usize) -> Vec<u8> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = idle
            .iter()
            .position(|buffer| (len..=2 * len).contains(&buffer.len()));
        if let Some(index) = fits {
            return idle.swap_remove(index);
        }
        // An eighth more at most: bodies of about one length take turns.
        vec![0; len.next_multiple_of((len.next_power_of_two() / 16).max(1))]
    }

    fn give_back(&self, buffer: Vec<u8>) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(buffer);
        while idle.len() > IDLE.1 || idle.iter().map(Vec::len).sum::<usize>() > IDLE.0 {
            idle.remove(0); // the one that was not used for longest
        }
    }
}

/// A body that is on its way.
#[derive(Debug)]
pub(crate) struct Body {
    buffer: Vec<u8>,
    /// The number of bytes that have arrived.
    there: usize,
    /// The number of bytes in all.
    len: usize,
    sum: u32,
}

impl Body {
    /// A body of so many bytes, of which the first have come.
    pub(crate) fn new(len: usize, first: &[u8], pool: &Pool) -> Self {
        let mut buffer = pool.take(len.min(FIRST.max(first.len())));
        buffer[..first.len()].copy_from_slice(first);
        Body {
            buffer,
            there: first.len(),
            len,
            sum: crc32c_append(0, first),
        }
    }

    /// The number of missing bytes.
    pub(crate) fn lacks(&self) -> usize {
        self.len - self.there
    }

    /// Reads the available bytes, or the rest; returns their number.
    pub(crate) fn read_from(&mut self, source: &mut impl Read, pool: &Pool) -> Result<usize> {
        let mut got = 0;
        while self.lacks() > 0 {
            if self.there == self.buffer.len() {
                self.grow(pool);
            }
            let end = self.buffer.len().min(self.len).min(self.there + PIECE);
            let read = match source.read(&mut self.buffer[self.there..end]) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            };
            if read == 0 {
                break;
            }
            let came = &self.buffer[self.there..self.there + read];
            self.sum = crc32c_append(self.sum, came);
            self.there += read;
            got += read;
        }
        Ok(got)
    }

    fn grow(&mut self, pool: &Pool) {
        let mut larger = pool.take(self.len.min(2 * self.there));
        larger[..self.there].copy_from_slice(&self.buffer[..self.there]);
        pool.give_back(mem::replace(&mut self.buffer, larger));
    }

    /// The checksum of the bytes that have arrived.
    pub(crate) fn sum(&self) -> u32 {
        self.sum
    }

    /// The bytes. Their buffer goes back to the pool when the last slice is dropped.
    pub(crate) fn finish(self, pool: &Arc<Pool>) -> Bytes {
        let whole = Lent {
            buffer: self.buffer,
            pool: Arc::downgrade(pool),
        };
        Bytes::from_owner(whole).slice(..self.there)
    }
}

/// A buffer that is in use.
struct Lent {
    buffer: Vec<u8>,
    pool: Weak<Pool>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.give_back(mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(len: usize, pool: &Arc<Pool>) -> (Bytes, u32) {
        let data: Vec<u8> = (0..len).map(|n| u8::try_from(n % 251).unwrap()).collect();
        let mut body = Body::new(len, &data[..10], pool);
        assert_eq!(body.read_from(&mut &data[10..100], pool).unwrap(), 90);
        assert_eq!(body.lacks(), len - 100);
        assert_eq!(body.read_from(&mut &data[100..], pool).unwrap(), len - 100);
        let sum = body.sum();
        let bytes = body.finish(pool);
        assert_eq!(bytes, data);
        (bytes, sum)
    }

    #[test]
    fn buffers_are_used_again_once_they_are_free() {
        let pool = Arc::new(Pool::default());
        let (first, sum) = read(100_000, &pool);
        assert_eq!(sum, crc32c::crc32c(&first));
        let (second, _) = read(100_000, &pool);
        assert_ne!(first.as_ptr(), second.as_ptr());
        let (slice, place) = (first.slice(50..60), first.as_ptr());
        drop(first);
        assert_ne!(
            read(90_000, &pool).0.as_ptr(),
            place,
            "a slice of it is in use"
        );
        drop(slice);
        let again = [read(90_000, &pool).0, read(90_000, &pool).0];
        assert!(again.iter().any(|bytes| bytes.as_ptr() == place));
    }

    #[test]
    fn a_body_takes_what_has_come_and_not_what_is_promised() {
        let pool = Arc::new(Pool::default());
        let mut body = Body::new(1 << 30, &[], &pool);
        let data = vec![7; 20 << 20];
        assert_eq!(body.read_from(&mut &data[..], &pool).unwrap(), data.len());
        assert!(body.buffer.len() <= 2 * data.len());
        assert_eq!(body.sum(), crc32c::crc32c(&data));
    }

    #[test]
    fn what_waits_is_bounded() {
        let pool = Arc::new(Pool::default());
        for len in 1..100 {
            pool.give_back(vec![0; len << 16]);
        }
        let idle = pool.0.lock().unwrap();
        assert!(idle.len() <= IDLE.1 && idle.iter().map(Vec::len).sum::<usize>() <= IDLE.0);
        assert!(idle.is_empty() || idle.iter().any(|buffer| buffer.len() == 99 << 16));
    }
}
