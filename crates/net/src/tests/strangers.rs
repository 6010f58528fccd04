//! Strangers get nothing out of the cluster, and disturb nothing.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::support::{Lines, error, joined, listeners, local_of, member, spawn, spawn_logged};
use crate::FormError;
use crate::noise::{Greeting, HELLO, Hello, Terms, VERSION};

#[test]
fn strangers_disturb_nothing_and_are_logged() {
    let (mut listeners, addresses) = listeners(2);
    let lines = Lines::default();
    let second = listeners.remove(1);
    let first = spawn_logged(
        member(0, &addresses),
        VERSION,
        listeners.pop(),
        lines.clone(),
    );
    let connect = || TcpStream::connect(&addresses[0]).unwrap();
    let say = |bytes: &[u8]| {
        let mut socket = connect();
        let _ = socket.write_all(bytes);
        socket
    };
    let hello = Hello {
        version: VERSION,
        message: 48,
    }
    .to_bytes();

    drop(connect());
    drop(say(&hello[..7]));
    let silent = connect();
    let partial = say(&hello[..7]);
    let mut http = say(b"GET / HTTP/1.1\r\nHost: here and there and everywhere\r\n\r\n");
    let mut tls = say(&[&[0x16, 3, 1, 0, 200][..], &[1; 200]].concat());
    let mut guess = say(&[&hello[..], &[7; 48]].concat());
    let mut verdict = Vec::new();
    let _ = guess.read_to_end(&mut verdict);
    let no = Hello {
        version: VERSION,
        message: 0,
    };
    assert_eq!(verdict, no.to_bytes(), "no, and nothing of the other side");
    let mut answer = Vec::new();
    let _ = http.read_to_end(&mut answer);
    assert!(answer.is_empty(), "a stranger is not answered");
    let _ = tls.read_to_end(&mut answer);
    assert_eq!(answer[..1], [0x15], "but for an alert of TLS");

    let second = spawn(member(1, &addresses), Some(second));
    joined(first).unwrap();
    joined(second).unwrap();
    let lines = lines.lock().unwrap();
    for waiting in [silent, partial] {
        let line = format!(
            "a stranger at {} was turned away: it had not said who it is",
            waiting.local_addr().unwrap()
        );
        assert_eq!(lines.matches(&line).count(), 1, "{line:?} in {lines}");
    }
    for expected in [
        "a stranger at 127.0.0.1:",
        "the connection was closed",
        "it speaks another protocol",
        "it speaks TLS",
        "its secret is not this process's",
    ] {
        assert!(lines.contains(expected), "{expected:?} is not in {lines}");
    }
}

#[test]
fn a_crowd_of_silent_strangers_lets_members_through() {
    let (mut listeners, addresses) = listeners(2);
    let second = listeners.remove(1);
    let first = spawn(member(0, &addresses), listeners.pop());
    let crowd: Vec<_> = (0..150)
        .map(|_| TcpStream::connect(&addresses[0]).unwrap())
        .collect();
    for mut early in &crowd[..70] {
        assert_eq!(early.read(&mut [0]).unwrap_or(0), 0, "it is sent away");
    }
    let second = spawn(member(1, &addresses), Some(second));
    joined(first).unwrap();
    joined(second).unwrap();
}

