//! The handshake of two processes on a new connection, up to the first frame.
//!
//! ```text
//! connecting                                accepting
//!            (TLS, where it is asked for)
//! hello, first message of Noise  ------------>
//!        <------------------------------------  hello, second message; or a hello that no message follows
//! objection  --------------------------------->
//!        <------------------------------------  objection
//! ```
//!
//! The messages are those of [`noise`](crate::noise). The objections, mostly empty, are the first bytes under the
//! keys that the messages agreed on. Under TLS nothing is sealed twice: they, and all later bytes, are covered by TLS
//! alone. The handshake is bound to the TLS session, so that the two ends that share the secret are the two ends of
//! the session. Two lengths are read before the other side has proved that it knows the secret, and neither can be
//! large. A side that fails to prove that is a [`Failure::Stranger`] to the accepting side, which keeps waiting for
//! others; to the connecting side a secret or a version that differs is final, since it knows the process that it
//! wanted to reach.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustls::AlertDescription;

use crate::introduction::Introduction;
use crate::noise::{Greeted, Greeting, HELLO, Hello, Terms, Unproved};
use crate::secret::Secret;
use crate::tls::Identity;
use crate::wire::{Incoming, Wire};

/// The time that the other side may take until both are introduced, while a cluster forms.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of an objection, at most; a longer one is cut. It may list two configurations.
const MAX_OBJECTION: usize = 256 << 10;

/// The first bytes of TLS.
const TLS_HELLO: [u8; 2] = [0x16, 3];
/// The first bytes of a TLS alert.
const TLS_ALERT: [u8; 2] = [0x15, 3];
/// A complete TLS alert: protocol version not supported.
const TLS_REFUSAL: [u8; 7] = [0x15, 3, 3, 0, 2, 2, 70];

/// This process, as every connection needs it.
pub(crate) struct Local {
    pub(crate) secret: Secret,
    /// The purpose of the connections.
    pub(crate) purpose: &'static str,
    pub(crate) identity: Option<Identity>,
    pub(crate) introduction: Introduction,
    pub(crate) version: u16,
    /// The time that the other side may take until both are introduced.
    pub(crate) patience: Duration,
}

impl Local {
    fn terms<'a>(&'a self, binding: &'a [u8]) -> Terms<'a> {
        Terms {
            secret: &self.secret,
            version: self.version,
            purpose: self.purpose,
            binding,
        }
    }
}

/// The cause of a failed handshake.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection broke, or nothing came in time: worth another try.
    Broken(String),
    /// The other side did not prove that it belongs to the cluster.
    Stranger(String),
    /// The other side belongs to the cluster, or should, and cannot be in it: final.
    Refused(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        // An error that TLS found in the other side is permanent.
        if let Some(tls) = error
            .get_ref()
            .and_then(|source| source.downcast_ref::<rustls::Error>())
        {
            return Failure::Refused(match tls {
                rustls::Error::InvalidMessage(_)
                | rustls::Error::AlertReceived(AlertDescription::ProtocolVersion) => {
                    "this process is configured for TLS, and the other is not".to_owned()
                }
                other => format!("TLS failed: {other}"),
            });
        }
        Failure::Broken(match error.kind() {
            io::ErrorKind::UnexpectedEof => "the connection was closed".to_owned(),
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
                "nothing was sent in time".to_owned()
            }
            _ => error.to_string(),
        })
    }
}

/// A connection whose ends are introduced to each other.
pub(crate) struct Established {
    pub(crate) process: usize,
    pub(crate) incoming: Incoming,
}

fn take<const N: usize>(incoming: &mut Incoming) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    incoming.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// One side's objection to the other, which is empty where there is none.
fn take_objection(incoming: &mut Incoming) -> Result<Option<String>, Failure> {
    let len = u32::from_le_bytes(take(incoming)?) as usize;
    if len > MAX_OBJECTION {
        return Err(Failure::Refused(format!(
            "it announced an objection of {len} bytes"
        )));
    }
    let mut bytes = vec![0; len];
    incoming.read_exact(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some(text).filter(|text| !text.is_empty()))
}

