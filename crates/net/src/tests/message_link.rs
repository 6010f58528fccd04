//! Links between two programs: messages, limits, and refused ends.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use super::support::joined;
use crate::Secret;
use crate::message_link::{MessageLink, Party, Refusal};
use crate::noise::VERSION;

fn party(secret: &str, server: &str) -> Party {
    Party {
        secret: Secret::new(secret.as_bytes()),
        context: BTreeMap::from([("the server".to_owned(), server.to_owned())]),
        patience: Duration::from_secs(10),
    }
}

/// Both ends of a connection, as they see each other.
fn meet(
    client: Party,
    server: &Party,
    version: u16,
) -> (Result<MessageLink, Refusal>, Result<MessageLink, Refusal>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connecting = thread::spawn(move || {
        let socket = TcpStream::connect(address).unwrap();
        MessageLink::greet(socket, &client, version)
    });
    let (socket, _) = listener.accept().unwrap();
    let accepted = MessageLink::accept(socket, server, &|_| true);
    (joined(connecting), accepted)
}

fn pair() -> (MessageLink, MessageLink) {
    let (client, server) = meet(party("s", "driver"), &party("s", "driver"), VERSION);
    (client.unwrap(), server.unwrap())
}

/// Both ends of a socket pair, as two processes have them.
#[cfg(unix)]
fn inherited_pair() -> (MessageLink, MessageLink) {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    let (one, other) = UnixStream::pair().unwrap();
    // As where the program has set a default timeout for sockets.
    one.set_nonblocking(true).unwrap();
    let end = |socket| MessageLink::inherited(TcpStream::from(OwnedFd::from(socket))).unwrap();
    (end(one), end(other))
}

fn pairs() -> Vec<(MessageLink, MessageLink)> {
    #[cfg(unix)]
    return vec![pair(), inherited_pair()];
    #[cfg(not(unix))]
    return vec![pair()];
}

fn next(link: &MessageLink) -> io::Result<Option<Vec<u8>>> {
    link.receive(1 << 30, &mut || Ok(()))
}

/// A machine that disappears without a farewell is noticed by the system: nothing else limits the time of a
/// link.
#[test]
#[cfg(target_os = "linux")]
fn the_system_looks_whether_the_other_machine_is_there() {
    let (client, server) = pair();
    for link in [&client, &server] {
        let socket = socket2::SockRef::from(link.socket());
        assert!(socket.keepalive().unwrap());
        assert_eq!(
            socket.tcp_keepalive_time().unwrap(),
            Duration::from_secs(30)
        );
        assert_eq!(
            socket.tcp_user_timeout().unwrap(),
            Some(Duration::from_secs(60))
        );
    }
}

#[test]
fn messages_of_every_size_arrive_whole_and_in_order() {
    for (client, server) in pairs() {
        let sizes = [0, 1, 65518, 65519, 65520, 200_000, 5 << 20, 3];
        let sending = thread::spawn(move || {
            for (byte, size) in (0_u8..).zip(sizes) {
                let (head, tail) = (vec![byte; size / 2], vec![byte; size - size / 2]);
                client.send(&[&head, &tail], &mut || Ok(())).unwrap();
            }
        });
        for (byte, size) in (0_u8..).zip(sizes) {
            assert!(next(&server).unwrap().unwrap() == vec![byte; size]);
        }
        assert_eq!(next(&server).unwrap(), None, "the other end has closed");
        joined(sending);
    }
}

#[test]
fn messages_of_many_threads_stay_whole() {
    for (client, server) in pairs() {
        let client = std::sync::Arc::new(client);
        let senders: Vec<_> = (0..8_u8)
            .map(|byte| {
                let client = std::sync::Arc::clone(&client);
                thread::spawn(move || {
                    for _ in 0..20 {
                        client
                            .send(&[&vec![byte; 100_000]], &mut || Ok(()))
                            .unwrap();
                    }
                })
            })
            .collect();
        let mut counts = [0; 8];
        for _ in 0..8 * 20 {
            let message = next(&server).unwrap().unwrap();
            assert_eq!(message.len(), 100_000);
            assert!(message.iter().all(|&byte| byte == message[0]));
            counts[usize::from(message[0])] += 1;
        }
        assert_eq!(counts, [20; 8]);
        for sender in senders {
            joined(sender);
        }
    }
}