#[test]
fn a_flood_of_strangers_lets_members_through_and_is_logged_in_sums() {
    let (mut listeners, addresses) = listeners(3);
    let lines = Lines::default();
    let late = listeners.pop();
    let second = spawn(member(1, &addresses), listeners.pop());
    let first = spawn_logged(
        member(0, &addresses),
        VERSION,
        listeners.pop(),
        lines.clone(),
    );
    let stop = Arc::new(AtomicBool::new(false));
    let come = Arc::new(AtomicUsize::new(0));
    let flood: Vec<_> = (0..4)
        .map(|_| {
            let (stop, come, address) = (
                Arc::clone(&stop),
                Arc::clone(&come),
                addresses[0].parse().unwrap(),
            );
            thread::spawn(move || {
                let mut silent = VecDeque::new();
                while !stop.load(Ordering::Relaxed) {
                    if let Ok(socket) =
                        TcpStream::connect_timeout(&address, Duration::from_millis(50))
                    {
                        silent.push_back(socket);
                        come.fetch_add(1, Ordering::Relaxed);
                    }
                    while silent.len() > 200 {
                        silent.pop_front();
                    }
                }
            })
        })
        .collect();
    while come.load(Ordering::Relaxed) < 300 {
        thread::yield_now();
    }
    // In the middle of it a member connects, and is handled.
    let third = spawn(member(2, &addresses), late);
    for forming in [first, second, third] {
        joined(forming).unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    for thread in flood {
        joined(thread);
    }
    let lines = lines.lock().unwrap();
    assert!(lines.lines().count() < 40, "{lines}");
    assert!(lines.contains("more strangers were turned away"), "{lines}");
}

#[test]
fn a_member_that_has_shown_the_secret_is_not_sent_away_for_others() {
    let (mut listeners, addresses) = listeners(2);
    drop(listeners.pop());
    let first = member(0, &addresses);
    let one = local_of(&first, 1);
    let forming = spawn(first, listeners.pop());
    let mut socket = TcpStream::connect(&addresses[0]).unwrap();
    let terms = Terms {
        secret: &one.secret,
        version: VERSION,
        purpose: one.purpose,
        binding: &[],
    };
    let (_greeting, message) = Greeting::new(&terms, &one.introduction).unwrap();
    let hello = Hello {
        version: VERSION,
        message: u16::try_from(message.len()).unwrap(),
    };
    let greeting = [&hello.to_bytes()[..], &message].concat();
    socket.write_all(&greeting).unwrap();
    let mut answer = [0; HELLO];
    socket.read_exact(&mut answer).unwrap();
    assert_ne!(Hello::parse(&answer).unwrap().message, 0, "it was believed");
    // More strangers than are handled at once, all of whom have had their time.
    let crowd: Vec<_> = (0..150)
        .map(|_| TcpStream::connect(&addresses[0]).unwrap())
        .collect();
    for mut early in &crowd[..70] {
        assert_eq!(early.read(&mut [0]).unwrap_or(0), 0, "it is sent away");
    }
    let mut rest = vec![0; usize::from(Hello::parse(&answer).unwrap().message)];
    socket.read_exact(&mut rest).unwrap();
    socket.set_nonblocking(true).unwrap();
    let waits = socket.peek(&mut [0]).unwrap_err();
    assert_eq!(waits.kind(), ErrorKind::WouldBlock, "it is waited for");

    // A recording of it is a stranger.
    let mut replay = TcpStream::connect(&addresses[0]).unwrap();
    replay.write_all(&greeting).unwrap();
    let mut verdict = Vec::new();
    let _ = replay.read_to_end(&mut verdict);
    let no = Hello {
        version: VERSION,
        message: 0,
    };
    assert_eq!(verdict, no.to_bytes());
    drop((socket, crowd));
    // Nothing that it did was final: the member that it was a part of may come again.
    let second = spawn(member(1, &addresses), None);
    joined(forming).unwrap();
    joined(second).unwrap();
}

#[test]
fn a_wrong_secret_stops_who_connects_and_not_who_listens() {
    let (mut listeners, addresses) = listeners(2);
    let lines = Lines::default();
    let second = listeners.remove(1);
    let first = spawn_logged(
        member(0, &addresses),
        VERSION,
        listeners.pop(),
        lines.clone(),
    );
    let mut wrong = member(1, &addresses);
    wrong.secret = b"another".to_vec();
    let refused = error(spawn(
        wrong,
        Some(TcpListener::bind("127.0.0.1:0").unwrap()),
    ));
    let FormError::Refused {
        process: 0,
        address,
        reason,
    } = &refused
    else {
        panic!("{refused}")
    };
    assert_eq!(
        (address, &reason[..]),
        (&addresses[0], "its secret is not this process's")
    );
    joined(spawn(member(1, &addresses), Some(second))).unwrap();
    joined(first).unwrap();
    assert!(
        lines
            .lock()
            .unwrap()
            .contains("its secret is not this process's")
    );
}

#[test]
fn another_version_of_the_wire_is_refused() {
    let (mut listeners, addresses) = listeners(2);
    let (newer, older) = (VERSION + 1, VERSION);
    let second = listeners.remove(1);
    let lines = Lines::default();
    let mut patient = member(0, &addresses);
    patient.connect_timeout = Duration::from_secs(1);
    let first = spawn_logged(patient, older, listeners.pop(), lines.clone());
    let refused = error(spawn_logged(
        member(1, &addresses),
        newer,
        Some(second),
        Lines::default(),
    ));
    let text = refused.to_string();
    assert!(
        matches!(refused, FormError::Refused { process: 0, .. }),
        "{text}"
    );
    assert!(
        text.contains(&format!(
            "it speaks version {older} of the wire format, this process version {newer}"
        )),
        "{text}"
    );
    assert!(matches!(error(first), FormError::Timeout { .. }));
    assert!(
        lines
            .lock()
            .unwrap()
            .contains(&format!("it speaks version {newer}"))
    );
}

#[test]
fn who_listens_has_to_know_the_secret_too() {
    let (mut listeners, addresses) = listeners(2);
    let impostor = listeners.remove(0);
    let thread = thread::spawn(move || {
        let (mut socket, _) = impostor.accept().unwrap();
        let mut hello = [0; HELLO];
        socket.read_exact(&mut hello).unwrap();
        let mut message = vec![0; usize::from(Hello::parse(&hello).unwrap().message)];
        socket.read_exact(&mut message).unwrap();
        // It has nothing that it could return.
        socket.write_all(&[&hello[..], &message].concat()).unwrap();
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
        rest
    });
    let refused = error(spawn(member(1, &addresses), listeners.pop()));
    assert!(
        refused
            .to_string()
            .contains("could not prove that it knows the secret"),
        "{refused}"
    );
    assert!(joined(thread).is_empty(), "it learned who this process is");
}

#[test]
fn something_else_that_answers_is_named() {
    let (mut listeners, addresses) = listeners(2);
    let other = listeners.remove(0);
    thread::spawn(move || {
        for socket in other.incoming() {
            let _ = socket.unwrap().write_all(&[b'x'; 100]);
        }
    });
    let mut second = member(1, &addresses);
    second.connect_timeout = Duration::from_millis(700);
    let missing = error(spawn(second, listeners.pop())).to_string();
    assert!(
        missing.ends_with(&format!(
            "missing process 0 ({}: something else answers there)",
            addresses[0]
        )),
        "{missing}"
    );
}
