//! The handshake without a socket: accepted and refused ends.

use std::collections::BTreeMap;

use super::*;

fn introduction(process: u32, expects: Option<u32>) -> Introduction {
    Introduction {
        process,
        expects,
        processes: 3,
        facts: BTreeMap::from([("workers".to_owned(), "2".to_owned())]),
    }
}

fn terms<'a>(secret: &'a Secret, purpose: &'a str, binding: &'a [u8]) -> Terms<'a> {
    Terms {
        secret,
        version: VERSION,
        purpose,
        binding,
    }
}

fn seal(keys: &mut Keys, plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    keys.sealer
        .seal(&mut out, |out| out.extend_from_slice(plain))
        .unwrap();
    out.split_off(crate::records::PREFIX)
}

#[test]
fn both_learn_who_the_other_is_and_share_keys_that_nobody_else_has() {
    let secret = Secret::new(b"secret");
    let terms = terms(&secret, "tests", b"");
    let (mine, theirs) = (introduction(2, Some(0)), introduction(0, None));
    let (greeting, message) = Greeting::new(&terms, &mine).unwrap();
    let greeted = Greeted::new(&terms, &message).unwrap();
    assert_eq!(greeted.theirs, mine);
    assert_eq!(greeted.ephemeral, message[..32]);
    let (mut there, answer) = greeted.answer(&theirs).unwrap();
    let (mut here, introduced) = greeting.answered(&answer).unwrap();
    assert_eq!(introduced, theirs);
    let mut record = seal(&mut here, b"hello");
    assert_eq!(there.opener.open(&mut record), Ok(5));
    let mut record = seal(&mut there, b"good day");
    let mut reflected = record.clone();
    assert_eq!(here.opener.open(&mut record), Ok(8));
    assert!(there.opener.open(&mut reflected).is_err(), "one's own");
    // Another handshake with the same secret has other keys.
    let (_, again) = Greeting::new(&terms, &mine).unwrap();
    assert_ne!(again[..32], message[..32]);
    let (mut other, _) = Greeted::new(&terms, &again)
        .unwrap()
        .answer(&theirs)
        .unwrap();
    assert!(other.opener.open(&mut seal(&mut here, b"hello")).is_err());
    // Neither introduction can be read on the way.
    for bytes in [&message, &answer] {
        assert!(!bytes.windows(7).any(|window| window == b"workers"));
    }
}

#[test]
fn another_secret_purpose_version_or_tls_session_is_not_understood() {
    let (secret, other) = (Secret::new(b"secret"), Secret::new(b"other"));
    let here = terms(&secret, "tests", b"session");
    let mine = introduction(2, Some(0));
    let (_, message) = Greeting::new(&here, &mine).unwrap();
    let older = Terms {
        version: VERSION - 1,
        ..here
    };
    for there in [
        terms(&other, "tests", b"session"),
        terms(&secret, "test", b"ssession"),
        terms(&secret, "tests", b"another"),
        older,
    ] {
        assert!(matches!(
            Greeted::new(&there, &message),
            Err(Unproved::Secret(_))
        ));
    }
}

#[test]
fn messages_that_were_changed_cut_replayed_or_reflected_are_not_understood() {
    let secret = Secret::new(b"secret");
    let terms = terms(&secret, "tests", b"");
    let mine = introduction(2, Some(0));
    let (first, message) = Greeting::new(&terms, &mine).unwrap();
    for at in 0..message.len() {
        let mut changed = message.clone();
        changed[at] ^= 0x40;
        // X25519 has no use for one bit of a public key, but the hash of the handshake has.
        assert!(Greeted::new(&terms, &changed).is_err(), "{at}");
        assert!(Greeted::new(&terms, &message[..at]).is_err(), "{at}");
    }
    assert!(first.answered(&message).is_err(), "reflected");
    let answer = |message: &[u8]| {
        let greeted = Greeted::new(&terms, message).unwrap();
        greeted.answer(&introduction(0, None)).unwrap().1
    };
    let answered = answer(&message);
    for at in 0..answered.len() {
        let (greeting, message) = Greeting::new(&terms, &mine).unwrap();
        let mut changed = answer(&message);
        changed[at] ^= 1;
        assert!(greeting.answered(&changed).is_err(), "{at}");
    }
    let (second, _) = Greeting::new(&terms, &mine).unwrap();
    assert!(second.answered(&answered).is_err(), "an answer to another");
}

#[test]
fn an_introduction_that_is_too_long_or_makes_no_sense_is_refused() {
    let secret = Secret::new(b"secret");
    let terms = terms(&secret, "tests", b"");
    let mut long = introduction(2, None);
    long.facts.insert(
        "x".to_owned(),
        "y".repeat(crate::introduction::MAX_INTRODUCTION),
    );
    assert!(matches!(
        Greeting::new(&terms, &long),
        Err(Unproved::Introduction)
    ));
    let mut state = terms.state(true).unwrap();
    let mut message = [0; 100];
    let len = state.write_message(b"what?", &mut message).unwrap();
    assert!(matches!(
        Greeted::new(&terms, &message[..len]),
        Err(Unproved::Introduction)
    ));
}

#[test]
fn a_hello_survives_and_other_bytes_are_none() {
    let hello = Hello {
        version: 7,
        message: 300,
    };
    assert_eq!(Hello::parse(&hello.to_bytes()), Some(hello));
    assert_eq!(Hello::parse(b"GET / HTTP/1"), None);
}
