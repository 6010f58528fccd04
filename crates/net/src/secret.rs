//! From the secret that people give to the key that Noise shares.
//!
//! The secret may have any length and any bytes, and the key has to have 32 that look random: PBKDF2 with HMAC-SHA256
//! makes them, under a label of this use, so that other keys derived from the same secret have nothing in common with
//! it. Its [`ROUNDS`] make each guess expensive, some 17 bits for an attacker, and cost this process tens of
//! milliseconds, once for each secret: the last few are remembered. They do not make a weak secret strong: an
//! attacker with a recorded greeting can try guesses without a further connection, so that a secret should have 128
//! random bits (`secrets.token_hex(32)` has 256).

use std::num::NonZeroU32;

use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use ring::pbkdf2;

/// Makes the key differ from any other that is derived from the same secret. Part of the wire format.
const LABEL: &[u8] = b"pointstamp: the shared key of Noise_NNpsk0_25519_AESGCM_SHA256, version 2";
/// The number of iterations of the hash. Part of the wire format.
const ROUNDS: NonZeroU32 = NonZeroU32::new(100_000).unwrap();

/// Keys that are remembered.
const REMEMBERED: usize = 8;

/// Keys by the hash of their secret, the latest first.
static KEYS: Mutex<Vec<([u8; 32], Secret)>> = Mutex::new(Vec::new());

/// The secret that the processes of a cluster share, ready for use.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Derives the key; takes tens of milliseconds, unless it was derived lately.
    pub fn new(secret: &[u8]) -> Self {
        let hash = digest(&SHA256, secret);
        let hash: [u8; 32] = hash.as_ref().try_into().unwrap_or_default(); // it has 32 bytes
        // Held while the key is derived: another thread that needs the same one waits for it.
        let mut keys = KEYS.lock();
        let known = keys.iter().position(|(of, _)| *of == hash);
        let key = known.map_or_else(|| Self::derive(secret), |at| keys.remove(at).1);
        keys.insert(0, (hash, key.clone()));
        keys.truncate(REMEMBERED);
        key
    }

    fn derive(secret: &[u8]) -> Self {
        let mut key = [0; 32];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ROUNDS, LABEL, secret, &mut key);
        Secret(key)
    }

    pub(crate) fn key(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secret").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_of_the_secret_and_is_not_printed() {
        let (one, other) = (Secret::new(b"one"), Secret::new(b"other"));
        assert!(one == Secret::new(b"one") && one != other);
        assert_eq!(format!("{one:?}"), "Secret { .. }");
        for other in 0..16 {
            KEYS.lock().insert(0, ([other; 32], other_key(other)));
        }
        assert!(one == Secret::new(b"one"), "also when it is forgotten");
        assert!(KEYS.lock().len() <= REMEMBERED);
    }

    #[test]
    fn the_derivation_is_part_of_the_wire_format() {
        // hashlib.pbkdf2_hmac("sha256", b"secret", LABEL, 100_000), as Python computes it.
        let key = Secret::new(b"secret").0;
        let of_python =
            (0..32).map(|at| u8::from_str_radix(&PYTHON[2 * at..2 * at + 2], 16).unwrap());
        assert!(of_python.eq(key));
    }

    fn other_key(byte: u8) -> Secret {
        Secret([byte; 32])
    }

    const PYTHON: &str = "efc8d47db7e75e53ce1f7d4f8487273a0657745c22856e64ccde8be3e67bae20";
}
