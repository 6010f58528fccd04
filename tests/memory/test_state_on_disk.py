"""State larger than its budget of memory: results are the same, and failures of the disk are errors."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from budgets import budgets, written
from pointstamp import graphs
from pointstamp.observability.dashboard_state import state_of
from pointstamp.observability.metrics import prometheus

PAIRS = 60_000
"""Pairs of numbers: some megabytes in memory."""

BUDGET = "256 KiB"


def files_on_disk() -> int:
    """The open files of this process that have no name."""
    links = Path("/proc/self/fd").iterdir()
    targets = [os.readlink(link) for link in links if link.is_symlink()]
    return sum("(deleted)" in target for target in targets)


def changes(seed: int) -> list[list[tuple[tuple[int, int], int]]]:
    """Changes of a collection of pairs: a load, and smaller changes of it."""
    drawn = random.Random(seed)
    pairs = [(drawn.randrange(PAIRS // 4), drawn.randrange(1000)) for _ in range(PAIRS)]
    rounds = [[(pair, 1) for pair in pairs]]
    for _ in range(5):
        gone = [(pairs[drawn.randrange(PAIRS)], -1) for _ in range(50)]
        come = [((drawn.randrange(PAIRS // 4), drawn.randrange(1000)), 1) for _ in range(50)]
        rounds.append(gone + come)
    return rounds


def run(build: Any, rounds: list[list[Any]], workers: int = 1) -> Counter[Any]:
    """Returns what a dataflow gives for the changes: its output at the end."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, collection = scope.new_collection()
            captured = build(collection).capture()
        for time, updates in enumerate(rounds):
            for index, (record, diff) in enumerate(updates):
                if index % worker.peers == worker.index:
                    handle.update(record, diff)
            handle.advance_to(time + 1)
            worker.step()
        handle.close()
        return captured

    output: Counter[Any] = Counter()
    for captured in ps.execute(main, workers=workers):
        for _, records in captured.extract():
            for record, diff in records:
                output[record] += diff
    return +output


def arranged(worker: ps.Worker, seed: int) -> tuple[Any, Any]:
    """Arranges the load of a seed, until it is complete; returns the input, and the trace."""
    with worker.dataflow() as scope:
        handle, pairs = scope.new_collection()
        made = pairs.arrange()
        trace, probe = made.trace(), made.to_collection().probe()
    for pair, diff in changes(seed)[0]:
        handle.update(pair, diff)
    handle.advance_to(1)
    worker.step_while(lambda: probe.less_than(1))
    return handle, trace


