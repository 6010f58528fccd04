//! Records: the sealed bytes on a connection after the handshake.
//!
//! ```text
//! length (2 bytes, little-endian)   ciphertext (length bytes: the bytes of the stream, and a tag of 16)
//! ```
//!
//! This is the transport phase of Noise with AES-256-GCM, by its specification (revision 34), with the cipher called
//! directly, so that bytes are copied once and sealed in place. Each direction has a key of its own. The nonce is a
//! counter that each end keeps for itself and never writes: a record that was changed, left out, repeated, inserted,
//! moved, or is an end's own sent back does not verify, and ends the connection. A counter is never used twice with a
//! key: it only grows. Every [`REKEY`] records both ends take the next key, by Noise's REKEY, far below the limit of
//! AES-GCM.
//!
//! A length is not secret and needs no tag: another one makes another ciphertext, which does not verify. No record makes
//! memory grow: it has at most [`MOST`] bytes.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// Bytes of the length before a record.
pub(crate) const PREFIX: usize = 2;
/// Bytes of the tag at a record's end.
pub(crate) const TAG: usize = 16;
/// Bytes of a message of Noise, at most.
pub(crate) const MOST: usize = 65535;
/// Bytes of the stream in a record, at most.
pub(crate) const PLAIN: usize = MOST - TAG;
/// Records under one key: 2^20 of 64 KiB have 2^32 blocks, and TLS 1.3 allows some 2^34.
const REKEY: u64 = 1 << 20;
/// The counter that Noise reserves for the next key.
const NEXT_KEY: u64 = u64::MAX;

/// A record that cannot be one. The connection is not to be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    /// It does not verify.
    #[error(
        "what came does not verify: something between the processes changed, repeated, left out or put in bytes"
    )]
    Forged,
    /// It is too short to have a tag.
    #[error("a record of {0} bytes came, which is too short to be sealed")]
    Short(usize),
    /// So many records were exchanged that no counter is left.
    #[error("the connection has used up its counters")]
    Worn,
}

/// One direction of a connection.
struct Direction {
    key: LessSafeKey,
    counter: u64,
}

fn keyed(key: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).expect("a key of this cipher's length"))
}

/// Formats a nonce for AES-GCM as Noise does.
fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[4..].copy_from_slice(&counter.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

impl Direction {
    fn new(key: &[u8; 32]) -> Self {
        Direction {
            key: keyed(key),
            counter: 0,
        }
    }

    /// The nonce of the next record.
    fn next(&mut self) -> Result<Nonce, Broken> {
        if self.counter > 0 && self.counter.is_multiple_of(REKEY) {
            self.rekey();
        }
        let now = self.counter;
        self.counter = now
            .checked_add(1)
            .filter(|&next| next < NEXT_KEY)
            .ok_or(Broken::Worn)?;
        Ok(nonce(now))
    }

    /// Noise's REKEY: the next key is the encryption of zeros under the reserved counter.
    fn rekey(&mut self) {
        let mut next = [0; 32];
        let _tag = self
            .key
            .seal_in_place_separate_tag(nonce(NEXT_KEY), Aad::empty(), &mut next)
            .expect("32 bytes are not too many");
        self.key = keyed(&next);
    }
}

/// Seals the bytes that one end writes.
pub(crate) struct Sealer(Direction);

impl Sealer {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Sealer(Direction::new(key))
    }

    /// Appends a record to `out`, of the bytes that `fill` appends, which are at most [`PLAIN`].
    pub(crate) fn seal(
        &mut self,
        out: &mut Vec<u8>,
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), Broken> {
        let nonce = self.0.next()?;
        let start = out.len();
        out.extend_from_slice(&[0; PREFIX]);
        fill(out);
        let body = start + PREFIX;
        let len = u16::try_from(out.len() - body + TAG)
            .expect("a record is at most as long as it may be");
        out[start..body].copy_from_slice(&len.to_le_bytes());
        let tag = self
            .0
            .key
            .seal_in_place_separate_tag(nonce, Aad::empty(), &mut out[body..])
            .map_err(|_| Broken::Worn)?;
        out.extend_from_slice(tag.as_ref());
        Ok(())
    }
}

/// Opens the records that the other end has sealed.
pub(crate) struct Opener(Direction);

impl Opener {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Opener(Direction::new(key))
    }

    /// The length of the record that begins here, without its prefix; `None` while the prefix is incomplete.
    pub(crate) fn length(bytes: &[u8]) -> Result<Option<usize>, Broken> {
        let Some(prefix) = bytes.first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let len = usize::from(u16::from_le_bytes(*prefix));
        if len < TAG {
            return Err(Broken::Short(len));
        }
        Ok(Some(len))
    }

    /// Opens a record, without its prefix, in place; returns the number of plain bytes, which are its first.
    pub(crate) fn open(&mut self, record: &mut [u8]) -> Result<usize, Broken> {
        let nonce = self.0.next()?;
        let plain = self.0.key.open_in_place(nonce, Aad::empty(), record);
        plain.map(|plain| plain.len()).map_err(|_| Broken::Forged)
    }
}

#[cfg(test)]
#[path = "records/tests.rs"]
mod tests;
