"""A simulated computation that cannot continue names the holder of the time, as `Worker.explain` does."""

import gc
import weakref

import pytest

import pointstamp as ps
from harness import notes
from pointstamp.testing import simulate

pytestmark = pytest.mark.usefixtures("soon_still")

LAYOUTS = [(1, 1), (2, 1), (3, 3)]


def waiting(worker: ps.Worker) -> None:
    """Waits for an input that worker 0 alone does not advance."""
    with worker.dataflow() as scope:
        bids, stream = scope.new_input(name="bids")
        probe = stream.exchange(lambda x: x).probe()
    if worker.index > 0:
        bids.advance_to(1)
    worker.step_while(lambda: probe.less_than(1))


@pytest.mark.parametrize(("workers", "processes"), LAYOUTS)
def test_a_stall_names_what_holds_it_up(workers: int, processes: int) -> None:
    with pytest.raises(ps.StallError, match="every worker waits") as raised:
        simulate(waiting, workers=workers, seed=7, processes=processes)
    text = str(raised.value)
    assert "The input 'bids'" in text, text
    assert "test_simulated_stalls.py:" in text, text
    assert "did not answer" not in text, text
    assert raised.value.explanation is not None
    assert [(one.kind, one.worker, one.time) for one in raised.value.explanation.causes] == [("input", 0, 0)]
    assert any("simulate(main, workers=" in note for note in notes(raised.value))


def test_a_stall_after_other_workers_have_ended_is_explained() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            bids, stream = scope.new_input(name="bids")
            probe = stream.probe()
        if worker.index == 1:
            worker.step_while(lambda: probe.less_than(1))
        bids.close()

    with pytest.raises(ps.StallError) as raised:
        simulate(main, workers=2, seed=1)
    assert raised.value.explanation is not None
    assert [(one.kind, one.worker) for one in raised.value.explanation.causes] == [("input", 1)]


@pytest.mark.parametrize(("workers", "processes"), LAYOUTS)
def test_a_simulated_worker_is_told_of_all_the_others(workers: int, processes: int) -> None:
    def main(worker: ps.Worker) -> list[tuple[str, int | None]]:
        with worker.dataflow() as scope:
            bids, stream = scope.new_input(name="bids")
            probe = stream.exchange(lambda x: x).probe()
        for _ in range(50):
            worker.step()  # until each has heard of the others
        found = [(one.kind, one.worker) for one in worker.explain(probe, 1).causes]
        worker.barrier()
        bids.close()
        return found

    for seed in range(3):
        found = simulate(main, workers=workers, seed=seed, processes=processes)
        assert found == [[("input", other) for other in range(workers)]] * workers


def test_a_stalled_simulation_leaves_nothing_behind() -> None:
    class Marked:
        pass

    seen: list[weakref.ref[Marked]] = []

    def run() -> None:
        mark = Marked()
        seen.append(weakref.ref(mark))

        def main(worker: ps.Worker) -> None:
            assert mark is not None
            waiting(worker)

        with pytest.raises(ps.StallError):
            simulate(main, workers=2, seed=3)

    run()
    gc.collect()
    assert seen[0]() is None
