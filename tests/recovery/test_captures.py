"""Captures, replays and sequencers go on from a checkpoint."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from resuming import Enough, Found, make_checkpoint, run_until_stopped, settings, stop_at_checkpoint

SCHEMA = pa.schema([("n", pa.int64())])

FORMS: dict[str, Callable[[ps.Stream[Any]], Any]] = {
    "records": lambda numbers: numbers,
    "columns": lambda numbers: numbers.map(lambda n: {"n": n}).to_arrow(SCHEMA),
    "updates": lambda numbers: numbers.map(lambda n: (n % 3, n)).to_collection().updates(),
    "any object": lambda numbers: numbers.map(lambda n: frozenset([n])),
}


def plain(extracted: list[tuple[Any, list[Any]]]) -> list[Any]:
    return [
        (time, sorted(str(row) for one in records for row in rows_of(one))) for time, records in extracted
    ]


def rows_of(record: Any) -> list[Any]:
    return record.to_pylist() if isinstance(record, pa.RecordBatch) else [record]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_a_capture_has_all_events_after_resumptions(tmp_path: Path, form: str, workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input()
            captured = FORMS[form](stream).capture()
        with worker.dataflow() as scope:
            scope.new_input(resume="continue")
        for time in range(12):
            handle.advance_to(time)
            handle.send_batch(range(time + worker.index))
            if time == stops_at:
                stop_at_checkpoint(worker)
        handle.close()
        if stops_at == 12:
            worker.step_while(lambda: 0 in worker.installed_dataflows())
            stop_at_checkpoint(worker)
        worker.run()
        return plain(captured.extract())

    stops_at: int | None = None
    through = ps.execute(main, config=ps.Config(workers=workers))
    for stops_at in (1, 3, 4, 5, 9, 12, 12):  # noqa: B007 (main reads it)
        run_until_stopped(main, settings(tmp_path, workers))
    stops_at = None
    assert ps.execute(main, config=settings(tmp_path, workers)) == through


def test_a_capture_is_not_read_before_inputs_have_come_to_their_positions(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input()
            captured = stream.capture()
        if worker.resumed is not None:
            with pytest.raises(ps.CheckpointError, match="results were read before input"):
                captured.extract()
        handle.send(1)
        if worker.resumed is None:
            stop_at_checkpoint(worker)
        assert captured.extract() == [(0, [1])]

    run_until_stopped(main, settings(tmp_path))
    ps.execute(main, config=settings(tmp_path))


@pytest.mark.parametrize("holds", [True, False])
def test_a_capture_that_was_dropped_before_the_checkpoint_is_not_empty_without_a_word(
    tmp_path: Path, holds: bool
) -> None:
    def captured_by(worker: ps.Worker) -> ps.Capture[int]:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input()
            captured = stream.capture()
        handle.send(1)
        handle.close()
        worker.step_while(lambda: 0 in worker.installed_dataflows())
        return captured

    def main(worker: ps.Worker) -> None:
        captured: ps.Capture[int] | None = captured_by(worker)
        assert captured is not None
        with worker.dataflow() as scope:
            scope.new_input(resume="continue")
        if worker.resumed is None or holds:
            assert captured.extract() == [(0, [1])]
        else:
            with pytest.raises(ps.CheckpointError, match="held no reference"):
                captured.extract()
            assert "0 records" in repr(captured)
        if worker.resumed is None:
            if not holds:
                captured = None
            stop_at_checkpoint(worker)

    run_until_stopped(main, settings(tmp_path))
    ps.execute(main, config=settings(tmp_path))


def test_few_runs_of_events_are_written(tmp_path: Path) -> None:
    """Each event is written a few times, however many checkpoints there are, and the folder stays small."""

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input()
            stream.capture()
        for time in range(40):
            handle.advance_to(time)
            handle.send("x" * 10_000)
            make_checkpoint(worker)
        stop_at_checkpoint(worker)

    run_until_stopped(main, settings(tmp_path, keep=1))
    size = sum(path.stat().st_size for path in (tmp_path / "state").rglob("*") if path.is_file())
    assert size < 3 * 400_000


@pytest.mark.parametrize("stops_at", [0, 1, 7, 30, 59])
def test_a_replay_of_a_file_goes_on_behind_the_last_event(tmp_path: Path, stops_at: int) -> None:
    def write(scope: ps.Scope) -> None:
        numbers = scope.iterator_source("numbers", ((time, [time]) for time in range(60)))
        numbers.capture_into(ps.EventWriter(tmp_path / "numbers.events"))

    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            reader = ps.EventReader(tmp_path / "read.events", allow_pickle=True, follow=True)
            found = Found(scope.replay([reader]).map(lambda record: record))
        if not is_last:
            worker.step_while(lambda: len(found.records) < stops_at)
            make_checkpoint(worker)
            before.extend(found.records)
            raise Enough
        worker.run()
        return found.records

    before: list[Any] = []
    ps.example(write)
    written = (tmp_path / "numbers.events").read_bytes()
    # The file ends inside of an event, and grows later.
    (tmp_path / "read.events").write_bytes(written[: len(written) * 2 // 3 if stops_at < 30 else -7])
    is_last = False
    run_until_stopped(main, settings(tmp_path))
    (tmp_path / "read.events").write_bytes(written)
    is_last = True
    [rest] = ps.execute(main, config=settings(tmp_path))
    # The replay has gone on between the cut and its end.
    everything = [(time, time) for time in range(60)]
    assert before == everything[: len(before)]
    assert rest == everything[60 - len(rest) :]
    assert len(before) + len(rest) >= 60
    assert len(before) >= stops_at
    assert len(rest) < 60 or stops_at == 0


def test_a_replayed_file_that_was_written_anew_is_refused(tmp_path: Path) -> None:
    def write(scope: ps.Scope) -> None:
        scope.to_stream(list(text)).capture_into(ps.EventWriter(tmp_path / "letters.events", overwrite=True))

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            reader = ps.EventReader(tmp_path / "letters.events", allow_pickle=True, follow=True)
            found = Found(scope.replay([reader]))
            scope.new_input(resume="continue")
        if worker.resumed is None:
            worker.step_while(lambda: not found.records)
            stop_at_checkpoint(worker)

    text = "abc"
    ps.example(write)
    data = (tmp_path / "letters.events").read_bytes()
    (tmp_path / "letters.events").write_bytes(data[:-3])
    run_until_stopped(main, settings(tmp_path))
    text = "xyz"
    ps.example(write)
    with pytest.raises(ps.CheckpointError, match="it was written anew"):
        ps.execute(main, config=settings(tmp_path))


def test_a_capture_in_memory_is_replayed_where_it_was(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input()
            captured = stream.capture()
        with worker.dataflow() as scope:
            again = scope.replay([captured]).map(lambda n: 10 * n).capture()
        for time in range(6):
            handle.advance_to(time)
            handle.send(time)
            if time == 3 and worker.resumed is None:
                stop_at_checkpoint(worker)
        handle.close()
        worker.run()
        return captured.extract(), again.extract()

    run_until_stopped(main, settings(tmp_path))
    [(captured, again)] = ps.execute(main, config=settings(tmp_path))
    assert captured == [(time, [time]) for time in range(6)]
    assert again == [(time, [10 * time]) for time in range(6)]


def test_a_capture_that_cannot_be_read_again_is_refused(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.replay([ps.EventReader(here, allow_pickle=True)])

    here, there = socket.socketpair()
    with here, there, pytest.raises(ps.GraphError, match="no file that can be read again"):
        ps.execute(main, config=settings(tmp_path))


def test_the_log_of_one_run_is_refused(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            worker.new_log(scope)

    with pytest.raises(ps.GraphError, match=r"the log 'log' .* has no part in checkpoints"):
        ps.execute(main, config=settings(tmp_path))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_sequencer_has_its_items_in_the_same_order(tmp_path: Path, workers: int) -> None:
    def main(worker: ps.Worker) -> list[Any]:
        commands: ps.Sequencer[tuple[int, int]] = worker.sequencer()
        seen: list[Any] = []
        for number in range(10):
            commands.push((worker.index, number))
            while len(seen) < (number + 1) * worker.peers - 1:
                worker.step_or_park(0.01)
                while (item := commands.next()) is not None:
                    seen.append(item)
            if number == stops_at:
                orders[worker.index] = list(seen)
                stop_at_checkpoint(worker)
        while len(seen) < 10 * worker.peers:
            worker.step_or_park(0.01)
            while (item := commands.next()) is not None:
                seen.append(item)
        return seen

    orders: dict[int, list[Any]] = {}
    before: list[Any] = []
    stops_at: int | None
    for stops_at in (2, 5):  # noqa: B007 (main reads it)
        run_until_stopped(main, settings(tmp_path, workers))
        before = max((before, *orders.values()), key=len)
    stops_at = None
    seen = ps.execute(main, config=settings(tmp_path, workers))
    assert all(one == seen[0] for one in seen)
    assert sorted(seen[0]) == [(worker, number) for worker in range(workers) for number in range(10)]
    assert seen[0][: len(before)] == before


def test_a_sequencer_needs_as_many_workers_as_before(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        commands = worker.sequencer()
        commands.push(worker.index)
        while commands.next() is None:
            worker.step_or_park(0.01)
        stop_at_checkpoint(worker)

    run_until_stopped(main, settings(tmp_path, 1))
    with pytest.raises(ps.CheckpointError, match="resume with 1 workers, as before"):
        ps.execute(main, config=settings(tmp_path, 2))
