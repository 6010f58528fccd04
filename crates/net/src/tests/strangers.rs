//! Who does not belong to the cluster gets nothing out of it, and disturbs nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use super::support::{Lines, error, joined, listeners, member, spawn, spawn_logged};
use crate::FormError;
use crate::proof::{HELLO, Hello, PROOF, VERSION};

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
    let hello = Hello::new(VERSION).unwrap().to_bytes();

    drop(connect());
    drop(say(&hello[..20]));
    let silent = connect();
    let partial = say(&hello[..20]);
    let mut http = say(b"GET / HTTP/1.1\r\nHost: here and there and everywhere\r\n\r\n");
    let mut tls = say(&[&[0x16, 3, 1, 0, 200][..], &[1; 200]].concat());
    let mut guess = say(&hello);
    guess.read_exact(&mut [0; HELLO]).unwrap();
    guess.write_all(&[7; PROOF]).unwrap();
    let mut verdict = Vec::new();
    let _ = guess.read_to_end(&mut verdict);
    assert_eq!(verdict, [0], "no, and no proof of the other side");
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
    let last = crowd.last().unwrap();
    last.set_nonblocking(true).unwrap();
    let waits = last.peek(&mut [0]).unwrap_err();
    assert_eq!(
        waits.kind(),
        ErrorKind::WouldBlock,
        "for the sake of this one"
    );
    let second = spawn(member(1, &addresses), Some(second));
    joined(first).unwrap();
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
        socket.read_exact(&mut [0; HELLO]).unwrap();
        socket
            .write_all(&Hello::new(VERSION).unwrap().to_bytes())
            .unwrap();
        let mut proof = [0; PROOF];
        socket.read_exact(&mut proof).unwrap();
        // The proof that it was given is none of its own.
        socket.write_all(&[&[1][..], &proof].concat()).unwrap();
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
    assert!(joined(thread).is_empty(), "it was told who this process is");
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
