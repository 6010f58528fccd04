//! Formed clusters: messages, farewells, and processes that leave without one.

use bytes::Bytes;

use super::support::{CHANNEL, Event, cluster, recorders};
use pointstamp_channels::{Farewell, Recipient};

fn text(text: &str) -> Vec<Bytes> {
    vec![Bytes::copy_from_slice(text.as_bytes())]
}

#[test]
fn messages_arrive_where_they_are_sent_as_they_were_sent() {
    let transports = cluster(3);
    let recorders = recorders(&transports);
    let routes = [
        Recipient::Worker(CHANNEL, 7),
        Recipient::Everyone(CHANNEL),
        Recipient::Control,
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
        let events = recorder.take(6);
        for from in (0..3).filter(|&from| from != to) {
            let expected: Vec<_> = routes
                .iter()
                .map(|&route| Event::Frame(from, route, Bytes::from(format!("{from} to {to}"))))
                .collect();
            let of_this: Vec<_> = events
                .iter()
                .filter(|event| matches!(event, Event::Frame(process, ..) if *process == from))
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
        let mut events = recorder.take(2);
        events.sort_by_key(|event| matches!(event, Event::Left(from, _) if *from == 2));
        assert!(
            events.iter().all(
                |event| matches!(event, Event::Left(from, Farewell::Done) if *from != process)
            )
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
    transports[1].send(0, Recipient::Control, text("the last"));
    let address = transports[0].address(1);
    transports[1].close();
    let event = recorders[0].next();
    assert!(matches!(event, Event::Frame(..)), "{event:?}");
    let event = recorders[0].next();
    let Event::Lost(1, why) = event else {
        panic!("{event:?}")
    };
    assert!(
        why.starts_with(&format!("process 1 ({address}) ended its connection")),
        "{why}"
    );
    assert_eq!(
        transports[0].send(1, Recipient::Control, text("too late")),
        0
    );
}

#[test]
fn what_is_queued_is_reported_as_written() {
    let transports = cluster(2);
    let recorders = recorders(&transports);
    let queued = (0..20)
        .map(|_| {
            transports[0].send(
                1,
                Recipient::Everyone(CHANNEL),
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

#[test]
fn large_and_tiny_messages_stay_in_order_and_in_line() {
    let transports = cluster(2);
    let recorders = recorders(&transports);
    let large: Bytes = (0..(16_u32 << 20)).flat_map(u32::to_le_bytes).collect();
    let tiny = |number: u32| Bytes::copy_from_slice(&number.to_le_bytes()[..number as usize % 5]);
    for number in 0..50_000 {
        transports[0].send(1, Recipient::Control, vec![tiny(number)]);
        if number == 25_000 {
            transports[0].send(1, Recipient::Everyone(CHANNEL), vec![large.clone()]);
        }
    }
    transports[0].farewell(Farewell::Done);
    let events = recorders[1].take(50_002);
    let mut numbers = 0..50_000;
    for event in &events[..50_001] {
        let Event::Frame(0, route, body) = event else {
            panic!("{event:?}")
        };
        assert_eq!(body.as_ptr().align_offset(16), 0);
        if *route == Recipient::Control {
            assert_eq!(*body, tiny(numbers.next().unwrap()));
        } else {
            assert_eq!(numbers.start, 25_001);
            assert!(*body == large);
        }
    }
    assert_eq!(events[50_001], Event::Left(0, Farewell::Done));
}

#[test]
fn several_threads_send_at_once_and_each_stays_in_order() {
    const EACH: u32 = 20_000;
    let transports = cluster(2);
    let recorders = recorders(&transports);
    let mut queued = 0;
    std::thread::scope(|scope| {
        let transport = &transports[0];
        let senders: Vec<_> = (0..4_u32)
            .map(|thread| {
                scope.spawn(move || {
                    let body = |number: u32| vec![Bytes::copy_from_slice(&number.to_le_bytes())];
                    (0..EACH)
                        .map(|number| {
                            transport.send(1, Recipient::Worker(CHANNEL, thread), body(number))
                        })
                        .sum::<usize>()
                })
            })
            .collect();
        queued = senders
            .into_iter()
            .map(|sender| sender.join().unwrap())
            .sum();
    });
    let mut expected = [0_u32; 4];
    for event in recorders[1].take(4 * EACH as usize) {
        let Event::Frame(0, Recipient::Worker(_, thread), body) = event else {
            panic!("{event:?}")
        };
        let next = &mut expected[thread as usize];
        assert_eq!(body[..], next.to_le_bytes());
        *next += 1;
    }
    recorders[0].wait_written(queued);
}

#[test]
fn a_message_that_is_too_long_ends_the_connection() {
    let transports = cluster(2);
    let recorders = recorders(&transports);
    let part = Bytes::from(vec![0; 1 << 20]);
    transports[0].send(1, Recipient::Control, vec![part; 2048]);
    let event = recorders[0].next();
    assert!(
        matches!(&event, Event::Lost(1, why) if why.contains("too long")),
        "{event:?}"
    );
    assert!(matches!(recorders[1].next(), Event::Lost(0, _)));
}

#[test]
fn what_goes_to_somebody_who_left_goes_nowhere() {
    let transports = cluster(2);
    let recorders = recorders(&transports);
    transports[1].farewell(Farewell::Done);
    assert_eq!(recorders[0].next(), Event::Left(1, Farewell::Done));
    assert_eq!(
        transports[0].send(1, Recipient::Control, vec![Bytes::from(vec![0; 1 << 20])]),
        0
    );
    assert_eq!(
        transports[0].send(0, Recipient::Control, text("to itself")),
        0
    );
    transports[0].farewell(Farewell::Done);
    assert_eq!(
        recorders[1].next(),
        Event::Left(0, Farewell::Done),
        "a farewell still arrives"
    );
}

#[test]
fn closing_twice_or_not_at_all_is_fine() {
    let transports = cluster(2);
    let recorders = recorders(&transports);
    transports[0].close();
    transports[0].close();
    assert!(matches!(recorders[1].next(), Event::Lost(0, _)));
    drop(transports);
    cluster(3); // and never started
}
