"""Logs that were cut, damaged or are something else, by each way to read them; folders that are shared."""

import json
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from pointstamp.observability.log import read_log, to_perfetto
from pointstamp.observability.log_replay import Replay

COUNT = 200


def build(worker: ps.Worker) -> None:
    with worker.dataflow("logged") as scope, scope.region("part") as part:
        stream = scope.to_stream(range(COUNT)).exchange(lambda x: x)
        stream.enter(part).map(str, name="shown").leave().probe()
    worker.run()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a computation on two workers."""
    folder = tmp_path_factory.mktemp("whole")
    ps.execute(build, config=ps.Config(workers=2, log=folder))
    return folder


def copied(log: Path, folder: Path) -> Path:
    """A log that a test may damage; its second worker's file has batches of ten events."""
    folder.mkdir()
    for path in log.iterdir():
        with pa.OSFile(str(path)) as file:
            table = pa.ipc.open_stream(file).read_all()
        with pa.ipc.new_stream(str(folder / path.name), table.schema) as writer:
            for batch in table.to_batches(max_chunksize=10):
                writer.write_batch(batch)
    return folder / "worker-1.arrows"


def count(path: Path) -> int:
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_stream(file).read_all().num_rows  # type: ignore[no-any-return]


def without(log: Path, folder: Path, gone: Callable[[dict[str, Any]], bool]) -> Path:
    """A log that lacks events."""
    folder.mkdir()
    for path in log.iterdir():
        with pa.OSFile(str(path)) as file:
            table = pa.ipc.open_stream(file).read_all()
        kept = [row for row in table.to_pylist() if not gone(row)]
        with pa.ipc.new_stream(str(folder / path.name), table.schema) as writer:
            writer.write_table(pa.Table.from_pylist(kept, table.schema))
    return folder


def test_workers_that_never_slept_are_replayed(log: Path, tmp_path: Path) -> None:
    folder = without(log, tmp_path / "awake", lambda row: row["kind"] in ("park", "unpark"))
    states = Replay(folder).states
    assert [[one["worker"] for one in state["workers"]] for state in states] == [[0, 1]] * len(states)
    assert [one["ended"] for one in states[-1]["workers"]] == [True, True]


@pytest.mark.parametrize("depth", [1, 2])
def test_a_log_that_lost_what_made_a_scope_is_replayed_without_it(
    log: Path, tmp_path: Path, depth: int
) -> None:
    folder = without(
        log, tmp_path / "lost", lambda row: row["kind"] == "scope" and len(row["address"]) == depth
    )
    dataflows = Replay(folder).states[-1]["dataflows"]
    names = {one["name"] for dataflow in dataflows for one in dataflow["operators"]}
    assert ("to_stream" in names, "shown" in names) == (depth == 2, False)


def test_a_log_is_written_in_batches_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointstamp.observability.log.ROWS", 7)
    ps.execute(build, config=ps.Config(log=tmp_path / "log"))
    with pa.OSFile(str(tmp_path / "log" / "worker-0.arrows")) as file:
        sizes = [batch.num_rows for batch in pa.ipc.open_stream(file)]
    assert max(sizes) == 7
    assert sum(sizes) == read_log(tmp_path / "log").num_rows


