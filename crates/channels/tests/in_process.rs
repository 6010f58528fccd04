//! The fabric of one process: the channels that a worker may open, the bytes in flight, and the workers that
//! are woken.

use bytes::Bytes;
use pointstamp_channels::{ChannelError, ChannelId, Fabric};

const ID: ChannelId = ChannelId {
    dataflow: 0,
    channel: 9,
};

#[test]
fn other_types_and_second_receivers_are_refused() {
    let (fabric, _mailboxes) = Fabric::in_process(3, 1 << 20);
    let _first = fabric.open::<u64>(0, ID).unwrap();
    assert_eq!(
        fabric.open::<String>(1, ID).err(),
        Some(ChannelError::TypeMismatch { id: ID })
    );
    assert_eq!(
        fabric.open::<u64>(0, ID).err(),
        Some(ChannelError::OpenedTwice { id: ID, worker: 0 })
    );
}

#[test]
fn what_is_on_its_way_is_weighed_when_that_is_asked_for() {
    for workers in [1, 2] {
        let (fabric, _mailboxes) = Fabric::in_process(workers, 1000);
        assert_eq!(fabric.high_water(), 1000);
        let (senders, receiver) = fabric.open::<Bytes>(0, ID).unwrap();
        senders[0].push(vec![0; 1000].into()).unwrap();
        fabric.weigh();
        assert!(!fabric.is_pressed(), "it is as much as the mark");
        senders[0].push(vec![0; 1].into()).unwrap();
        assert!(!fabric.is_pressed());
        fabric.weigh();
        // A worker alone reads its own messages.
        assert_eq!(fabric.is_pressed(), workers == 2);
        assert_eq!(receiver.pop().unwrap().unwrap().len(), 1000);
        fabric.weigh();
        assert!(!fabric.is_pressed());
    }
}

#[test]
fn a_process_alone_has_no_way_to_others() {
    let (fabric, mailboxes) = Fabric::in_process(3, 1000);
    assert_eq!((fabric.peers(), fabric.here()), (3, 0..3));
    assert!(fabric.transport().is_none());
    fabric.send_control(&[Bytes::from_static(b"to no other")]);
    assert_eq!((fabric.traffic().data_frames, fabric.in_flight()), (0, 0));
    fabric.wake_all();
    for mailbox in &mailboxes {
        mailbox.park(None); // would hang for ever if it had not been woken
    }
    fabric.close();
}