/// While the other end takes nothing, the sender is asked whether to wait longer; later everything that it sent
/// arrives, once.
#[test]
fn a_sender_that_waits_is_asked_whether_to_go_on_and_loses_nothing() {
    for (client, server) in pairs() {
        let (stop, stopped) = std::sync::mpsc::channel();
        let sending = thread::spawn(move || {
            let message: Vec<u8> = (0..=250).cycle().take(20 << 20).collect();
            client.send(&[&message], &mut || {
                let _nobody = stop.send(());
                Ok(())
            })
        });
        for _ in 0..3 {
            stopped.recv().unwrap();
        }
        let message = next(&server).unwrap().unwrap();
        assert_eq!(message.len(), 20 << 20);
        assert!(
            (0..=250)
                .cycle()
                .zip(&message)
                .all(|(expected, &byte): (u8, _)| byte == expected)
        );
        joined(sending).unwrap();
    }
    for (client, server) in pairs() {
        let sent = client.send(&[&vec![0; 20 << 20]], &mut || {
            Err(ErrorKind::TimedOut.into())
        });
        assert_eq!(sent.unwrap_err().kind(), ErrorKind::TimedOut);
        assert!(next(&server).is_err(), "a part of a message is none");
    }
}

/// A stream that ends inside a length or a message is an error, and not the end of a link.
#[test]
#[cfg(unix)]
fn half_a_message_is_an_error() {
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    for part in [
        &[3][..],
        &[3, 0, 0, 0, 0, 0, 0, 0],
        &[3, 0, 0, 0, 0, 0, 0, 0, 1, 2],
    ] {
        let (mut one, other) = UnixStream::pair().unwrap();
        let link = MessageLink::inherited(TcpStream::from(OwnedFd::from(other))).unwrap();
        one.write_all(part).unwrap();
        drop(one);
        let error = next(&link).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    }
}

#[test]
fn who_differs_is_refused_with_what_differs() {
    let (client, server) = meet(party("s", "process 1"), &party("s", "process 2"), VERSION);
    let expected =
        |there, here| format!("the server is process {there} there and process {here} here");
    assert_eq!(client.err(), Some(Refusal::Differs(expected(2, 1))));
    assert_eq!(server.err(), Some(Refusal::Differs(expected(1, 2))));
    let (client, server) = meet(party("s", "a"), &party("t", "a"), VERSION);
    let why = "its secret is not this process's".to_owned();
    assert_eq!(client.err(), Some(Refusal::Differs(why.clone())));
    assert_eq!(server.err(), Some(Refusal::Stranger(why)));
    let (client, server) = meet(party("s", "a"), &party("s", "a"), VERSION + 1);
    assert!(
        client
            .err()
            .unwrap()
            .to_string()
            .contains("it speaks version")
    );
    assert!(
        server
            .err()
            .unwrap()
            .to_string()
            .contains("it speaks version")
    );
}

#[test]
fn a_secret_shown_for_a_cluster_is_of_no_use_here() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addresses = vec![
        listener.local_addr().unwrap().to_string(),
        "127.0.0.1:1".to_owned(),
    ];
    let mut member = super::support::member(1, &addresses);
    member.secret = b"s".to_vec();
    member.connect_timeout = Duration::from_secs(5);
    let forming = super::support::spawn(member, Some(TcpListener::bind("127.0.0.1:0").unwrap()));
    let (socket, _) = listener.accept().unwrap();
    let accepted = MessageLink::accept(socket, &party("s", "driver"), &|_| true);
    assert!(matches!(accepted.err(), Some(Refusal::Stranger(_))));
    assert!(
        super::support::error(forming)
            .to_string()
            .contains("its secret is not this process's")
    );
}

