//! Members that prove themselves and then violate the protocol: the others report it in a sentence, and
//! nothing else happens.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;

use super::support::{Event, LIMIT, cluster, cluster_with, recorders, with_one_by_hand};
use crate::frame::{Kind, Manner, ReadError, header};
use pointstamp_channels::{Farewell, Reason, Receive, Recipient, Transport};

const CALM: Duration = Duration::from_secs(30);

/// The reason for which process 1 is reported lost.
fn loss(event: Event) -> String {
    match event {
        Event::Lost(1, why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn rubbish_after_the_handshake_ends_the_connection() {
    let unknown = {
        let mut unknown = header(Kind::Heartbeat, 0);
        unknown[20] = 99;
        unknown
    };
    let reserved = {
        let mut reserved = header(Kind::Heartbeat, 0);
        reserved[17] = 1;
        reserved
    };
    let cases: [(&[u8], &str); 6] = [
        (&[0xff; 64], "does not end as headers do"),
        (
            b"GET / HTTP/1.1\r\nHost: nowhere\r\n\r\n",
            "does not end as headers do",
        ),
        (&unknown, "unknown kind 99"),
        (&reserved, "what its kind does not have"),
        (&header(Kind::Heartbeat, 1), "longer than its kind may be"),
        (
            &header(Kind::Message(Recipient::Control), u32::MAX),
            "longer than its kind may be",
        ),
    ];
    for (bytes, expected) in cases {
        let (transport, recorder, hand) = with_one_by_hand(CALM);
        hand.write(bytes);
        let why = loss(recorder.next());
        let address = transport.address(1);
        assert!(
            why.starts_with(&format!(
                "process 1 ({address}) sent what this process cannot read"
            )),
            "{why}"
        );
        assert!(why.contains(expected), "{why}");
    }
    let (_transport, recorder, hand) = with_one_by_hand(CALM);
    hand.write(&header(Kind::Formed, 0));
    assert!(loss(recorder.next()).contains("joined a second time"));
}

#[test]
fn a_connection_that_is_cut_within_a_message_is_lost() {
    let (_transport, recorder, hand) = with_one_by_hand(CALM);
    hand.write(&header(Kind::Message(Recipient::Control), 1 << 30));
    hand.write(&vec![1; 100_000]);
    drop(hand);
    let why = loss(recorder.next());
    assert!(
        why.contains("in the middle of a message") || why.contains("broke its connection off"),
        "{why}"
    );
}

#[test]
fn who_says_nothing_is_lost() {
    let (transport, recorder, mut hand) = with_one_by_hand(Duration::from_millis(300));
    let why = loss(recorder.next());
    assert!(why.contains("sent nothing for 0.3 seconds"), "{why}");
    assert_eq!(transport.send(1, Recipient::Control, vec![]), 0);
    // It sent heartbeats as long as it was connected.
    assert_eq!(hand.read().unwrap().kind, Kind::Heartbeat);
}

#[test]
fn heartbeats_keep_an_idle_cluster_together() {
    let transports = cluster_with(2, &|member| member.stall_timeout = Duration::from_secs(2));
    let recorders = recorders(&transports);
    thread::sleep(Duration::from_secs(5));
    assert!(recorders.iter().all(|recorder| recorder.is_silent()));
}

#[test]
fn who_takes_nothing_is_lost() {
    let (transport, recorder, hand) = with_one_by_hand(Duration::from_millis(500));
    let alive = Arc::clone(hand.incoming.wire());
    let beating = thread::spawn(move || {
        while alive.write_all(&header(Kind::Heartbeat, 0)).is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let queued = transport.send(1, Recipient::Control, vec![Bytes::from(vec![1; 64 << 20])]);
    let why = loss(recorder.next());
    assert!(why.contains("took nothing for 0.5 seconds"), "{why}");
    recorder.wait_written(queued); // bytes that cannot be written are dropped, and reported
    super::support::joined(beating);
}

#[test]
fn a_failure_jumps_the_queue() {
    let (transport, recorder, mut hand) = with_one_by_hand(CALM);
    let message = Bytes::from(vec![1; 1 << 20]);
    let queued: usize = (0..100)
        .map(|_| transport.send(1, Recipient::Control, vec![message.clone()]))
        .sum();
    // Once some have come, the others are in the hands of the thread that writes.
    for _ in 0..10 {
        assert_eq!(hand.read().unwrap().body, message);
    }
    let failed = Farewell::Failed {
        origin: 0,
        reason: Reason::Raised("it broke".to_owned()),
    };
    transport.farewell(failed);
    assert_eq!(
        transport.send(1, Recipient::Control, vec![message.clone()]),
        0
    );
    let mut messages = 0;
    let last = loop {
        let frame = hand.read().unwrap();
        if !matches!(frame.kind, Kind::Message(_)) {
            break frame;
        }
        assert_eq!(frame.body, message, "a frame that was begun is finished");
        messages += 1;
    };
    let failed_kind = Kind::Failed {
        origin: 0,
        manner: Manner::Raised,
    };
    assert_eq!((last.kind, &last.body[..]), (failed_kind, &b"it broke"[..]));
    assert!(messages < 90, "nothing was dropped");
    assert!(matches!(
        hand.read(),
        Err(ReadError::Ended {
            within_frame: false
        })
    ));
    recorder.wait_written(queued);
    drop(hand);
    assert!(
        matches!(recorder.next(), Event::Lost(1, _)),
        "a process that waits for the others learns that they have gone, after a failure, too"
    );
    transport.close();
}

#[test]
fn a_failure_is_told_with_its_origin_and_reason() {
    let transports = cluster(3);
    let recorders = recorders(&transports);
    let failed = Farewell::Failed {
        origin: 2,
        reason: Reason::Disagreed("Traceback: ü".repeat(200_000)),
    };
    transports[1].farewell(failed.clone());
    transports[1].close();
    for recorder in [&recorders[0], &recorders[2]] {
        let event = recorder.next();
        let Event::Left(
            1,
            Farewell::Failed {
                origin: 2,
                reason: Reason::Disagreed(reason),
            },
        ) = event
        else {
            panic!("{event:?}")
        };
        assert_eq!(reason.len(), 1 << 20, "a reason is cut at its limit");
        assert!(reason.ends_with("Trace") || reason.starts_with("Traceback: ü"));
    }
}

#[test]
fn a_receiver_may_close() {
    struct Closes(
        std::sync::OnceLock<Arc<dyn Transport>>,
        std::sync::mpsc::SyncSender<String>,
    );
    impl Receive for Closes {
        fn frame(&self, _: usize, _: Recipient, _: Bytes) {}
        fn left(&self, _: usize, _: Farewell) {}
        fn lost(&self, _: usize, why: String) {
            self.0.get().unwrap().close();
            let _ = self.1.send(why);
        }
        fn written(&self, _: usize) {}
    }
    let transports = cluster(2);
    let (sender, event) = std::sync::mpsc::sync_channel(1);
    let receiver = Arc::new(Closes(std::sync::OnceLock::new(), sender));
    let _ = receiver.0.set(Arc::clone(&transports[0]));
    transports[0].start(receiver);
    transports[1].close();
    assert!(event.recv_timeout(LIMIT).unwrap().starts_with("process 1"));
}
