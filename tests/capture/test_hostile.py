"""Captures made by an attacker: the checksums are right, and the columns contradict themselves.

Each is read in a process that may take little memory and time. It may give what pyarrow finds valid, or be
refused with `CodecError`; nothing else.
"""

import io
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from capture_frames import framed
from effort import examples
from pointstamp.capture import Messages

READ = """
    import resource, sys
    from pathlib import Path

    import pointstamp as ps
    from pointstamp.capture import Messages

    room = 2 << 30  # beyond what libraries have taken
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + room, taken + room))
    for path in sorted(Path(sys.argv[1]).iterdir()):
        try:
            for event in ps.EventReader(path):
                if isinstance(event, Messages):
                    event.data.validate(full=True)
                    event.data.to_pylist()
            ps.example(lambda scope: scope.replay([ps.EventReader(path)]).to_records().capture())
            print(path.name, "is read")
        except (ps.CodecError, ps.GraphError):
            print(path.name, "is refused")
"""


def ipc(batch: pa.RecordBatch, options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    kept = io.BytesIO()
    with pa.ipc.new_stream(kept, batch.schema, options=options) as stream:
        stream.write_batch(batch)
    return kept.getvalue()


def captured(schema: bytes, batch: bytes, rows: int) -> bytes:
    """A capture of one message, whatever is in it."""

    def words(*numbers: int) -> bytes:
        return b"".join(n.to_bytes(4, "little") for n in numbers)

    start = words(1, 1, 1, len(schema)) + schema
    once = words(1, 0) + bytes(8) + (1).to_bytes(8, "little")
    over = words(1, 0) + bytes(8) + (-1).to_bytes(8, "little", signed=True)
    message = words(1, 16) + len(batch).to_bytes(8, "little") + bytes(8) + rows.to_bytes(8, "little")
    frames = [framed(1, start), framed(2, once), framed(3, message + batch), framed(2, over)]
    return b"POINTSTAMPEVENTS" + b"".join(frames)


def of(array: Any) -> pa.RecordBatch:
    return pa.record_batch({"x": array})


MANY, MORE = 0x123457, 1 << 40
"""Numbers that stand nowhere else in a batch."""


def hollow() -> Iterator[tuple[str, bytes]]:
    """Few bytes that announce many values."""
    items = pa.nulls(MANY)
    batches = {
        "nulls": of(items),
        "no columns": of(items).select([]),
        "runs": of(pa.RunEndEncodedArray.from_arrays(pa.array([MANY], pa.int64()), pa.array([7]))),
        "list of nulls": of(pa.LargeListArray.from_arrays(pa.array([0, MANY], pa.int64()), items)),
        "lists of fixed size": of(pa.FixedSizeListArray.from_arrays(items, 1)),
        "structs of nulls": of(pa.StructArray.from_arrays([items], ["a"])),
    }
    for name, batch in batches.items():
        few, many = (n.to_bytes(8, "little") for n in (MANY, MORE))
        lying = ipc(batch).replace(few, many)
        yield name, captured(ipc(batch.slice(0, 0)), lying, 1 if name == "list of nulls" else MORE)


def nested(depth: int) -> pa.Schema:
    field = pa.field("item", pa.int8())
    for _ in range(depth):
        field = pa.field("item", pa.list_(field))
    return pa.schema([field])


def whole() -> dict[str, pa.RecordBatch]:
    words = pa.array(["a", "bc", None, "a"])
    return {
        "text": of(words),
        "dictionary": of(words.dictionary_encode()),
        "lists": of(pa.array([[1, 2], None, [], [3]])),
        "views": of(words.cast(pa.string_view())),
        "union": of(pa.UnionArray.from_sparse(pa.array([0] * 4, pa.int8()), [pa.array(range(4))])),
    }


def lies(stride: int) -> Iterator[tuple[str, bytes]]:
    """Numbers that lie: lengths, offsets, counts and indices, wherever they are."""
    for name, batch in whole().items():
        data, start = ipc(batch), ipc(batch.slice(0, 0))
        for at in range(0, len(data) - 8, 4 * stride):
            for lie in (b"\xff\xff\xff\x7f", b"\xff" * 8, MORE.to_bytes(8, "little")):
                lying = data[:at] + lie + data[at + len(lie) :]
                yield f"{name} {at} {len(lie)} {lie[0]}", captured(start, lying, batch.num_rows)


def odd() -> Iterator[tuple[str, bytes]]:
    plain = whole()["text"]
    start = ipc(plain.slice(0, 0))
    for codec in ("lz4", "zstd"):
        squeezed = ipc(of(pa.array(["a"] * 500)), pa.ipc.IpcWriteOptions(compression=codec))
        yield codec, captured(start, squeezed, 500)
    for depth in (30, 60):
        empty = ipc(pa.RecordBatch.from_pylist([], nested(depth)))
        yield f"nested {depth}", captured(empty, empty, 0)
    two = ipc(plain)[:-8]
    yield "two batches", captured(start, two + two, 8)
    yield "no batch", captured(start, b"", 0)
    yield "a schema alone", captured(start, plain.schema.serialize().to_pybytes(), 0)
    yield "a schema that is none", captured(b"", ipc(plain), 4)


def outcomes(folder: Path) -> dict[str, str]:
    """Returns the outcome of each, in a process that had to end."""
    program = [sys.executable, "-c", textwrap.dedent(READ), str(folder)]
    result = subprocess.run(program, capture_output=True, text=True, timeout=380, check=False)
    assert result.returncode == 0, (result.stdout[-300:], result.stderr[-2000:])
    return dict(line.rsplit(" is ", 1) for line in result.stdout.splitlines())


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited as Linux does it")
def test_what_a_stranger_made_is_read_or_refused(tmp_path: Path) -> None:
    made = [*hollow(), *odd(), *lies(max(1, 7 - examples(1)))]
    made += [
        (f"whole {name}", captured(ipc(b.slice(0, 0)), ipc(b), b.num_rows)) for name, b in whole().items()
    ]
    for name, data in made:
        (tmp_path / name).write_bytes(data)
    came = outcomes(tmp_path)
    assert came.keys() == {name for name, _ in made}
    refused = {name for name, _ in (*hollow(), *odd()) if not name.startswith("nested")}
    assert {came[name] for name in refused} == {"refused"}
    assert {came[name] for name in came if name.startswith("whole")} == {"read"}
    assert len([name for name in came if came[name] == "refused"]) > 100


@pytest.mark.parametrize("kind", ["nulls", "runs", "lists of nulls"])
def test_batches_of_many_values_that_take_no_bytes_are_captured_in_parts(kind: str) -> None:
    count = 3 << 20
    nulls = pa.nulls(count)
    array = {
        "nulls": lambda: nulls,
        "runs": lambda: pa.RunEndEncodedArray.from_arrays(pa.array([count], pa.int32()), pa.array([7])),
        "lists of nulls": lambda: pa.FixedSizeListArray.from_arrays(nulls, 1 << 10),
    }[kind]()
    batch = of(array)
    given, kept = ps.ArrowInput(batch.schema), io.BytesIO()

    def build(scope: ps.Scope) -> None:
        given.to_stream(scope).capture_into(ps.EventWriter(kept))
        given.send(batch)
        given.close()

    ps.example(build)
    kept.seek(0)
    again = [event.data for event in ps.EventReader(kept) if isinstance(event, Messages)]
    assert len(again) > 2
    assert sum(part.num_rows for part in again) == batch.num_rows


def test_a_row_that_no_reader_takes_is_refused() -> None:
    row = of(pa.LargeListArray.from_arrays(pa.array([0, 2 << 20], pa.int64()), pa.nulls(2 << 20)))
    given = ps.ArrowInput(row.schema)

    def build(scope: ps.Scope) -> None:
        given.to_stream(scope).capture_into(ps.EventWriter(io.BytesIO()))
        given.send(row)
        given.close()

    with pytest.raises(ps.CodecError, match="values that take no space"):
        ps.example(build)