fn object(wire: &Wire, objection: Option<&str>) -> io::Result<()> {
    let text = objection.unwrap_or("").as_bytes();
    let text = &text[..text.len().min(MAX_OBJECTION)];
    let len = u32::try_from(text.len()).expect("limited");
    wire.write_all(&[&len.to_le_bytes(), text].concat())
}

/// A hello, and the message that it announces.
fn announced(version: u16, message: &[u8]) -> Vec<u8> {
    let len = u16::try_from(message.len()).expect("Noise's messages are no longer");
    let hello = Hello {
        version,
        message: len,
    };
    [&hello.to_bytes()[..], message].concat()
}

fn take_message(incoming: &mut Incoming, hello: Hello) -> io::Result<Vec<u8>> {
    let mut message = vec![0; usize::from(hello.message)];
    incoming.read_exact(&mut message)?;
    Ok(message)
}

fn versions(there: u16, here: u16) -> String {
    format!(
        "it speaks version {there} of the wire format, this process version {here}: install the same release everywhere"
    )
}

/// Prepares a new socket, with TLS if it is configured.
fn open(socket: TcpStream, local: &Local, host: Option<&str>) -> Result<Incoming, Failure> {
    let until = Instant::now() + local.patience;
    socket.set_nodelay(true)?;
    socket.set_write_timeout(Some(local.patience))?;
    let wire = match &local.identity {
        None => Wire::bare(socket),
        Some(identity) => {
            let session = match host {
                Some(host) => identity.connecting(host),
                None => identity.accepting(),
            };
            Wire::under_tls(socket, session.map_err(Failure::Refused)?, until)?
        }
    };
    let mut incoming = Incoming::new(wire);
    incoming.set_deadline(Some(until));
    Ok(incoming)
}

/// The side that connected, to process `expected` at `host`.
pub(crate) fn connect(
    socket: TcpStream,
    local: &Local,
    expected: usize,
    host: &str,
) -> Result<Established, Failure> {
    let mut incoming = open(socket, local, Some(host))?;
    let binding = incoming.wire().binding()?;
    let introduction = Introduction {
        expects: u32::try_from(expected).ok(),
        ..local.introduction.clone()
    };
    let unproved = |why: Unproved| Failure::Refused(why.to_string());
    let (greeting, message) =
        Greeting::new(&local.terms(&binding), &introduction).map_err(unproved)?;
    incoming
        .wire()
        .write_all(&announced(local.version, &message))?;
    let hello = answer(&mut incoming)?;
    if hello.version != local.version {
        return Err(Failure::Refused(versions(hello.version, local.version)));
    }
    if hello.message == 0 {
        return Err(Failure::Refused(
            "its secret is not this process's".to_owned(),
        ));
    }
    let message = take_message(&mut incoming, hello)?;
    let (keys, theirs) = greeting.answered(&message).map_err(unproved)?;
    let mut incoming = incoming.cover(keys);
    let objection = introduction.objection(&theirs);
    // The other side may count on this connection from here on: there is no second try.
    let there = object(incoming.wire(), objection.as_deref())
        .map_err(Failure::from)
        .and_then(|()| take_objection(&mut incoming))
        .map_err(|failure| match failure {
            Failure::Broken(why) => Failure::Refused(why),
            other => other,
        });
    // This process's objection has more information for it than the end of the other side, or the other's objection.
    if let Some(reason) = objection {
        return Err(Failure::Refused(reason));
    }
    if let Some(reason) = there? {
        return Err(Failure::Refused(reason));
    }
    incoming.set_deadline(None);
    Ok(Established {
        process: expected,
        incoming,
    })
}

