"""Captures of collections, and replays of pipes that have to be let go of."""

import io
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from harness import run, share
from pointstamp.capture import Progress


def reader(path: Any) -> ps.EventReader:
    return ps.EventReader(path, allow_pickle=True)


def mine(scope: ps.Scope, captures: list[Any]) -> list[Any]:
    return captures[scope.index :: scope.peers]


def numbers(scope: ps.Scope) -> ps.Stream[int]:
    return share(scope, range(30)).delay(lambda x, _: x % 5)


@pytest.mark.parametrize("readers", [1, 3])
@pytest.mark.parametrize("writers", [1, 2])
def test_a_collection_and_back(writers: int, readers: int, tmp_path: Path) -> None:
    """Updates of several times come in one batch, and each is captured at its own."""
    paths = [tmp_path / f"{n}.events" for n in range(writers)]

    def write(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            given, words = scope.new_collection()
            squares = words.map(lambda n: n % 7).distinct()
            squares.capture_into(ps.EventWriter(paths[worker.index]))
            kept = squares.capture()
        for round_ in range(5):
            given.advance_to(round_)
            for n in range(worker.index, 10, worker.peers):
                given.insert(n * round_)
                if round_:
                    given.remove(n * (round_ - 1))
        given.close()
        worker.run()
        return kept

    def read(scope: ps.Scope) -> Any:
        pairs = scope.replay([reader(path) for path in mine(scope, paths)])
        return pairs.as_collection(diffs=True).consolidate().capture()

    def said(captures: list[Any]) -> Any:
        totals: Counter[Any] = Counter()
        for capture in captures:
            for time, updates in capture.extract():
                for record, diff in updates:
                    totals[time, record] += diff
        return {key: diff for key, diff in totals.items() if diff}

    written = said(ps.execute(write, workers=writers))
    assert written
    assert said(run(readers, read)) == written


def test_a_pipe_that_is_buffered_is_let_go_of_at_once() -> None:
    """Also where a part of it was read ahead, and nobody writes the rest."""
    kept = io.BytesIO()
    ps.example(lambda scope: numbers(scope).capture_into(ps.EventWriter(kept)))
    inward, outward = os.pipe()
    os.write(outward, kept.getvalue()[:-16])
    with open(inward, "rb") as file:
        assert file.peek(1)
        made = reader(file)
        events = iter(made)
        assert isinstance(next(events), Progress)
        threads = [thread for thread in threading.enumerate() if thread.name == "pointstamp reader"]
        made.close()
        assert threads
        assert not any(thread.is_alive() for thread in threads)
    os.close(outward)
