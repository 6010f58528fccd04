//! Tests of clusters that form, and of clusters that do not.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::support::{
    LIMIT, cluster, error, forming_with_one_by_hand, joined, listeners, member, spawn,
};
use crate::frame::Kind;
use crate::{FormError, Member, form};

#[test]
fn clusters_of_every_small_size_form() {
    for processes in 1..=4 {
        let transports = cluster(processes);
        assert!(
            transports
                .iter()
                .all(|transport| transport.processes() == processes)
        );
    }
}

#[test]
fn processes_come_in_any_order() {
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let (listeners, addresses) = listeners(3);
        drop(listeners); // each listens once it comes
        let forming: Vec<_> = order
            .into_iter()
            .map(|process| {
                let thread = spawn(member(process, &addresses), None);
                thread::sleep(Duration::from_millis(30));
                thread
            })
            .collect();
        for (process, thread) in order.into_iter().zip(forming) {
            assert_eq!(joined(thread).unwrap().process(), process);
        }
    }
}

#[test]
fn nobody_listens_once_the_cluster_has_formed() {
    let transports = cluster(2);
    let addresses = [transports[0].address(0), transports[0].address(1)];
    for address in &addresses {
        assert!(TcpStream::connect(address).is_err());
        TcpListener::bind(address).unwrap();
    }
    for transport in &transports {
        transport.close();
    }
    for address in &addresses {
        TcpListener::bind(address).unwrap();
    }
}

#[test]
fn the_missing_are_listed_and_the_others_told() {
    let (mut listeners, addresses) = listeners(3);
    let second = spawn(member(2, &addresses), listeners.pop());
    drop(listeners.pop());
    let mut hasty = member(0, &addresses);
    hasty.connect_timeout = Duration::from_secs(1);
    let first = error(spawn(hasty, listeners.pop()));
    let FormError::Timeout { missing, .. } = &first else {
        panic!("{first}")
    };
    assert_eq!(missing, &[format!("process 1 ({})", addresses[1])]);
    let second = error(second);
    let FormError::Abandoned {
        process: 0, reason, ..
    } = &second
    else {
        panic!("{second}")
    };
    assert!(reason.contains("missing process 1"), "{reason}");
}

#[test]
fn those_that_were_not_reached_are_missing_with_the_reason() {
    let (mut listeners, addresses) = listeners(2);
    let mut second = member(1, &addresses);
    second.connect_timeout = Duration::from_millis(300);
    let listener = listeners.pop();
    drop(listeners);
    let why = error(spawn(second, listener)).to_string();
    assert_eq!(
        why,
        format!(
            "the cluster did not form within 0.3 seconds: missing process 0 ({}: nothing listens there)",
            addresses[0]
        )
    );
}

/// The errors of three processes, after `change` had its way with the members.
fn errors(change: &dyn Fn(&mut [Member])) -> Vec<FormError> {
    let (listeners, addresses) = listeners(3);
    let mut members: Vec<_> = (0..3).map(|process| member(process, &addresses)).collect();
    change(&mut members);
    let forming: Vec<_> = members
        .into_iter()
        .zip(listeners)
        .map(|(member, listener)| spawn(member, Some(listener)))
        .collect();
    forming.into_iter().map(error).collect()
}

/// The errors say that one process was refused, and name it.
fn assert_refused(errors: &[FormError], expected: &str) {
    let refusals: Vec<_> = errors
        .iter()
        .filter(|error| matches!(error, FormError::Refused { .. }))
        .map(ToString::to_string)
        .collect();
    assert!(refusals.len() >= 2, "both sides: {errors:?}");
    assert!(
        refusals.iter().any(|refusal| refusal.contains(expected)),
        "{refusals:?}"
    );
    let others = errors
        .iter()
        .filter(|error| !matches!(error, FormError::Refused { .. }));
    for other in others {
        assert!(matches!(other, FormError::Abandoned { .. }), "{other}");
    }
}

#[test]
fn facts_that_differ_are_refused_and_everybody_stops() {
    let errors = errors(&|members| members[2].facts[0].1 = "4".to_owned());
    assert_refused(&errors, "workers is 4 there and 1 here");
    let of_the_odd_one = errors[2].to_string();
    assert!(
        of_the_odd_one.contains("workers is 1 there and 4 here"),
        "{of_the_odd_one}"
    );
}

#[test]
fn another_number_of_processes_is_refused() {
    let errors = errors(&|members| members[2].addresses.push("127.0.0.1:1".to_owned()));
    assert_refused(&errors, "the number of processes is 4 there and 3 here");
}

