"""Inputs of main go on where they stood: what main sends again is not sent twice."""

import itertools
import random
import re
import time as clock
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp import _core
from resuming import Enough, Found, make_checkpoint, run_until_stopped, settings, stop_at_checkpoint

MANY = 100_000
"""Items of an iterable: more than are taken until a checkpoint is made."""


def history(seed: int) -> list[tuple[int, list[int]]]:
    """Draws times with their records; some times have none."""
    drawn = random.Random(seed)
    times = sorted(drawn.sample(range(40), 12))
    return [(time, [drawn.randrange(100) for _ in range(drawn.choice([0, 1, 5, 2000]))]) for time in times]


def expected(seed: int) -> list[tuple[int, int]]:
    return sorted((time, record) for time, records in history(seed) for record in records)


def sends(seed: int, cut: tuple[int, int] | None) -> Callable[[ps.Worker], list[tuple[int, int]]]:
    """Sends a history; stops after so many times, and so many records of the next."""

    def main(worker: ps.Worker) -> list[tuple[int, int]]:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input()
            found = Found(stream.map(lambda record: record))
        records.clear()
        for number, (time, given) in enumerate(history(seed)):
            handle.advance_to(time)
            if cut is not None and number == cut[0]:
                handle.send_batch(given[: cut[1]])
                make_checkpoint(worker)
                assert handle.position == (time, min(cut[1], len(given)))
                records.extend(found.records)
                raise Enough
            if number % 2:
                handle.send_batch(given)
            else:
                for record in given:
                    handle.send(record)
        handle.close()
        worker.run()
        return found.records

    records: list[tuple[int, int]] = []
    main.records = records  # type: ignore[attr-defined]
    return main


