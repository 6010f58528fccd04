"""Logs that a stranger has made or damaged, and folders in which a stranger has put a link to be followed.

Reading gives the contents, or a `CodecError` that names the file and the row; memory follows the size
of the file.
"""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from effort import examples
from pointstamp.observability.log import read_log, to_perfetto
from pointstamp.observability.log_replay import Replay


def build(worker: ps.Worker) -> None:
    with worker.dataflow("small") as scope:
        numbers = scope.to_stream(range(3))
        with scope.iterative() as inner:
            words = numbers.enter(inner).map(str).leave()
        words.exchange(hash).probe()
    worker.run()


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    folder = tmp_path_factory.mktemp("small")
    ps.execute(build, config=ps.Config(log=folder))
    return pa.ipc.open_stream((folder / "worker-0.arrows").read_bytes()).read_all()


def as_file(table: pa.Table, options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


Row = dict[str, Any]


def changed(table: pa.Table, kind: str, change: Callable[[Row], Row]) -> tuple[pa.Table, int]:
    """A log of which the last event of a kind is another, and the event's row."""
    rows = table.to_pylist()
    at = max(index for index, row in enumerate(rows) if row["kind"] == kind)
    rows[at] = change(rows[at])
    return pa.Table.from_pylist(rows, table.schema), at


LIES: dict[str, tuple[str, Callable[[Row], Row], str]] = {
    "coordinates": ("scope", lambda row: {**row, "count": 10**9}, "times have 1000000000 coordinates"),
    "fewer than none": ("scope", lambda row: {**row, "count": -1}, "times have -1 coordinates"),
    "an address": ("operator", lambda row: {**row, "address": [1, 6]}, r"the address \[1, 6\] is not of"),
    "a long address": ("operator", lambda row: {**row, "address": [0] * 99}, "the address has 99 numbers"),
    "made twice": ("operator", lambda row: {**row, "operator": 2}, "contradicts what was made before"),
    "an operator twice": (
        "edge",
        lambda row: {**row, "kind": "operator", "address": [0, 1], "name": "again"},
        "an edge in it|contradicts what was made before",
    ),
    "an edge in no scope": ("edge", lambda row: {**row, "operator": 2}, "has an edge in it, and is no scope"),
    "another worker": ("begin", lambda row: {**row, "worker": 7}, "it is of worker 7"),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_cannot_be_is_named(log: pa.Table, tmp_path: Path, lie: str) -> None:
    kind, change, words = LIES[lie]
    table, row = changed(log, kind, change)
    path = tmp_path / "worker-0.arrows"
    path.write_bytes(as_file(table))
    for read in (read_log, Replay, lambda folder: to_perfetto(folder, tmp_path / "trace")):
        with pytest.raises(ps.CodecError, match=rf"{path}.*damaged: in row {row}, .*({words})"):
            read(tmp_path)
    assert not (tmp_path / "trace").exists()
    command = [sys.executable, "-m", "pointstamp", "view", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert str(path) in done.stderr


def test_what_two_files_say_agrees(log: pa.Table, tmp_path: Path) -> None:
    (tmp_path / "worker-0.arrows").write_bytes(as_file(log))
    worker = log.schema.get_field_index("worker")
    ones = pa.array([1] * log.num_rows, pa.uint32())
    other = log.set_column(worker, log.schema.field(worker), ones)
    (tmp_path / "worker-1.arrows").write_bytes(as_file(other))
    assert Replay(tmp_path).states
    other, row = changed(other, "operator", lambda row: {**row, "address": [0, 4711]})
    (tmp_path / "worker-1.arrows").write_bytes(as_file(other))
    with pytest.raises(ps.CodecError, match=rf"worker-1.arrows' is damaged: in row {row}, .*contradicts"):
        Replay(tmp_path)


READ = """
    import logging, resource, sys
    from pathlib import Path

    import pointstamp as ps
    from pointstamp.observability.log import read_log
    from pointstamp.observability.log_replay import Replay

    logging.disable()
    room = 1 << 30  # beyond what libraries have taken
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + room, taken + room))
    for folder in sorted(Path(sys.argv[1]).iterdir()):
        try:
            read_log(folder)
            Replay(folder, moments=3)
            print(folder.name, "is read")
        except ps.PointstampError as error:
            assert isinstance(error, ps.CodecError) or "no whole batch" in str(error), error
            assert str(folder) in str(error), error
            print(folder.name, "is refused")
"""


def outcomes(folder: Path) -> dict[str, str]:
    """Returns the outcome of each, in a process that must end without further output."""
    program = [sys.executable, "-c", textwrap.dedent(READ), str(folder)]
    result = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)
    assert (result.returncode, result.stderr) == (0, ""), (result.stdout[-300:], result.stderr[-2000:])
    return dict(line.rsplit(" is ", 1) for line in result.stdout.splitlines())


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited as Linux does it")
def test_damage_wherever_it_is_is_read_or_refused(log: pa.Table, tmp_path: Path) -> None:
    """Bytes changed, files cut, and numbers that lie: sizes, offsets, counts and ports."""
    events = [
        row for row in log.to_pylist() if row["kind"] in ("scope", "operator", "edge", "frontier", "send")
    ]
    whole = as_file(pa.Table.from_pylist(events, log.schema))
    many: dict[str, bytes] = {"whole": whole}
    stride = max(1, 23 - examples(1))
    for at in range(0, len(whole), stride):
        many[f"cut {at}"] = whole[:at]
        for byte in (0, 0xFF, whole[at] ^ 0x10):
            many[f"byte {at} {byte}"] = whole[:at] + bytes([byte]) + whole[at + 1 :]
    for at in range(0, len(whole) - 8, 4 * stride):
        for lie in (b"\xff\xff\xff\x7f", (1 << 40).to_bytes(8, "little")):
            many[f"lie {at} {len(lie)}"] = whole[:at] + lie + whole[at + len(lie) :]
    for codec in ("lz4", "zstd"):
        bomb = pa.Table.from_pylist([events[0] | {"name": "a" * (1 << 24)}] * 100, log.schema)
        many[codec] = as_file(bomb, pa.ipc.IpcWriteOptions(compression=codec))
    for name in ("port", "target_port", "node", "target", "edge", "count", "at"):
        for kind in ("edge", "frontier", "send"):
            most = 2**32 - 1 if name not in ("count", "at") else 2**63 - 1
            lying = [row | {name: most} if row["kind"] == kind else row for row in events]
            many[f"{name} of {kind}"] = as_file(pa.Table.from_pylist(lying, log.schema))
    for name, data in many.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "worker-0.arrows").write_bytes(data)
    came = outcomes(tmp_path)
    assert came.keys() == many.keys()
    assert came["whole"] == "read"
    assert {came["lz4"], came["zstd"]} == {"refused"}
    assert len([name for name in came if came[name] == "refused"]) > 20


def test_a_scope_that_leads_to_itself_is_shown(log: pa.Table, tmp_path: Path) -> None:
    """No dataflow has such edges, and a search along them would go round."""
    rows = log.to_pylist()
    inner = next(row for row in rows if row["kind"] == "scope" and len(row["address"]) == 2)
    edge = next(row for row in rows if row["kind"] == "edge")
    outer = edge["operator"]
    number = inner["address"][1]
    through = {
        "operator": inner["operator"],
        "node": 0,
        "port": 9,
        "target": 0,
        "target_port": 9,
        "edge": 9999,
    }
    around = {"operator": outer, "node": number, "port": 9, "target": number, "target_port": 9, "edge": 9998}
    source = next(row["address"][1] for row in rows if row["kind"] == "operator" and len(row["address"]) == 2)
    into = {"operator": outer, "node": source, "port": 0, "target": number, "target_port": 9, "edge": 9997}
    table = pa.Table.from_pylist(rows + [edge | one for one in (through, around, into)], log.schema)
    (tmp_path / "worker-0.arrows").write_bytes(as_file(table))
    assert Replay(tmp_path, moments=3).states[-1]["dataflows"][0]["links"]


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_text("precious")
    return path


def links(there: Path, precious: Path) -> dict[str, Callable[[], None]]:
    return {
        "symbolic link": lambda: there.symlink_to(precious),
        "link to nothing": lambda: there.symlink_to(precious.parent / "missing"),
        "hard link": lambda: os.link(precious, there),
        "pipe": lambda: os.mkfifo(there),
    }


@pytest.mark.skipif(os.name != "posix", reason="links and pipes as POSIX has them")
@pytest.mark.parametrize("kind", ["symbolic link", "link to nothing", "hard link", "pipe"])
def test_a_log_is_not_written_through_a_link(precious: Path, kind: str) -> None:
    folder = precious.parent / "log"
    folder.mkdir()
    links(folder / "worker-0.arrows", precious)[kind]()
    with pytest.raises(ps.ConfigError, match=r"the log cannot be written to .*log': .*worker-0.arrows"):
        ps.execute(build, config=ps.Config(log=folder))
    assert precious.read_text() == "precious"
    assert not (precious.parent / "missing").exists()


@pytest.mark.skipif(os.name != "posix", reason="links as POSIX has them")
@pytest.mark.parametrize("kind", ["symbolic link", "hard link"])
def test_a_trace_takes_the_place_of_a_link(precious: Path, kind: str) -> None:
    folder, target = precious.parent / "log", precious.parent / "trace.json"
    ps.execute(build, config=ps.Config(log=folder))
    links(target, precious)[kind]()
    assert to_perfetto(folder, target) == len(json.loads(target.read_text())["traceEvents"])
    assert precious.read_text() == "precious"
    assert not target.is_symlink()
    assert sorted(path.name for path in precious.parent.iterdir()) == ["log", "precious", "trace.json"]