/// The hello of the side that was connected to.
fn answer(incoming: &mut Incoming) -> Result<Hello, Failure> {
    let mut bytes = [0; HELLO];
    let mut len = 0;
    while len < HELLO {
        match incoming.read(&mut bytes[len..])? {
            0 => break,
            count => len += count,
        }
    }
    // The other side took the hello for a bad start of TLS.
    if !incoming.wire().is_under_tls() && bytes.starts_with(&TLS_ALERT) {
        return Err(Failure::Refused(
            "it uses TLS, and this process is not configured for it".to_owned(),
        ));
    }
    if len < HELLO {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Hello::parse(&bytes).ok_or_else(|| Failure::Stranger("something else answers there".to_owned()))
}

/// The accepting side's decisions about connections.
pub(crate) trait Admission {
    /// A holder of the secret made the first message, under this fresh key; whether it was not seen before.
    fn greeted(&self, ephemeral: &[u8; 32]) -> bool;

    /// Notes that a process has proved its identity, and returns an objection to it, if there is one.
    fn claimed(&self, process: usize) -> Option<String>;
}

/// The side that was connected to.
pub(crate) fn accept(
    socket: TcpStream,
    local: &Local,
    admission: &dyn Admission,
) -> Result<Established, (Option<usize>, Failure)> {
    let Recognised {
        mut incoming,
        theirs,
        objection,
    } = recognise(socket, local, admission).map_err(|failure| {
        // Until it has proved that it is there now, nothing that it does is final.
        let (Failure::Broken(why) | Failure::Stranger(why) | Failure::Refused(why)) = failure;
        (None, Failure::Stranger(why))
    })?;
    let process = theirs.process as usize;
    let finish = || -> Result<(), Failure> {
        let mine = local.introduction.objection(&theirs);
        let reason = mine.or(objection).or_else(|| admission.claimed(process));
        object(incoming.wire(), reason.as_deref())?;
        reason.map_or(Ok(()), |reason| Err(Failure::Refused(reason)))
    };
    finish().map_err(|failure| (Some(process), failure))?;
    incoming.set_deadline(None);
    Ok(Established { process, incoming })
}

/// A peer that is connected and knows the secret.
struct Recognised {
    incoming: Incoming,
    theirs: Introduction,
    /// The objection of the peer.
    objection: Option<String>,
}

/// Everything that a stranger could stop.
fn recognise(
    socket: TcpStream,
    local: &Local,
    admission: &dyn Admission,
) -> Result<Recognised, Failure> {
    let mut incoming = open(socket, local, None)?;
    let bytes = take::<HELLO>(&mut incoming)?;
    let Some(hello) = Hello::parse(&bytes) else {
        return Err(Failure::Stranger(not_ours(&mut incoming, &bytes)?));
    };
    let refuse = |incoming: &Incoming, why: String| {
        incoming.wire().write_all(&announced(local.version, &[]))?;
        Err(Failure::Stranger(why))
    };
    if hello.version != local.version {
        return refuse(&incoming, versions(hello.version, local.version));
    }
    let message = take_message(&mut incoming, hello)?;
    let binding = incoming.wire().binding()?;
    let greeted = match Greeted::new(&local.terms(&binding), &message) {
        Ok(greeted) => greeted,
        Err(Unproved::Secret(_)) => {
            return refuse(&incoming, "its secret is not this process's".to_owned());
        }
        Err(why) => return refuse(&incoming, why.to_string()),
    };
    if !admission.greeted(&greeted.ephemeral) {
        return refuse(&incoming, "it repeats what another has said".to_owned());
    }
    let theirs = greeted.theirs.clone();
    let (keys, message) = greeted
        .answer(&local.introduction)
        .map_err(|why| Failure::Refused(why.to_string()))?;
    incoming
        .wire()
        .write_all(&announced(local.version, &message))?;
    let mut incoming = incoming.cover(keys);
    let objection = take_objection(&mut incoming)?;
    Ok(Recognised {
        incoming,
        theirs,
        objection,
    })
}

/// Refuses a peer that speaks another protocol, with an answer where that is possible, and names the
/// protocol.
fn not_ours(incoming: &mut Incoming, bytes: &[u8]) -> io::Result<String> {
    if incoming.wire().is_under_tls() || !bytes.starts_with(&TLS_HELLO) {
        return Ok("it speaks another protocol".to_owned());
    }
    // It gets an answer in its own protocol, once it has sent its first bytes.
    let _ = incoming.read(&mut [0; 4096]);
    incoming.wire().write_all(&TLS_REFUSAL)?;
    Ok("it speaks TLS, and this process is not configured for it".to_owned())
}
