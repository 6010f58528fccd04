//! A relay between two processes, which passes on their bytes and knows no secret.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use bytes::Bytes;
use pointstamp_channels::{Recipient, Transport};

use super::support::{Event, Recorder, error, joined, listeners, member, recorders, spawn};
use crate::FormError;

/// The changes that the relay makes to bytes from the accepting side.
#[derive(Clone, Copy)]
enum Meddling {
    Nothing,
    Flips,
    Repeats,
    Drops,
    Puts(&'static [u8]),
    /// Gives the connecting side its own bytes back.
    Reflects,
}

struct Between {
    address: String,
    /// Bytes of the accepting side that pass before it begins.
    after: Arc<AtomicUsize>,
}

/// Listens in place of `there`, once.
fn between(there: &str, meddling: Meddling) -> Between {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let after = Arc::new(AtomicUsize::new(usize::MAX));
    let (there, begin) = (there.to_owned(), Arc::clone(&after));
    thread::spawn(move || {
        let (near, _) = listener.accept().unwrap();
        let far = TcpStream::connect(there).unwrap();
        let (mut from, mut to) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        let mut own = near.try_clone().unwrap();
        let again = Arc::clone(&begin);
        thread::spawn(move || {
            let mut bytes = vec![0; 65536];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                if matches!(meddling, Meddling::Reflects) && again.load(Ordering::SeqCst) == 0 {
                    let _ = own.write_all(&bytes[..count]);
                } else if to.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
        let (mut from, mut to) = (far, near);
        let mut bytes = vec![0; 65536];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let mut now = bytes[..count].to_vec();
            if begin.load(Ordering::SeqCst) == 0 {
                match meddling {
                    Meddling::Nothing | Meddling::Reflects => {}
                    Meddling::Flips => now[count / 2] ^= 1,
                    Meddling::Repeats => now.extend_from_within(..),
                    Meddling::Drops => now.clear(),
                    Meddling::Puts(more) => now = [more, &now].concat(),
                }
            }
            if to.write_all(&now).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    Between { address, after }
}

/// Forms a cluster of two whose second process has a relay between it and the first.
fn with_one_between(meddling: Meddling) -> (Vec<Arc<dyn Transport>>, Vec<Arc<Recorder>>, Between) {
    let (mut listeners, mut addresses) = listeners(2);
    let second = listeners.pop();
    let first = spawn(member(0, &addresses), listeners.pop());
    let between = between(&addresses[0], meddling);
    addresses[0].clone_from(&between.address);
    let second = spawn(member(1, &addresses), second);
    let transports = vec![joined(first).unwrap(), joined(second).unwrap()];
    let recorders = recorders(&transports);
    (transports, recorders, between)
}

#[test]
fn a_man_in_the_middle_who_passes_on_everything_is_a_wire() {
    let (transports, recorders, between) = with_one_between(Meddling::Nothing);
    between.after.store(0, Ordering::SeqCst);
    let body = Bytes::from_static(b"as it was");
    transports[0].send(1, Recipient::Control, vec![body.clone()]);
    assert_eq!(
        recorders[1].next(),
        Event::Frame(0, Recipient::Control, body)
    );
}

#[test]
fn what_is_changed_repeated_left_out_put_in_or_reflected_ends_the_connection() {
    for (meddling, expected) in [
        (Meddling::Flips, "does not verify"),
        (Meddling::Repeats, "does not verify"),
        (Meddling::Drops, "does not verify"),
        (Meddling::Puts(&[40, 0, 1, 2]), "does not verify"),
        (
            Meddling::Puts(&[5, 0, 1, 2, 3, 4, 5]),
            "too short to be sealed",
        ),
        (Meddling::Reflects, "does not verify"),
    ] {
        let (transports, recorders, between) = with_one_between(meddling);
        between.after.store(0, Ordering::SeqCst);
        for (from, to) in [(0, 1), (1, 0)] {
            transports[from].send(to, Recipient::Control, vec![Bytes::from_static(&[1; 100])]);
        }
        if let Meddling::Drops = meddling {
            // An omitted record is noticed by the next one.
            let event = recorders[0].next();
            assert!(matches!(event, Event::Frame(1, ..)), "{event:?}");
            thread::sleep(std::time::Duration::from_millis(50));
            between.after.store(usize::MAX, Ordering::SeqCst);
            transports[0].send(1, Recipient::Control, vec![Bytes::from_static(&[2; 100])]);
        }
        let (why, frames) = lost(&recorders[1]);
        assert!(why.contains(expected), "{why}");
        let whole = matches!(meddling, Meddling::Repeats | Meddling::Reflects);
        assert!(
            frames.is_empty() || whole && frames == [Bytes::from_static(&[1; 100])],
            "{frames:?} came through"
        );
    }
}

/// The reason for which process 0 is reported lost, and the bytes that arrived from it before.
fn lost(recorder: &Recorder) -> (String, Vec<Bytes>) {
    let mut frames = Vec::new();
    loop {
        match recorder.next() {
            Event::Frame(0, _, body) => frames.push(body),
            Event::Lost(0, why) => return (why, frames),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_process_that_is_led_to_another_one_or_to_itself_notices() {
    for (processes, caller, called) in [(2, 1, 1), (3, 2, 1)] {
        let (mut listeners, addresses) = listeners(processes);
        let mut misled = addresses.clone();
        let between = between(&addresses[called], Meddling::Nothing);
        misled[0] = between.address;
        let own = listeners.remove(caller);
        let other = (called != caller).then(|| {
            let listener = listeners.remove(called);
            spawn(member(called, &addresses), Some(listener))
        });
        let why = error(spawn(member(caller, &misled), Some(own)));
        assert!(
            matches!(
                &why,
                FormError::Refused { .. } | FormError::Abandoned { .. }
            ),
            "{why}"
        );
        drop(listeners);
        if let Some(other) = other {
            // It detects it itself, or gets the report of the misled one.
            let why = error(other).to_string();
            let itself = why.contains("lists of addresses differ");
            assert!(itself || why.contains("list of addresses"), "{why}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_told_once() {
    let (transports, recorders, between) = with_one_between(Meddling::Flips);
    between.after.store(0, Ordering::SeqCst);
    transports[0].send(1, Recipient::Control, vec![Bytes::from(vec![1; 1 << 20])]);
    let (why, frames) = lost(&recorders[1]);
    assert!(why.starts_with("process 0 (") && frames.is_empty(), "{why}");
    assert!(recorders[1].is_silent());
}