#[test]
fn a_number_that_is_taken_is_refused() {
    let (mut listeners, addresses) = listeners(3);
    drop(listeners.pop());
    let first = spawn(member(0, &addresses), Some(listeners.remove(0)));
    let second = spawn(member(1, &addresses), listeners.pop());
    let twin = spawn(
        member(1, &addresses),
        Some(TcpListener::bind("127.0.0.1:0").unwrap()),
    );
    let mut errors = [error(first), error(second), error(twin)];
    errors.sort_by_key(|error| !matches!(error, FormError::Refused { .. }));
    assert_refused(&errors, "another process is process 1 already");
}

#[test]
fn lists_of_addresses_in_another_order_are_refused() {
    let errors = errors(&|members| members[2].addresses.swap(0, 1));
    assert_refused(&errors, "lists of addresses differ");
}

#[test]
fn an_address_that_is_in_use_is_said() {
    let (_listeners, addresses) = listeners(2);
    let why = error(spawn(member(1, &addresses), None));
    assert!(
        matches!(&why, FormError::Bind { process: 1, address, .. } if *address == addresses[1]),
        "{why}"
    );
}

#[test]
fn forming_can_be_cancelled() {
    let (mut listeners, addresses) = listeners(2);
    let asked = std::cell::Cell::new(0);
    let cancelled = || asked.replace(asked.get() + 1) > 3;
    let member = member(1, &addresses);
    let result = form(member, listeners.pop(), Arc::new(|_| {}), &cancelled);
    assert!(matches!(result, Err(FormError::Cancelled)));
}

#[test]
fn what_no_cluster_can_have_is_invalid() {
    type Change = fn(&mut Member);
    let (_, addresses) = listeners(2);
    let cases: [(Change, &str); 4] = [
        (
            |member| member.process = 2,
            "there is no process 2 among 2 addresses",
        ),
        (|member| member.secret.clear(), "a cluster needs a secret"),
        (
            |member| member.stall_timeout = Duration::ZERO,
            "the stall timeout",
        ),
        (|member| member.facts[0].1 = "x".repeat(100_000), "too long"),
    ];
    for (change, expected) in cases {
        let mut member = member(0, &addresses);
        change(&mut member);
        let why = error(spawn(member, None));
        assert!(matches!(why, FormError::Invalid(_)), "{why}");
        assert!(why.to_string().contains(expected), "{why}");
    }
}

#[test]
fn a_timeout_may_be_as_long_as_a_number_can_say() {
    let transports = super::support::cluster_with(2, &|member| {
        member.connect_timeout = Duration::MAX;
        member.stall_timeout = Duration::MAX;
    });
    let recorders = super::support::recorders(&transports);
    transports[0].close();
    recorders[1].next();
    let secs = Duration::from_secs(1_000_000_000_000_000_000);
    super::support::cluster_with(2, &|member| member.connect_timeout = secs);
}

#[test]
fn no_cluster_forms_without_one_that_has_gone() {
    for connected in [false, true] {
        let (forming, mut hand) = forming_with_one_by_hand(LIMIT);
        if connected {
            // Process 0 is connected to all, and waits for process 1 to say the same.
            assert_eq!(hand.read().unwrap().kind, Kind::Formed);
        }
        drop(hand);
        let why = error(forming);
        assert!(
            matches!(&why, FormError::Abandoned { process: 1, .. }),
            "{why}"
        );
    }
}

#[test]
fn who_is_interrupted_tells_those_that_are_there() {
    let (mut listeners, addresses) = listeners(3);
    drop(listeners.pop());
    let second = spawn(member(1, &addresses), listeners.pop());
    let begun = std::time::Instant::now();
    let cancelled = || begun.elapsed() > Duration::from_secs(2);
    let result = form(
        member(0, &addresses),
        listeners.pop(),
        Arc::new(|_| {}),
        &cancelled,
    );
    assert!(matches!(result, Err(FormError::Cancelled)));
    let why = error(second);
    assert!(
        matches!(&why, FormError::Abandoned { process: 0, reason, .. } if reason.contains("cancelled")),
        "{why}"
    );
}

#[test]
fn the_process_that_gives_up_is_named_by_all_others() {
    let (mut listeners, addresses) = listeners(7);
    drop(listeners.pop()); // process 6 never comes
    let forming: Vec<_> = listeners
        .into_iter()
        .enumerate()
        .map(|(process, listener)| {
            let mut member = member(process, &addresses);
            if process == 5 {
                // Long enough for it to be connected to all: a process that never was cannot receive its report.
                member.connect_timeout = Duration::from_secs(4);
            }
            spawn(member, Some(listener))
        })
        .collect();
    let mut errors: Vec<_> = forming.into_iter().map(error).collect();
    let cause = errors.pop().unwrap().to_string();
    for error in errors {
        let FormError::Abandoned {
            process: 5, reason, ..
        } = &error
        else {
            panic!("{error}");
        };
        assert_eq!(*reason, cause);
    }
}