PROGRAMS = {
    "count": lambda pairs: pairs.count(),
    "join": lambda pairs: pairs.join(
        pairs.map(lambda pair: (pair[0], -pair[1])).filter(lambda pair: pair[0] < 500)
    ),
    "distinct": lambda pairs: pairs.map(lambda pair: (pair[0] % 5000, pair[1] % 7)).distinct(),
    "consolidate": lambda pairs: pairs.map(lambda pair: (pair[0], pair[1] % 50)).consolidate(),
    "reduce": lambda pairs: pairs.map_groups(lambda _, values: [max(value for value, _ in values)]),
    "components": lambda pairs: graphs.connected_components(
        pairs.filter(lambda pair: pair[1] < 100).map(lambda pair: (pair[0] % 2000, pair[1]))
    ),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_memory_without_a_bound(name: str, workers: int) -> None:
    rounds = changes(1)
    with budgets(None):
        expected = run(PROGRAMS[name], rounds, workers)
    with budgets(BUDGET) as made:
        assert run(PROGRAMS[name], rounds, workers) == expected
    assert expected
    assert written(made) > 0, "something was on disk"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are listed in /proc")
def test_files_have_no_name_and_go_with_the_dataflow(tmp_path: Path) -> None:
    before = files_on_disk()
    during = []

    def main(worker: ps.Worker) -> Any:
        handle, trace = arranged(worker, 2)
        during.append((files_on_disk() - before, list(tmp_path.iterdir())))
        assert trace.get(7)
        handle.close()

    ps.execute(main, config=ps.Config(memory=BUDGET, spill=tmp_path))
    [(files, names)] = during
    assert files > 0
    assert names == []
    assert files_on_disk() == before


def test_memory_and_disk_are_shown_by_operator(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> str:
        handle, trace = arranged(worker, 3)
        assert trace.get(7)
        text = prometheus(state_of(worker._collector.data(worker._engine, 120.0)))
        handle.close()
        return text

    [text] = ps.execute(main, config=ps.Config(memory=BUDGET, spill=tmp_path, dashboard=0))
    found = re.findall(r"^pointstamp_(\w+)\{(.*)\} (\S+)$", text, re.MULTILINE)
    metrics = {
        name: float(value) for name, labels, value in found if "arrange" in labels or "process" in labels
    }
    assert metrics["operator_state_rows"] == len({pair for pair, _ in changes(3)[0]})
    assert 0 < metrics["operator_state_bytes"] < metrics["operator_state_on_disk_bytes"]
    assert metrics["process_budget_limit_bytes"] == 256 << 10
    assert metrics["process_budget_used_bytes"] >= metrics["operator_state_bytes"]
    assert metrics["process_budget_written_bytes_total"] >= metrics["operator_state_on_disk_bytes"]
    assert metrics["process_budget_read_bytes_total"] > 0
    assert metrics["process_budget_misses_total"] > 0


FAILING = """
    import resource, signal, sys
    import pointstamp as ps

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))

    def main(worker):
        with worker.dataflow() as scope:
            handle, pairs = scope.new_collection()
            trace = pairs.arrange(name="orders by customer").trace()
        for number in range(100_000):
            handle.insert((number % 1000, hash(str(number))))
        handle.close()

    ps.execute(main, config=ps.Config(memory="256 KiB", spill=sys.argv[1]))
"""


def test_a_full_disk_is_an_error_that_names_operator_and_folder(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FAILING), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    last = done.stderr.strip().splitlines()
    said = "\n".join(last)
    assert "cannot store its state in" in said
    assert str(tmp_path) in said
    assert "panicked" not in said


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="files without a name are reached by /proc")
def test_a_page_that_is_damaged_is_an_error_of_the_dataflow(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, pairs = scope.new_collection()
            probe = pairs.count().probe()
        for pair, diff in changes(4)[0]:
            handle.update(pair, diff)
        handle.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        for link in Path("/proc/self/fd").iterdir():
            if link.is_symlink() and str(tmp_path) in os.readlink(link):
                with link.open("r+b") as file:
                    for place in range(100, os.fstat(file.fileno()).st_size, 200):
                        file.seek(place)
                        file.write(b"damage")
        for number in range(PAIRS // 4):
            handle.insert((number, 1))
        handle.close()

    with pytest.raises(ps.PointstampError, match="not as it was written"):
        ps.execute(main, config=ps.Config(memory=BUDGET, spill=tmp_path))


@pytest.mark.parametrize(
    ("given", "expected"),
    [("2 GiB", 2 << 30), ("1.5 MB", 1_500_000), ("64k", 64_000), (70_000, 70_000), ("65536", 65536)],
)
def test_a_budget_is_bytes_or_text(given: Any, expected: int) -> None:
    assert ps.Config(memory=given).memory == expected


@pytest.mark.parametrize("given", ["much", "2 Gib of it", "", "12", -5, 0, True, "1e999 GiB"])
def test_a_budget_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(ps.ConfigError, match="memory"):
        ps.Config(memory=given)


def test_a_folder_in_which_no_file_can_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    config = ps.Config(memory="1 MiB", spill=tmp_path / "file")
    with pytest.raises(ps.ConfigError, match="spill"):
        ps.execute(lambda worker: None, config=config)
