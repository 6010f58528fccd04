//! How clusters form, and how they do not.

use std::time::Duration;

use super::support::{cluster, error, listeners, member, spawn};
use crate::net::FormError;

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
fn the_missing_are_listed_and_the_others_told() {
    let (listeners, addresses) = listeners(3);
    let mut forming = Vec::new();
    for (process, listener) in listeners.into_iter().enumerate() {
        let mut member = member(process, &addresses);
        if process == 0 {
            member.connect_timeout = Duration::from_secs(1);
        }
        if process != 1 {
            forming.push(spawn(member, Some(listener)));
        }
    }
    let first = error(forming.remove(0));
    let FormError::Timeout { missing, .. } = &first else {
        panic!("{first}")
    };
    assert_eq!(missing, &[format!("process 1 ({})", addresses[1])]);
    let second = error(forming.remove(0));
    let FormError::Abandoned {
        process: 0, reason, ..
    } = &second
    else {
        panic!("{second}")
    };
    assert!(reason.contains("missing process 1"), "{reason}");
}
