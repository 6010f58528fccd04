//! The handshake as messages, without a socket: `Noise_NNpsk0_25519_AESGCM_SHA256`.
//!
//! ```text
//! prologue: magic word, version, purpose, what TLS knows of the connection
//!   -> psk, e         and the introduction of the side that connected
//!   <- e, ee          and that of the other side
//!   -> (first record) what it objects to
//!   <- (first record) what the other side objects to
//! ```
//!
//! The shared key is in the first message already: an end that does not know it cannot make a readable one, and
//! cannot read one. An introduction names the process, the expected number of the other side, the number of
//! processes, and the configuration: all of it is authenticated. The first message could be a replay, so it is only
//! answered; the first record of the connecting side proves that it is present now, as the second message does for
//! the other side. The keys of the records come from the secret and from two fresh Diffie-Hellman keys: an attacker
//! who learns the secret later cannot read a recording.

use snow::{Builder, HandshakeState};

use crate::introduction::Introduction;
use crate::records::{MOST, Opener, Sealer};
use crate::secret::Secret;

/// The version of the wire format.
pub(crate) const VERSION: u16 = 3;
/// Bytes of a hello.
pub(crate) const HELLO: usize = 8 + 2 + 2;

const MAGIC: [u8; 8] = *b"ptstamp\n";
const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";
/// Bytes of a fresh public key, with which the first message begins.
const EPHEMERAL: usize = 32;

/// The plain bytes before each of the first two messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) version: u16,
    /// The length of the message that follows; 0 where the other side is refused.
    pub(crate) message: u16,
}

impl Hello {
    pub(crate) fn to_bytes(self) -> [u8; HELLO] {
        let mut bytes = [0; HELLO];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&self.version.to_le_bytes());
        bytes[10..].copy_from_slice(&self.message.to_le_bytes());
        bytes
    }

    /// `None` when these are not the bytes of a hello.
    pub(crate) fn parse(bytes: &[u8; HELLO]) -> Option<Self> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        let (version, message) = rest.split_first_chunk::<2>()?;
        Some(Hello {
            version: u16::from_le_bytes(*version),
            message: u16::from_le_bytes(message.try_into().ok()?),
        })
    }
}

/// The terms that both sides must share; where one differs, neither can read the other.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) secret: &'a Secret,
    pub(crate) version: u16,
    /// The purpose of the connection: a secret's use for one purpose does not open another.
    pub(crate) purpose: &'a str,
    /// A value that only the two ends of a TLS session know; empty without TLS.
    pub(crate) binding: &'a [u8],
}

impl Terms<'_> {
    fn state(&self, initiates: bool) -> Result<HandshakeState, Unproved> {
        let mut prologue = MAGIC.to_vec();
        prologue.extend_from_slice(&self.version.to_le_bytes());
        prologue.extend_from_slice(&(self.purpose.len() as u64).to_le_bytes());
        prologue.extend_from_slice(self.purpose.as_bytes());
        prologue.extend_from_slice(self.binding);
        let builder = Builder::new(PATTERN.parse()?)
            .psk(0, self.secret.key())?
            .prologue(&prologue)?;
        Ok(if initiates {
            builder.build_initiator()?
        } else {
            builder.build_responder()?
        })
    }
}

/// The other side does not know the secret, or sent a message that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unproved {
    /// A message does not verify, or is none.
    #[error("it could not prove that it knows the secret")]
    Secret(#[from] snow::Error),
    /// It knows the secret, and its introduction is malformed.
    #[error("it introduced itself in a form that this process cannot read")]
    Introduction,
}

/// The keys of a connection.
pub(crate) struct Keys {
    pub(crate) sealer: Sealer,
    pub(crate) opener: Opener,
}

impl Keys {
    fn of(mut state: HandshakeState) -> Self {
        let (forth, back) = state.dangerously_get_raw_split();
        let (mine, theirs) = if state.is_initiator() {
            (forth, back)
        } else {
            (back, forth)
        };
        Keys {
            sealer: Sealer::new(&mine),
            opener: Opener::new(&theirs),
        }
    }
}

fn write(state: &mut HandshakeState, introduction: &Introduction) -> Result<Vec<u8>, Unproved> {
    let payload = introduction.to_bytes().ok_or(Unproved::Introduction)?;
    let mut message = vec![0; MOST];
    let len = state.write_message(&payload, &mut message)?;
    message.truncate(len);
    Ok(message)
}

fn read(state: &mut HandshakeState, message: &[u8]) -> Result<Introduction, Unproved> {
    let mut payload = vec![0; message.len()];
    let len = state.read_message(message, &mut payload)?;
    Introduction::parse(&payload[..len]).map_err(|_| Unproved::Introduction)
}

/// The side that connected, after its first message.
pub(crate) struct Greeting(HandshakeState);

impl Greeting {
    /// The first message.
    pub(crate) fn new(terms: &Terms<'_>, mine: &Introduction) -> Result<(Self, Vec<u8>), Unproved> {
        let mut state = terms.state(true)?;
        let message = write(&mut state, mine)?;
        Ok((Greeting(state), message))
    }

    /// Reads the answer, which proves that its sender knows the secret and that it is fresh.
    pub(crate) fn answered(mut self, message: &[u8]) -> Result<(Keys, Introduction), Unproved> {
        let theirs = read(&mut self.0, message)?;
        Ok((Keys::of(self.0), theirs))
    }
}

/// The accepting side, once it has read the first message: the sender of that message knew the secret.
pub(crate) struct Greeted {
    state: HandshakeState,
    /// The introduction of the other side; until one of its records has arrived, it may be a replay.
    pub(crate) theirs: Introduction,
    /// Fresh in every greeting that is not a recording.
    pub(crate) ephemeral: [u8; EPHEMERAL],
}

impl Greeted {
    /// Reads the first message.
    pub(crate) fn new(terms: &Terms<'_>, message: &[u8]) -> Result<Self, Unproved> {
        let mut state = terms.state(false)?;
        let theirs = read(&mut state, message)?;
        let ephemeral = *message.first_chunk().ok_or(Unproved::Introduction)?;
        Ok(Greeted {
            state,
            theirs,
            ephemeral,
        })
    }

    /// The answer.
    pub(crate) fn answer(mut self, mine: &Introduction) -> Result<(Keys, Vec<u8>), Unproved> {
        let message = write(&mut self.state, mine)?;
        Ok((Keys::of(self.state), message))
    }
}

#[cfg(test)]
#[path = "noise/tests.rs"]
mod tests;
