//! Memory for the bodies of large frames, reused once their reader has dropped them.
//!
//! Fresh memory of this size comes from the operating system page by page, each cleared first, which takes about as long as to
//! read the bytes from a socket. A pool belongs to one connection and keeps at most [`KEPT`] bytes.

use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

use bytes::Bytes;

/// Bytes that wait to be used again, at most.
const KEPT: usize = 8 << 20;

/// Blocks of memory that are not in use. Their contents do not matter.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Free>);

#[derive(Debug, Default)]
struct Free {
    blocks: Vec<Vec<u8>>,
    bytes: usize,
}

impl Pool {
    fn free(&self) -> MutexGuard<'_, Free> {
        self.0.lock()
    }

    /// A block that was used before, of `len` bytes or not many more.
    pub(super) fn take(&self, len: usize) -> Option<Vec<u8>> {
        let mut free = self.free();
        let fits = |block: &Vec<u8>| (len..=len.saturating_mul(2)).contains(&block.len());
        let found = free.blocks.iter().rposition(fits)?; // the last one may still be in a cache
        let block = free.blocks.remove(found);
        free.bytes -= block.capacity();
        Some(block)
    }

    /// The first `len` bytes of a block, which comes back when the last that refer to it are dropped.
    pub(super) fn lend(self: &Arc<Self>, block: Vec<u8>, len: usize) -> Bytes {
        let pool = Arc::clone(self);
        Bytes::from_owner(Lent { block, len, pool })
    }

    fn put(&self, block: Vec<u8>) {
        let mut free = self.free();
        if free.bytes + block.capacity() <= KEPT {
            free.bytes += block.capacity();
            free.blocks.push(block);
        }
    }
}

struct Lent {
    block: Vec<u8>,
    len: usize,
    pool: Arc<Pool>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.block[..self.len]
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pool.put(std::mem::take(&mut self.block));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_used_again_once_nobody_refers_to_it() {
        let pool = Arc::<Pool>::default();
        let bytes = pool.lend(vec![7; 1000], 900);
        assert_eq!(bytes.len(), 900);
        let (at, part) = (bytes.as_ptr(), bytes.slice(10..20));
        drop(bytes);
        assert!(pool.take(1000).is_none());
        assert_eq!(part, [7; 10][..]);
        drop(part);
        assert!(pool.take(1001).is_none(), "too small");
        assert!(pool.take(499).is_none(), "much too large");
        let block = pool.take(500).unwrap();
        assert!(block.len() == 1000 && block.as_ptr() == at);
        assert!(pool.take(500).is_none(), "it is taken");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let pool = Arc::<Pool>::default();
        let lent: Vec<Bytes> = (0..10).map(|_| pool.lend(vec![0; KEPT / 4], 1)).collect();
        drop(lent);
        let kept = std::iter::from_fn(|| pool.take(KEPT / 4));
        assert_eq!(kept.count(), 4);
        pool.put(vec![0; KEPT]);
        assert!(pool.take(KEPT).is_some(), "what was taken does not count");
    }
}
