//! Clusters under TLS, and peers that TLS keeps out.

use std::time::Duration;

use bytes::Bytes;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::support::{
    CHANNEL, Event, Lines, cluster_with, error, listeners, member, recorders, spawn, spawn_logged,
};
use crate::noise::VERSION;
use crate::{FormError, Tls};
use pointstamp_channels::{Farewell, Recipient};

/// Creates an authority, and a certificate that it issues for a host.
fn authority(host: &str) -> Tls {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    // A name of its own: otherwise the signature is wrong, and not the signer.
    params
        .distinguished_name
        .push(DnType::CommonName, key.public_key_pem());
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let own = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![host.to_owned()])
        .unwrap()
        .signed_by(&own, &issuer)
        .unwrap();
    Tls {
        certificate: certificate.pem().into_bytes(),
        key: own.serialize_pem().into_bytes(),
        authority: root.pem().into_bytes(),
    }
}

#[test]
fn messages_cross_a_cluster_under_tls() {
    let tls = authority("127.0.0.1");
    let transports = cluster_with(3, &|member| member.tls = Some(tls.clone()));
    let recorders = recorders(&transports);
    let large: Bytes = (0..5_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let mut queued = 0;
    for message in 0..1000_u32 {
        let body = vec![Bytes::copy_from_slice(&message.to_le_bytes())];
        queued += transports[0].send(1, Recipient::Everyone(CHANNEL), body);
    }
    queued += transports[0].send(
        1,
        Recipient::Control,
        vec![large.slice(..77), large.slice(77..)],
    );
    // Both ways at once.
    transports[1].send(0, Recipient::Control, vec![large.clone()]);
    transports[0].farewell(Farewell::Done);
    for (message, event) in (0..1000_u32).zip(recorders[1].take(1000)) {
        let body = Bytes::copy_from_slice(&message.to_le_bytes());
        assert_eq!(event, Event::Frame(0, Recipient::Everyone(CHANNEL), body));
    }
    assert!(recorders[1].next() == Event::Frame(0, Recipient::Control, large.clone()));
    assert_eq!(recorders[1].next(), Event::Left(0, Farewell::Done));
    assert!(recorders[0].next() == Event::Frame(1, Recipient::Control, large));
    recorders[0].wait_written(queued);
    transports[1].farewell(Farewell::Done);
    transports[2].farewell(Farewell::Done);
    let event = recorders[0].take(2);
    assert!(
        event
            .iter()
            .all(|event| matches!(event, Event::Left(_, Farewell::Done))),
        "{event:?}"
    );
    for transport in &transports {
        transport.close();
    }
}

/// Returns the refusal that process 1 receives, and the line that process 0 logs.
fn refused(first: Option<Tls>, second: Option<Tls>) -> (String, String) {
    let (mut listeners, addresses) = listeners(2);
    let lines = Lines::default();
    let mut members = [member(0, &addresses), member(1, &addresses)];
    members[0].connect_timeout = Duration::from_secs(1);
    members[0].tls = first;
    members[1].tls = second;
    let [zero, one] = members;
    let one = spawn(one, listeners.pop());
    let zero = spawn_logged(zero, VERSION, listeners.pop(), lines.clone());
    let why = error(one);
    assert!(
        matches!(why, FormError::Refused { process: 0, .. }),
        "{why}"
    );
    assert!(matches!(error(zero), FormError::Timeout { .. }));
    let lines = lines.lock().unwrap().clone();
    (why.to_string(), lines)
}

#[test]
fn certificates_of_another_authority_are_refused() {
    let (ours, others) = (authority("127.0.0.1"), authority("127.0.0.1"));
    let (why, lines) = refused(Some(ours.clone()), Some(others.clone()));
    assert!(
        why.contains("TLS failed: invalid peer certificate: UnknownIssuer"),
        "{why}"
    );
    assert!(lines.contains("a stranger at"), "{lines}");
    // An end that trusts the other, and is not trusted.
    let intruder = Tls {
        authority: ours.authority.clone(),
        ..others
    };
    let (why, lines) = refused(Some(ours), Some(intruder));
    assert!(why.contains("TLS failed: received fatal alert"), "{why}");
    assert!(
        lines.contains("invalid peer certificate: UnknownIssuer"),
        "{lines}"
    );
}

#[test]
fn a_certificate_for_another_host_is_refused() {
    let tls = authority("elsewhere.example");
    let (why, _) = refused(Some(tls.clone()), Some(tls));
    assert!(why.contains("not valid for"), "{why}");
}

#[test]
fn with_and_without_tls_do_not_go_together() {
    let tls = authority("127.0.0.1");
    let (why, _) = refused(Some(tls.clone()), None);
    assert!(
        why.contains("it uses TLS, and this process is not configured for it"),
        "{why}"
    );
    let (why, lines) = refused(None, Some(tls));
    assert!(
        why.contains("this process is configured for TLS, and the other is not"),
        "{why}"
    );
    assert!(lines.contains("it speaks TLS"), "{lines}");
}

#[test]
fn what_is_no_certificate_is_said() {
    let good = authority("127.0.0.1");
    let (_, addresses) = listeners(1);
    for (tls, expected) in [
        (
            Tls {
                certificate: b"x".to_vec(),
                ..good.clone()
            },
            "the TLS certificate holds no certificate",
        ),
        (
            Tls {
                key: good.certificate.clone(),
                ..good.clone()
            },
            "the TLS key cannot be read",
        ),
        (
            Tls {
                authority: Vec::new(),
                ..good.clone()
            },
            "the TLS authority holds no certificate",
        ),
        (
            Tls {
                key: authority("x").key,
                ..good.clone()
            },
            "do not go together",
        ),
    ] {
        let mut member = member(0, &addresses);
        member.tls = Some(tls);
        let why = error(spawn(member, None));
        assert!(matches!(why, FormError::Invalid(_)), "{why}");
        assert!(why.to_string().contains(expected), "{why}");
    }
}
