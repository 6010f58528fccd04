//! Formed clusters: messages, farewells, and what becomes of those that go without one.

use bytes::Bytes;

use super::support::{CHANNEL, Told, cluster, recorders};
use crate::{Farewell, Route};

fn text(text: &str) -> Vec<Bytes> {
    vec![Bytes::copy_from_slice(text.as_bytes())]
}

#[test]
fn messages_arrive_where_they_are_sent_as_they_were_sent() {
    let transports = cluster(3);
    let recorders = recorders(&transports);
    let routes = [
        Route::Worker(CHANNEL, 7),
        Route::Everyone(CHANNEL),
        Route::Control,
    ];
    for (from, transport) in transports.iter().enumerate() {
        assert_eq!((transport.process(), transport.processes()), (from, 3));
        for to in (0..3).filter(|&to| to != from) {
            for route in routes {
                transport.send(to, route, text(&format!("{from} to {to}")));
            }
        }
    }
    for (to, recorder) in recorders.iter().enumerate() {
        let told = recorder.take(6);
        for from in (0..3).filter(|&from| from != to) {
            let expected: Vec<_> = routes
                .iter()
                .map(|&route| Told::Frame(from, route, Bytes::from(format!("{from} to {to}"))))
                .collect();
            let of_this: Vec<_> = told
                .iter()
                .filter(|told| matches!(told, Told::Frame(process, ..) if *process == from))
                .cloned()
                .collect();
            assert_eq!(of_this, expected);
        }
    }
}

#[test]
fn all_say_farewell_and_nobody_is_lost() {
    let transports = cluster(3);
    let recorders = recorders(&transports);
    for transport in &transports {
        transport.farewell(Farewell::Done);
    }
    for (process, recorder) in recorders.iter().enumerate() {
        let mut told = recorder.take(2);
        told.sort_by_key(|told| matches!(told, Told::Left(from, _) if *from == 2));
        assert!(
            told.iter()
                .all(|told| matches!(told, Told::Left(from, Farewell::Done) if *from != process))
        );
    }
    for transport in &transports {
        transport.close();
    }
    assert!(recorders.iter().all(|recorder| recorder.is_silent()));
}

#[test]
fn who_goes_without_a_farewell_is_lost() {
    let transports = cluster(2);
    let recorders = recorders(&transports);
    transports[1].send(0, Route::Control, text("the last"));
    let address = transports[0].address(1);
    transports[1].close();
    let told = recorders[0].next();
    assert!(matches!(told, Told::Frame(..)), "{told:?}");
    let told = recorders[0].next();
    let Told::Lost(1, why) = told else {
        panic!("{told:?}")
    };
    assert!(
        why.starts_with(&format!("process 1 ({address}) ended its connection")),
        "{why}"
    );
    assert_eq!(transports[0].send(1, Route::Control, text("too late")), 0);
}

#[test]
fn what_is_queued_is_reported_as_written() {
    let transports = cluster(2);
    let recorders = recorders(&transports);
    let queued = (0..20)
        .map(|_| {
            transports[0].send(
                1,
                Route::Everyone(CHANNEL),
                vec![Bytes::from(vec![1; 1 << 20])],
            )
        })
        .sum::<usize>();
    assert!(
        queued >= 20 << 20,
        "long messages are not written by those who send them"
    );
    recorders[0].wait_written(queued);
    assert_eq!(recorders[1].take(20).len(), 20);
}