#[test]
fn a_message_that_is_longer_than_is_taken_is_refused_unread() {
    for (client, server) in pairs() {
        client.send(&[&[0; 1001]], &mut || Ok(())).unwrap();
        let error = server.receive(1000, &mut || Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(
            error
                .to_string()
                .contains("a message of 1001 bytes came, and at most 1000 are taken"),
            "{error}"
        );
        assert!(
            next(&client).is_err() || next(&client).unwrap().is_none(),
            "it is over"
        );
    }
}

#[test]
fn a_receiver_that_waits_is_asked_whether_to_go_on_and_may_be_closed() {
    for (client, server) in pairs() {
        let mut asked = 0;
        let waited = server.receive(10, &mut || {
            asked += 1;
            if asked == 2 {
                Err(ErrorKind::TimedOut.into())
            } else {
                Ok(())
            }
        });
        assert_eq!(waited.unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(next(&client).unwrap(), None);
    }
    for (client, server) in pairs() {
        let server = std::sync::Arc::new(server);
        let waiting = thread::spawn({
            let server = std::sync::Arc::clone(&server);
            move || next(&server)
        });
        server.close();
        assert_eq!(joined(waiting).unwrap(), None);
        drop(client);
    }
}

#[test]
fn who_connects_is_asked_whether_to_go_on_while_the_other_end_is_silent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let silent = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut said = Vec::new();
        socket.read_to_end(&mut said) // until the attempt is given up
    });
    let mut patient = party("s", "driver");
    patient.patience = Duration::from_secs(3600);
    let mut asked = 0;
    let refusal = MessageLink::connect("127.0.0.1", port, &patient, &mut || {
        asked += 1;
        if asked == 2 {
            Err(ErrorKind::Interrupted.into())
        } else {
            Ok(())
        }
    });
    assert!(matches!(refusal.err(), Some(Refusal::Unreachable(_))));
    let _ended = joined(silent);
}

#[test]
fn who_is_sent_away_before_it_is_heard_tries_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepting = thread::spawn(move || {
        for _ in 0..3 {
            drop(listener.accept().unwrap());
        }
        let (socket, _) = listener.accept().unwrap();
        MessageLink::accept(socket, &party("s", "driver"), &|_| true).unwrap()
    });
    let client = MessageLink::connect("127.0.0.1", port, &party("s", "driver"), &mut || Ok(()));
    client.unwrap().send(&[b"here"], &mut || Ok(())).unwrap();
    assert_eq!(next(&joined(accepting)).unwrap().unwrap(), b"here");
}

#[test]
fn a_recorded_greeting_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut keys = std::collections::BTreeSet::new();
    for fresh in [true, true, false] {
        let connecting = thread::spawn(move || {
            let socket = TcpStream::connect(address).unwrap();
            MessageLink::greet(socket, &party("s", "driver"), VERSION)
        });
        let (socket, _) = listener.accept().unwrap();
        let seen = std::cell::Cell::new(None);
        let accepted = MessageLink::accept(socket, &party("s", "driver"), &|key| {
            seen.set(Some(*key));
            fresh
        });
        assert_eq!(accepted.is_ok(), fresh);
        assert_eq!(joined(connecting).is_ok(), fresh);
        assert!(
            keys.insert(seen.get().unwrap()),
            "every greeting has a key of its own"
        );
    }
}

/// Passes on the bytes of two ends, except one byte of the `at`th piece of the client's.
#[test]
fn a_byte_that_is_changed_on_the_way_ends_it() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let front = TcpListener::bind("127.0.0.1:0").unwrap();
    let (there, here) = (listener.local_addr().unwrap(), front.local_addr().unwrap());
    let relay = thread::spawn(move || {
        let (mut near, _) = front.accept().unwrap();
        let mut far = TcpStream::connect(there).unwrap();
        let (mut back, mut to) = (far.try_clone().unwrap(), near.try_clone().unwrap());
        thread::spawn(move || io::copy(&mut back, &mut to));
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = near.read(&mut bytes) {
            // A message of this length is not one of the handshake's.
            if count > 2000 {
                bytes[1000] ^= 8;
            }
            far.write_all(&bytes[..count]).unwrap();
        }
    });
    let connecting = thread::spawn(move || {
        let socket = TcpStream::connect(here).unwrap();
        MessageLink::greet(socket, &party("s", "driver"), VERSION).unwrap()
    });
    let (socket, _) = listener.accept().unwrap();
    let server = MessageLink::accept(socket, &party("s", "driver"), &|_| true).unwrap();
    let client = joined(connecting);
    client.send(&[b"first"], &mut || Ok(())).unwrap();
    assert_eq!(next(&server).unwrap().unwrap(), b"first");
    client.send(&[&[0; 3000]], &mut || Ok(())).unwrap();
    let error = next(&server).unwrap_err();
    assert!(error.to_string().contains("does not verify"), "{error}");
    drop((client, server));
    joined(relay);
}
