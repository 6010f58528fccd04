//! How two processes prove to each other that they know the secret, before anything else is read.
//!
//! Both say hello: a magic word, the version of the wire format and a nonce. Then each sends an HMAC-SHA256, keyed with the
//! secret, of its role, the version, both nonces and what TLS knows of the connection, the connecting side first: a
//! stranger who connects learns nothing that he could use. The secret never crosses the wire, a proof is of no use on another
//! connection, and one side's is none of the other's.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The version of the wire format.
pub(crate) const VERSION: u16 = 1;
/// Bytes of a hello.
pub(crate) const HELLO: usize = 8 + 2 + 32;
/// Bytes of a proof.
pub(crate) const PROOF: usize = 32;

const MAGIC: [u8; 8] = *b"ptstamp\n";

/// What both sides begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) version: u16,
    pub(crate) nonce: [u8; 32],
}

impl Hello {
    /// A hello with a fresh nonce.
    pub(crate) fn new(version: u16) -> Result<Self, getrandom::Error> {
        let mut nonce = [0; 32];
        getrandom::fill(&mut nonce)?;
        Ok(Hello { version, nonce })
    }

    pub(crate) fn to_bytes(self) -> [u8; HELLO] {
        let mut bytes = [0; HELLO];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.version.to_le_bytes());
        bytes[10..].copy_from_slice(&self.nonce);
        bytes
    }

    /// `None` when these are not the bytes of a hello.
    pub(crate) fn parse(bytes: &[u8; HELLO]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (version, nonce) = rest.split_first_chunk::<2>()?;
        Some(Hello {
            version: u16::from_le_bytes(*version),
            nonce: nonce.try_into().ok()?,
        })
    }
}

/// Who proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Connecting,
    Accepting,
}

/// What both sides know of a connection once they have said hello.
#[derive(Debug)]
pub(crate) struct Challenge<'a> {
    pub(crate) secret: &'a [u8],
    pub(crate) connecting: Hello,
    pub(crate) accepting: Hello,
    /// What only the two ends of a TLS session know; empty without TLS.
    pub(crate) binding: &'a [u8],
}

impl Challenge<'_> {
    fn mac(&self, role: Role) -> Hmac<Sha256> {
        let label: &[u8] = match role {
            Role::Connecting => b"pointstamp: the connecting side",
            Role::Accepting => b"pointstamp: the accepting side.",
        };
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.secret).expect("a key may have any length");
        // All parts but the last have a fixed length: no two challenges look alike.
        mac.update(label);
        mac.update(&self.connecting.to_bytes());
        mac.update(&self.accepting.to_bytes());
        mac.update(self.binding);
        mac
    }

    /// The proof of one side.
    pub(crate) fn prove(&self, role: Role) -> [u8; PROOF] {
        self.mac(role).finalize().into_bytes().into()
    }

    /// Whether `proof` is that side's; takes as long when it is not.
    pub(crate) fn verify(&self, role: Role, proof: &[u8; PROOF]) -> bool {
        self.mac(role).verify_slice(proof).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge<'a>(secret: &'a [u8], binding: &'a [u8]) -> Challenge<'a> {
        let hello = |byte| Hello {
            version: VERSION,
            nonce: [byte; 32],
        };
        Challenge {
            secret,
            connecting: hello(1),
            accepting: hello(2),
            binding,
        }
    }

    #[test]
    fn a_proof_is_good_for_one_role_one_secret_and_one_connection() {
        let ours = challenge(b"secret", b"");
        let proof = ours.prove(Role::Connecting);
        assert!(ours.verify(Role::Connecting, &proof));
        assert!(!ours.verify(Role::Accepting, &proof), "reflected");
        assert!(!challenge(b"other", b"").verify(Role::Connecting, &proof));
        assert!(!challenge(b"secret", b"tls").verify(Role::Connecting, &proof));
        let mut again = challenge(b"secret", b"");
        again.accepting.nonce[31] ^= 1;
        assert!(!again.verify(Role::Connecting, &proof), "replayed");
        let mut older = challenge(b"secret", b"");
        older.connecting.version ^= 1;
        assert!(!older.verify(Role::Connecting, &proof));
    }

    #[test]
    fn a_hello_survives_and_other_bytes_are_none() {
        let hello = Hello::new(7).unwrap();
        assert_ne!(hello.nonce, Hello::new(7).unwrap().nonce);
        let bytes = hello.to_bytes();
        assert_eq!(Hello::parse(&bytes), Some(hello));
        let mut http = [b' '; HELLO];
        http[..5].copy_from_slice(b"GET /");
        assert_eq!(Hello::parse(&http), None);
    }
}