@pytest.mark.parametrize("left", [0.0, 0.001, 0.3, 0.6, 0.999])
def test_a_log_that_was_cut_is_read_as_far_as_it_is_whole(
    log: Path, tmp_path: Path, left: float, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "cut"
    path = copied(log, folder)
    whole = read_log(folder).num_rows
    others = count(folder / "worker-0.arrows")
    assert caplog.records == []
    os.truncate(path, int(path.stat().st_size * left))
    with caplog.at_level(logging.WARNING, "pointstamp"):
        table = read_log(folder)
    [said] = [record.getMessage() for record in caplog.records]
    read = table.num_rows - others
    assert "is not whole" in said
    assert str(path) in said
    assert f"{-(-read // 10)} batches of {read} events before that are read" in said
    assert read < whole - others or left == 0.999
    assert read <= (whole - others) * left + 10
    assert (read > 0) == (left >= 0.3)
    caplog.clear()
    target = tmp_path / "trace"
    with caplog.at_level(logging.WARNING, "pointstamp"):
        assert to_perfetto(folder, target) == len(json.loads(target.read_text())["traceEvents"])
        replay = Replay(folder, moments=5)
    assert len(caplog.records) == 2
    assert len(replay.states) == 5


def test_a_log_without_the_events_that_say_what_is_made_is_shown(log: Path, tmp_path: Path) -> None:
    folder = tmp_path / "headless"
    path = copied(log, folder)
    (folder / "worker-0.arrows").unlink()
    with pa.OSFile(str(path)) as file:
        table = pa.ipc.open_stream(file).read_all()
    for first in range(0, table.num_rows, 7):
        with pa.ipc.new_stream(str(path), table.schema) as writer:
            writer.write_table(table.slice(first))
        assert Replay(folder, moments=3).states
        assert to_perfetto(folder, tmp_path / "trace") > 0


def test_a_log_that_was_damaged_is_read_up_to_there(
    log: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "damaged"
    path = copied(log, folder)
    good = path.read_bytes()
    whole = read_log(folder).num_rows
    for at in range(0, len(good), max(1, len(good) // 150)):
        bad = bytearray(good)
        bad[at : at + 4] = b"\x81\xfe\x7f\xff"
        path.write_bytes(bad)
        try:
            table = read_log(folder)
        except ps.PointstampError as error:
            refused = str(error)
        else:
            refused = str(path)
            assert table.num_rows <= whole
            for row in table.to_pylist():
                assert row["count"] is None or isinstance(row["count"], int)
        assert str(path) in refused


def written(path: Path, batch: Any, file: bool = False) -> None:
    make = pa.ipc.new_file if file else pa.ipc.new_stream
    with make(str(path), batch.schema) as writer:
        writer.write_batch(batch)


def of_another_kind(path: Path) -> None:
    written(path, pa.record_batch({"at": [1], "text": ["x"]}))


def of_arrow_as_a_file(path: Path) -> None:
    written(path, pa.record_batch({"at": [1]}), file=True)


def of_text(path: Path) -> None:
    path.write_text("at,worker\n1,0\n")


def a_folder(path: Path) -> None:
    path.mkdir()


SOMETHING_ELSE = {
    of_another_kind: "is no log of this version of pointstamp: it has no column 'address'; its columns",
    of_arrow_as_a_file: "is no log of pointstamp: it is not an Arrow stream",
    of_text: "is no log of pointstamp: it is not an Arrow stream",
    a_folder: "cannot be read: .*Is a directory",
}


@pytest.mark.parametrize("make", SOMETHING_ELSE, ids=lambda make: make.__name__)
def test_a_file_that_is_something_else_is_named(log: Path, tmp_path: Path, make: Any) -> None:
    folder = tmp_path / "else"
    path = copied(log, folder)
    path.unlink()
    make(path)
    words = f"{re.escape(repr(str(path)))}.*{SOMETHING_ELSE[make]}"
    for read in (read_log, Replay, lambda folder: to_perfetto(folder, tmp_path / "trace")):
        with pytest.raises(ps.PointstampError, match=words):
            read(folder)
    command = [sys.executable, "-m", "pointstamp", "view", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("pointstamp: ")
    assert str(path) in done.stderr
    assert "Traceback" not in done.stderr


def read_in_each_way(folder: Path, trace: Path) -> list[Any]:
    """Returns the outcome of each way to read a log: None, or the sentence in which it was refused."""
    came_to: list[Any] = []
    for read in (read_log, Replay, lambda folder: to_perfetto(folder, trace)):
        try:
            read(folder)
        except ps.PointstampError as error:
            came_to.append(str(error))
        else:
            came_to.append(None)
    return came_to


def test_a_log_of_other_columns_is_named(log: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    path = copied(log, folder)
    table = pa.ipc.open_stream(path.read_bytes()).read_all()
    for index, name in enumerate(table.schema.names):
        others = {
            f"it has no column {name!r}": table.drop_columns([name]),
            f"the column {name!r} is of date32": table.set_column(
                index, name, pa.nulls(table.num_rows, pa.date32())
            ),
            "it has more columns": table.append_column(f"more {name}", table[name]),
        }
        if not table[name].null_count:
            required = table.schema.field(name).with_nullable(False)
            others[f"the column {name!r} is not nullable"] = table.cast(table.schema.set(index, required))
        for words, other in others.items():
            with pa.ipc.new_stream(str(path), other.schema) as writer:
                writer.write_table(other)
            begin = f"{str(path)!r} is no log of this version of pointstamp: {words}"
            said = read_in_each_way(folder, tmp_path / "trace")
            assert all(refused is not None and refused.startswith(begin) for refused in said), said


def test_events_that_lack_what_their_kind_has_are_not_whole(
    log: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "lacking"
    path = copied(log, folder)
    table = pa.ipc.open_stream(path.read_bytes()).read_all()
    empty: Any = pa.array([[]] * table.num_rows, pa.list_(pa.uint64()))
    hollow: Any = pa.array([[None]] * table.num_rows, pa.list_(pa.uint64()))
    columns = [(name, pa.nulls(table.num_rows, table.schema.field(name).type)) for name in table.schema.names]
    for name, values in [*columns, ("address", empty), ("address", hollow), ("time", hollow)]:
        other = table.set_column(table.schema.get_field_index(name), table.schema.field(name), values)
        with pa.ipc.new_stream(str(path), other.schema) as writer:
            writer.write_table(other)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "pointstamp"):
            assert read_in_each_way(folder, tmp_path / "trace") == [None] * 3  # worker 0's
        said = [record.getMessage() for record in caplog.records]
        if name == "peer":  # which only messages to others have, and no reader needs
            assert said == []
        else:
            assert len(said) == 3
            assert all("is not whole" in words and str(path) in words for words in said)


def test_a_log_of_which_nothing_is_whole_says_so(tmp_path: Path) -> None:
    (tmp_path / "worker-0.arrows").touch()
    with pytest.raises(ps.PointstampError, match="holds no whole batch of events"):
        read_log(tmp_path)
    with pytest.raises(ps.PointstampError, match="holds no log of pointstamp"):
        read_log(tmp_path / "nowhere")


KILLED = """
import os, signal, sys, time
import pointstamp as ps

def main(worker):
    with worker.dataflow("killed") as scope:
        numbers, stream = scope.new_input()
        probe = stream.map(str, name="shown").probe()
    for time_ in range(10_000_000):
        numbers.send(time_)
        numbers.advance_to(time_ + 1)
        worker.step_while(lambda: probe.less_than(time_ + 1))

ps.execute(main, config=ps.Config(log=sys.argv[1]))
"""


def has_a_batch(folder: Path) -> bool:
    try:
        return bool(read_log(folder).num_rows)
    except ps.PointstampError:
        return False


def test_the_log_of_a_program_that_was_killed_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "log"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(folder)]) as process:
        try:
            while not has_a_batch(folder):  # the first may be of all that a second brings
                assert process.poll() is None
                time.sleep(0.01)
            # A log is read while it is written, and its folder is not another's.
            with pytest.raises(ps.ConfigError, match="has the log of a computation that runs"):
                ps.execute(build, config=ps.Config(log=folder))
        finally:
            process.kill()
    caplog.clear()
    with caplog.at_level(logging.WARNING, "pointstamp"):
        names = pc.unique(read_log(folder)["name"]).to_pylist()
    assert ["is not whole" in record.getMessage() for record in caplog.records] == [True]
    assert "shown" in names
    # What is left is the next program's to write over.
    ps.execute(build, config=ps.Config(log=folder))
    assert "killed" not in read_log(folder)["name"].to_pylist()


def test_two_computations_of_a_program_do_not_share_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    ps.execute(build, config=ps.Config(log=folder))
    before = read_log(folder)
    other = tmp_path / "also"
    other.symlink_to(folder)
    for again in (folder, other):
        with pytest.raises(ps.ConfigError, match="has the log of an earlier computation of this program"):
            ps.execute(build, config=ps.Config(log=again))
    assert read_log(folder).equals(before)

    def nested(worker: ps.Worker) -> None:
        with pytest.raises(ps.ConfigError, match="of an earlier computation"):
            ps.execute(build, config=ps.Config(log=tmp_path / "outer"))
        build(worker)

    ps.execute(nested, config=ps.Config(log=tmp_path / "outer"))
    assert read_log(tmp_path / "outer").num_rows > 0


def test_a_folder_keeps_no_file_of_a_wider_computation(log: Path, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    copied(log, folder)
    (folder / "worker-of-mine.arrows").touch()
    ps.execute(build, config=ps.Config(log=folder))
    assert sorted(path.name for path in folder.iterdir()) == ["worker-0.arrows", "worker-of-mine.arrows"]
    assert set(read_log(folder)["worker"].to_pylist()) == {0}


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ps.ConfigError, match=r"the log cannot be written to '.*file'"):
        ps.execute(build, config=ps.Config(log=tmp_path / "file"))


FULL = """
import resource, sys
import pointstamp as ps

def main(worker):
    with worker.dataflow() as scope:
        numbers, stream = scope.new_input()
        probe = stream.map(lambda x: x + 1).probe()
    for k in range(3000):
        numbers.send(k)
        numbers.advance_to(k + 1)
        worker.step_while(lambda: probe.less_than(k + 1))
    numbers.close()
    worker.run()
    return worker.index

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), -1))
print(ps.execute(main, config=ps.Config(workers=2, log=sys.argv[1])))
"""


@pytest.mark.parametrize("room", [0, 10_000])
def test_a_log_that_finds_no_room_ends_and_the_computation_goes_on(room: int, tmp_path: Path) -> None:
    words = [sys.executable, "-c", FULL, str(tmp_path / "log"), str(room)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=380, check=False)
    assert (done.returncode, done.stdout) == (0, "[0, 1]\n"), done.stderr
    assert done.stderr.count("ends here, and the computation continues without it") == 1, done.stderr
    assert "Traceback" not in done.stderr