@pytest.mark.parametrize("seed", range(4))
def test_what_is_sent_again_is_left_out(tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    shown: list[tuple[int, int]] = []
    for at in sorted(drawn.sample(range(12), 3)):
        main = sends(seed, (at, drawn.choice([0, 1, 3, 1500])))
        run_until_stopped(main, settings(tmp_path))
        shown += main.records  # type: ignore[attr-defined]
    [rest] = ps.execute(sends(seed, None), config=settings(tmp_path))
    assert sorted(shown + rest) == expected(seed)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_main_that_looks_at_the_position_sends_the_rest(tmp_path: Path, workers: int) -> None:
    def main(worker: ps.Worker) -> list[tuple[int, int]]:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input(resume="continue")
            found = Found(stream)
        position = handle.position
        assert tuple(position) == ((0, 0) if worker.resumed is None else (3, 2))
        first = position.time
        assert isinstance(first, int)
        for time in range(first, 6):
            handle.advance_to(time)
            for record in range(position.sent if time == position.time else 0, 4):
                if worker.resumed is None and (time, record) == (3, 2):
                    stop_at_checkpoint(worker)
                handle.send(record)
        handle.close()
        worker.run()
        return found.records

    run_until_stopped(main, settings(tmp_path, workers))
    results = ps.execute(main, config=settings(tmp_path, workers))
    for result in results:
        assert sorted(result) == [(3, 2), (3, 3), *((time, record) for time in (4, 5) for record in range(4))]


def test_a_main_that_sends_something_else_is_refused(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, _ = scope.new_input(name="bids")
        for time in range(4):
            handle.advance_to(time)
            for record in given[time]:
                handle.send(record)
        if stops:
            stop_at_checkpoint(worker)

    stops = True
    given: list[list[Any]] = [["a"], [], ["b", {"c": [1.5, None]}], ["d"]]
    run_until_stopped(main, settings(tmp_path))
    stops = False
    why = r"input 'bids' of 'Dataflow' of worker 0 was sent something else up to time 3"
    for other in ("A", "B"):
        given = [["a"], [], ["b", {"c": [1.5, None]}], ["d"]]
        given[0 if other == "A" else 2] = [other] if other == "A" else ["b", {"c": [1.5, 0]}]
        with pytest.raises(ps.CheckpointError, match=why):
            ps.execute(main, config=settings(tmp_path))
    given = [["a"], [], ["b", {"c": [1.5, None]}], []]
    with pytest.raises(ps.CheckpointError, match=r"main returned before .* input 'bids' of 'Dataflow'"):
        ps.execute(main, config=settings(tmp_path))
    given = [["a"], [], ["b", {"c": [1.5, None]}], ["d"]]
    ps.execute(main, config=settings(tmp_path))


def test_a_main_that_goes_past_the_position_is_refused(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, _ = scope.new_input()
        handle.advance_to(5)
        if worker.resumed is None:
            handle.send("a")
            stop_at_checkpoint(worker)
        handle.advance_to(6)

    run_until_stopped(main, settings(tmp_path))
    with pytest.raises(
        ps.CheckpointError, match=r"had been sent 1 record at time 5, and main goes on to time 6"
    ):
        ps.execute(main, config=settings(tmp_path))


def test_an_input_that_was_closed_is_closed(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> list[tuple[int, int]]:
        with worker.dataflow() as scope:
            closed, numbers = scope.new_input(resume="continue")
            other, others = scope.new_input(resume="continue")
            found = Found(numbers.concat(others))
        if worker.resumed is None:
            closed.send(1)
            closed.close()
            stop_at_checkpoint(worker)
        assert (closed.closed, other.closed) == (True, False)
        with pytest.raises(ps.PointstampError, match="closed"):
            closed.send(2)
        other.send(3)
        other.close()
        worker.run()
        return found.records

    run_until_stopped(main, settings(tmp_path))
    assert ps.execute(main, config=settings(tmp_path)) == [[(0, 3)]]


@pytest.mark.parametrize("ended", ["inputs", "dataflow", "dropped"])
@pytest.mark.parametrize("counts", [(1, 1, 1), (2, 2, 2), (1, 3, 2), (3, 1, 2)])
def test_an_input_that_has_ended_keeps_its_position(
    tmp_path: Path, ended: str, counts: tuple[int, ...]
) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            one, records = scope.new_input(name="one", resume="continue")
            two, others = scope.new_collection(name="two", resume="continue")
            records.concat(others.updates())
            last, _ = scope.new_input(name="last", resume="continue")
        with worker.dataflow() as scope:
            scope.new_input(name="open", resume="continue")
        positions.append((worker.index, one.position, two.position))
        if worker.resumed is None:
            one.advance_to(3)
            one.send_batch(range(worker.index + 1))
            two.insert("a")
            two.advance_to(5)
            if ended == "dropped":
                worker.drop_dataflow(0)
            else:
                one.close()
                two.close()
        elif ended != "dropped":
            assert one.closed
            assert two.closed
            with pytest.raises(ps.PointstampError, match="closed"):
                one.send(1)
        if ended == "dataflow":
            last.close()
            worker.step_while(lambda: 0 in worker.installed_dataflows())
        stop_at_checkpoint(worker)

    positions: list[tuple[int, ps.Position, ps.Position]] = []
    for run, workers in enumerate(counts):
        positions.clear()
        run_until_stopped(main, settings(tmp_path, workers))
        for index, one, two in positions:
            sent = index + 1 if set(counts[: run + 1]) == {workers} else 0  # other workers have sent others
            assert (one, two) == (((0, 0), (0, 0)) if run == 0 else ((3, sent), (5, 0)))


def test_a_main_that_sends_otherwise_to_an_input_that_was_closed_is_refused(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, _ = scope.new_input(name="bids")
            scope.new_input()
        handle.send_batch(records)
        handle.close()
        if worker.resumed is None:
            stop_at_checkpoint(worker)

    records = ["a", "b"]
    run_until_stopped(main, settings(tmp_path))
    for otherwise, why in (
        (["a", "c"], "was sent something else up to time 0"),
        (["a", "b", "c"], "was closed at the checkpoint, and main sends more than before at time 0"),
        (["a"], "main returned before it has sent again"),
    ):
        records = otherwise
        with pytest.raises(ps.CheckpointError, match=f"input 'bids' of .*{why}|{why} what input 'bids'"):
            ps.execute(main, config=settings(tmp_path))
    records = ["a", "b"]
    ps.execute(main, config=settings(tmp_path))


def test_a_strict_input_is_sent_everything_again(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.new_collection(strict=True, resume="continue")

    with pytest.raises(ps.GraphError, match="a strict input counts"):
        ps.execute(main, config=settings(tmp_path))


def test_traces_are_not_read_before_inputs_have_come_to_their_positions(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            words, collection = scope.new_collection(name="words")
            trace = collection.map(lambda word: (word, 1)).arrange().trace()
        words.insert("a")
        words.advance_to(1)
        if worker.resumed is None:
            stop_at_checkpoint(worker)
        words.close()
        worker.run()
        return list(trace.items())

    def reads_early(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            _words, collection = scope.new_collection(name="words")
            trace = collection.map(lambda word: (word, 1)).arrange().trace()
        for read in (lambda: trace.get("a"), trace.items):
            with pytest.raises(ps.CheckpointError, match=r"read before input 'words' .* has come"):
                read()
        raise Enough

    run_until_stopped(main, settings(tmp_path))
    run_until_stopped(reads_early, settings(tmp_path))
    assert ps.execute(main, config=settings(tmp_path)) == [[("a", 1, 1)]]


def fixed_workers(folder: Path) -> str | None:
    """Returns why the newest checkpoint needs as many workers as before; None where it does not."""
    *_, (_, _, _, fixed, *_) = _core.checkpoints_list(str(folder / "state"))
    return fixed


def test_another_number_of_workers_needs_a_moment_at_which_nothing_was_sent(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> list[tuple[int, int]]:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input(name="bids")
            found = Found(stream.exchange(lambda record: record))
        for time in range(6):
            handle.advance_to(time)
            if worker.resumed is None and time == 4 and not late:
                stop_at_checkpoint(worker)
            for record in range(worker.index, 24, worker.peers):
                handle.send(record)
            if worker.resumed is None and time == 4 and late:
                stop_at_checkpoint(worker)
        handle.close()
        worker.run()
        return found.records

    late = True
    run_until_stopped(main, settings(tmp_path / "late", 2))
    said = r"'bids' .* had been sent records .*resume with 2 workers"
    assert re.search(said, str(fixed_workers(tmp_path / "late")))
    with pytest.raises(ps.CheckpointError, match=said):
        ps.execute(main, config=settings(tmp_path / "late", 3))
    late = False
    run_until_stopped(main, settings(tmp_path / "between", 2))
    assert fixed_workers(tmp_path / "between") is None
    results = ps.execute(main, config=settings(tmp_path / "between", 3))
    assert sorted(one for result in results for one in result) == [
        (time, record) for time in (4, 5) for record in range(24)
    ]


@pytest.mark.parametrize("steps", [True, False])
@pytest.mark.parametrize("workers", [1, 2])
def test_inputs_stop_at_a_time_that_all_workers_have(tmp_path: Path, workers: int, steps: bool) -> None:
    """The checkpoint is requested in the middle of a time, and workers are at different times."""
    rounds, of_time = 1000, 24

    def main(worker: ps.Worker) -> list[list[tuple[int, int]]]:
        with worker.dataflow() as scope:
            handles, found = [], []
            for name in ("bids", "asks"):
                handle, stream = scope.new_input(name=name)
                handles.append(handle)
                found.append(Found(stream.exchange(lambda record: record)))
        made = None
        for time in range(rounds):
            for handle in handles:
                handle.send_batch(range(worker.index, of_time, worker.peers))
                if worker.resumed is None and worker.index == 0 and time == 40 and made is None:
                    made = worker.checkpoint()
                handle.advance_to(time + 1)
                if steps:
                    worker.step()
            if made is not None and made.done:
                raise Enough
            if worker.resumed is None and worker.index == 1 and time > 30:
                clock.sleep(0.001)  # it is behind the other
        while made is not None:
            worker.step()
            if made.done:
                raise Enough
        for handle in handles:
            handle.close()
        worker.run()
        return [one.records for one in found]

    run_until_stopped(
        main, settings(tmp_path, workers, drain=1000.0)
    )  # a hundredth of that for a common time
    assert fixed_workers(tmp_path) is None
    results = ps.execute(main, config=settings(tmp_path, 3))
    for of_input in zip(*results, strict=True):
        found = sorted(record for records in of_input for record in records)
        assert 30 < found[0][0] < rounds
        assert found == list(itertools.product(range(found[0][0], rounds), range(of_time)))


def test_other_numbers_of_workers_together_send_the_same_again(tmp_path: Path) -> None:
    sent = 24

    def main(worker: ps.Worker) -> list[tuple[int, int]]:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input(name="bids")
            other, _ = scope.new_input(name="empty")
            found = Found(stream.exchange(lambda record: record))
        for time in range(8):
            handle.advance_to(time)
            other.advance_to(time)
            if time == stops_at:
                stop_at_checkpoint(worker)
            for record in range(worker.index, sent, worker.peers):
                handle.send(record * (time + 1))
        handle.close()
        other.close()
        worker.run()
        return found.records

    stops_at: int | None
    for stops_at, workers in ((3, 2), (4, 3), (5, 3)):  # noqa: B007 (main reads it)
        run_until_stopped(main, settings(tmp_path, workers))
    stops_at = None
    for workers in (3, 1, 4):
        sent = 23
        said = "sent something else up to time 5" if workers == 3 else "'bids'.* by all workers together"
        with pytest.raises(ps.CheckpointError, match=said):
            ps.execute(main, config=settings(tmp_path, workers))
    sent = 24
    results = ps.execute(main, config=settings(tmp_path, 4))
    assert sorted(one for result in results for one in result) == sorted(
        (time, record * (time + 1)) for time in (5, 6, 7) for record in range(24)
    )


def rows(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch({"n": pa.array(numbers, pa.int64())})


def test_columns_and_collections_are_left_out_too(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> tuple[list[Any], list[Any]]:
        columns = ps.ArrowInput(pa.schema([("n", pa.int64())]))
        with worker.dataflow() as scope:
            numbers = Found(columns.to_stream(scope).to_records())
            words, collection = scope.new_collection(strict=True)
            changes = Found(collection.updates())
        columns.send(rows(1, 2, 3))
        words.insert("a")
        words.insert_many(["b", "b"])
        columns.advance_to(2)
        words.advance_to(2)
        columns.send(rows(4, 5))
        words.remove("a")
        if worker.resumed is None:
            stop_at_checkpoint(worker)
        columns.send(rows(6))
        words.remove_many(["b", "b"])
        words.play([("c", 3, 1), ("d", 4, 1)])
        columns.close()
        words.close()
        worker.run()
        return numbers.records, changes.records

    run_until_stopped(main, settings(tmp_path))
    [(numbers, changes)] = ps.execute(main, config=settings(tmp_path))
    assert numbers == [(2, {"n": 6})]
    assert sorted(change for _, change in changes) == [("b", 2, -1), ("b", 2, -1), ("c", 3, 1), ("d", 4, 1)]


def test_a_batch_is_left_out_in_part(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> list[Any]:
        columns = ps.ArrowInput(pa.schema([("n", pa.int64())]))
        with worker.dataflow() as scope:
            numbers = Found(columns.to_stream(scope).to_records())
        if worker.resumed is None:
            columns.send(rows(1, 2))
            stop_at_checkpoint(worker)
        columns.send(rows(1, 2, 3))
        columns.close()
        worker.run()
        return numbers.records

    run_until_stopped(main, settings(tmp_path))
    assert ps.execute(main, config=settings(tmp_path)) == [[(0, {"n": 3})]]


@pytest.mark.parametrize("kind", ["to_stream", "iterator_source"])
def test_iterables_are_gone_on_with(tmp_path: Path, kind: str) -> None:
    def numbers() -> Iterator[int]:
        for number in range(MANY):
            yield number if number or not changed else 7

    def days() -> Iterator[tuple[int, list[int]]]:
        for day in range(MANY):
            yield day, [day * 2, 1 if changed else 0]

    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            made = (
                scope.to_stream(numbers()) if kind == "to_stream" else scope.iterator_source("days", days())
            )
            found = Found(made)
        if worker.resumed is None:
            while not found.records:
                worker.step()
            make_checkpoint(worker)
            before.extend(found.records)
            raise Enough
        worker.run()
        return found.records

    before: list[Any] = []
    changed = False
    run_until_stopped(main, settings(tmp_path))
    changed = True
    with pytest.raises(ps.CheckpointError, match=r"gave (other records|something else)"):
        ps.execute(main, config=settings(tmp_path))
    changed = False
    [rest] = ps.execute(main, config=settings(tmp_path))
    if kind == "to_stream":
        everything = [(0, number) for number in range(MANY)]
    else:
        everything = [(day, number) for day, given in days() for number in given]
    # The source has gone on between the cut and its end.
    assert rest == everything[len(everything) - len(rest) :]
    assert before == everything[: len(before)]
    assert len(before) + len(rest) >= len(everything)
    assert len(before) > 0
    assert len(rest) > 0


@pytest.mark.parametrize("workers", [1, 2])
def test_play_is_stopped_inside(tmp_path: Path, workers: int) -> None:
    def main(worker: ps.Worker) -> list[Any]:
        def changes() -> Iterator[tuple[int, int, int]]:
            for number in itertools.count():
                if number == end:
                    return
                if number == 1000 and worker.resumed is None:
                    worker.checkpoint(stop=True)
                yield number % 7, number // 3, 1

        with worker.dataflow() as scope:
            words, collection = scope.new_collection()
            updates = collection.updates()
            found = Found(updates)
            probe = updates.probe()
        before.append(found)
        words.play(changes(), probe=probe)
        words.close()
        worker.run()
        return found.records

    before: list[Found] = []
    end = None  # it plays until it is stopped
    assert ps.execute(main, config=settings(tmp_path, workers)) == [None] * workers
    seen = before[0].records
    assert len(seen) >= 1000
    end = max(len(found.records) for found in before) + 600
    everything = [(number // 3, (number % 7, number // 3, 1)) for number in range(end)]
    for rest in ps.execute(main, config=settings(tmp_path, workers)):
        assert rest == everything[end - len(rest) :]
        assert 600 <= len(rest) <= end - 990
    assert seen == everything[: len(seen)]


def test_what_main_could_not_repeat_is_refused(tmp_path: Path) -> None:
    def run(build: Callable[[ps.Worker, ps.Scope], Any]) -> None:
        def main(worker: ps.Worker) -> None:
            with worker.dataflow() as scope:
                build(worker, scope)

        ps.execute(main, config=settings(tmp_path))

    with pytest.raises(ps.GraphError, match=r"an unordered input .*checkpoints are on"):
        run(lambda worker, scope: scope.new_unordered_input())
    with pytest.raises(ValueError, match='resume is "repeat" or "continue"'):
        run(lambda worker, scope: scope.new_input(resume="again"))  # type: ignore[call-overload]

    def calls_back(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input()
            stream.inspect(lambda record: handle.send(record))
        handle.send(1)
        worker.step()

    with pytest.raises(ps.CheckpointError, match="driven by a function of an operator"):
        ps.execute(calls_back, config=settings(tmp_path / "callback"))


def test_an_input_has_a_position_where_checkpoints_are_made() -> None:
    def build(scope: ps.Scope) -> None:
        handle, _ = scope.new_input()
        with pytest.raises(ps.PointstampError, match="checkpoints are made"):
            _ = handle.position

    ps.example(build)
