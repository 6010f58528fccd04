//! Frontiers that move on until nothing is to come.

use pointstamp_arrange::Time;
use pointstamp_order::Antichain;

/// Frontiers from the frontier of the least time to the empty one; each is past the next time of the
/// schedule.
pub(crate) fn frontiers<T: Time>(schedule: &[T], dims: usize) -> Vec<Antichain<T>> {
    let mut frontier = Antichain::from_elem(T::read(&vec![0; dims]).unwrap());
    let mut all = Vec::new();
    for time in schedule {
        let mut past = Vec::new();
        time.write(&mut past);
        let mut moved = Antichain::new();
        for element in &frontier {
            if !element.less_equal(time) {
                moved.insert(element.clone());
                continue;
            }
            for dim in 0..dims {
                let mut coords = Vec::new();
                element.write(&mut coords);
                coords[dim] = past[dim] + 1;
                moved.insert(T::read(&coords).unwrap());
            }
        }
        frontier = moved;
        all.push(frontier.clone());
    }
    all.push(Antichain::new());
    all
}
