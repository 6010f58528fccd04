//! Resuming from an older checkpoint.

use std::sync::Arc;

use pointstamp_store::{Cloud, Error, Location, Store};

use crate::computation::{Run, start_again};

fn checkpoints() -> (Cloud, Arc<dyn Store>) {
    let cloud = Cloud::default();
    let store: Arc<dyn Store> = Arc::new(cloud.client());
    let mut run = Run::start(&store, 3).unwrap();
    for _ in 0..5 {
        run.advance().unwrap();
        run.execution.prune().unwrap();
    }
    (cloud, store)
}

fn numbers(store: &Arc<dyn Store>) -> Vec<u64> {
    let listing = Location::new(store.clone()).list().unwrap();
    listing.iter().map(|(number, _)| *number).collect()
}

#[test]
fn an_older_one_begins_another_branch() {
    let (_, store) = checkpoints();
    assert_eq!(numbers(&store), [4, 5, 6]);
    let mut run = Run::start_at(&store, 3, Some(5)).unwrap();
    assert_eq!(run.step, 4);
    run.execution.prune().unwrap();
    assert_eq!(
        numbers(&store),
        [4, 5, 6],
        "nothing is given up before there is a new one"
    );
    assert_eq!(
        Run::start(&store, 3).unwrap().step,
        5,
        "nor is the newest another"
    );
    let mut run = Run::start_at(&store, 3, Some(5)).unwrap();
    run.advance().unwrap();
    run.execution.prune().unwrap();
    assert_eq!(numbers(&store), [4, 5, 10]);
    assert_eq!(start_again(&store), 5);
}

#[test]
fn only_what_is_kept_can_be_gone_on_from() {
    let (_, store) = checkpoints();
    for number in [0, 1, 2, 3, 7] {
        let error = Run::start_at(&store, 3, Some(number)).err().unwrap();
        assert_eq!(
            error.to_string(),
            format!("there is no checkpoint {number}; kept are [4, 5, 6]")
        );
    }
    let empty: Arc<dyn Store> = Arc::new(Cloud::default().client());
    assert!(matches!(
        Run::start_at(&empty, 3, Some(1)),
        Err(Error::NoCheckpoint { .. })
    ));
}

#[test]
fn a_lost_newest_one_is_never_passed_over_silently() {
    for damage in [
        |cloud: &Cloud| cloud.set("log/6", None),
        |cloud: &Cloud| cloud.set("log/6", Some("{}".into())),
        |cloud: &Cloud| {
            cloud.set("log/6", None);
            cloud.set("log/5", Some("{}".into()));
        },
        |cloud: &Cloud| {
            cloud.set("log/6", Some("{}".into()));
            cloud.set("head", None);
        },
    ] {
        let (cloud, store) = checkpoints();
        damage(&cloud);
        assert!(Run::start(&store, 3).is_err());
        assert!(Run::start_at(&store, 3, Some(6)).is_err(), "it is lost");
        // Checkpoints that can be resumed are listed.
        let listing = Location::new(store.clone()).list().unwrap();
        let listed = listing.iter().find(|(number, _)| *number == 4).unwrap();
        assert_eq!(listed.1.as_ref().unwrap().workers, 2);
        let lost = listing.last().unwrap();
        assert_eq!(
            (lost.0, lost.1.as_ref().unwrap_err().object()),
            (6, Some("log/6"))
        );
        let verified = Location::new(store.clone()).verify().unwrap();
        assert!(verified.checkpoints.contains(&4) && !verified.damage.is_empty());

        let mut run = Run::start_at(&store, 3, Some(4)).unwrap();
        assert_eq!(run.step, 3);
        run.execution.prune().unwrap();
        // Not even after such a start that made no checkpoint.
        let error = Run::start(&store, 3).err().unwrap();
        assert_eq!(error.object(), Some("log/6"));
        let left = cloud.objects();
        assert!(
            left.keys().any(|name| name.starts_with("packs/1.5.")),
            "its packs may be needed yet"
        );

        let mut run = Run::start_at(&store, 3, Some(4)).unwrap();
        run.advance().unwrap();
        run.execution.prune().unwrap();
        assert_eq!(Run::start(&store, 3).unwrap().step, 4);
        start_again(&store);
    }
}
