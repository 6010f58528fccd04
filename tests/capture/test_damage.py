"""Captures that were cut, flipped or made up: the whole part is read, the rest is an error with a place."""

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from capture_frames import framed
from effort import examples
from pointstamp.__main__ import main as command
from pointstamp.capture import Messages


def captured(build: Callable[[ps.Scope], Any]) -> bytes:
    kept = io.BytesIO()
    ps.example(lambda scope: build(scope).capture_into(ps.EventWriter(kept)))
    return kept.getvalue()


def records(scope: ps.Scope) -> Any:
    return scope.to_stream(["one", 2, None]).delay(lambda x, _: 3 if x == 2 else 0)


def columns(scope: ps.Scope) -> Any:
    schema = pa.schema([("word", pa.string()), ("n", pa.list_(pa.int64()))])
    return scope.to_stream([{"word": "one", "n": [1, 2]}, {"word": None, "n": None}]).to_arrow(schema)


WHOLE = {"records": captured(records), "columns": captured(columns)}
KINDS = sorted(WHOLE)


def frames(data: bytes) -> list[tuple[int, int, bytes]]:
    """Offset, kind and body of each frame."""
    found, at = [], 16
    while at < len(data):
        size = 16 * int.from_bytes(data[at : at + 4], "little")
        found.append((at, data[at + 4], data[at + 16 : at + 16 + size]))
        at += 16 + size
    return found


def events(data: bytes) -> list[Any]:
    return list(ps.EventReader(io.BytesIO(data), allow_pickle=True))


def ends(data: bytes) -> list[int]:
    return [at + 16 + len(body) for at, _, body in frames(data)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_frames_are_those_of_the_documentation(kind: str) -> None:
    data = WHOLE[kind]
    assert data[:16] == b"POINTSTAMPEVENTS"
    assert b"".join([data[:16], *(framed(kind, body) for _, kind, body in frames(data))]) == data


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_at_any_byte_gives_what_is_whole(kind: str, tmp_path: Path) -> None:
    data = WHOLE[kind]
    whole = events(data)
    path = tmp_path / "cut"
    for length in range(len(data)):
        path.write_bytes(data[:length])
        complete = [end for end in ends(data) if end <= length]
        if not complete:  # not even what it holds
            with pytest.raises(ps.CodecError, match="it ends before it says what it holds"):
                ps.EventReader(path, allow_pickle=True)
            continue
        reader = ps.EventReader(path, allow_pickle=True)
        assert list(reader) == whole[: len(complete) - 1]
        assert reader.offset == complete[-1]
        assert reader.frontier != []


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_of_a_cut_file_says_where_it_ends(kind: str, tmp_path: Path) -> None:
    data = WHOLE[kind]
    path = tmp_path / "cut"
    for length in [*ends(data)[:-1], *(end + 20 for end in ends(data)[:-1])]:
        path.write_bytes(data[:length])
        end = max(end for end in ends(data) if end <= length)
        with pytest.warns(ps.TruncatedWarning, match=rf"cut ends at byte {end}, before its stream did"):
            ps.example(lambda scope: scope.replay([ps.EventReader(path, allow_pickle=True)]))
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ps.example(lambda scope: scope.replay([ps.EventReader(path, allow_pickle=True)]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("more", ["a capture", "a byte"])
def test_what_follows_a_complete_capture_is_an_error(kind: str, more: str, tmp_path: Path) -> None:
    data = WHOLE[kind]
    path = tmp_path / "two"
    path.write_bytes(data + (data if more == "a capture" else b"x"))
    with pytest.raises(
        ps.CodecError, match=f"damaged at byte {len(data)}: the capture is complete, and more"
    ):
        ps.example(lambda scope: scope.replay([ps.EventReader(path, allow_pickle=True)]))


@pytest.mark.parametrize("overwrite", [False, True])
def test_two_writers_of_one_file_are_refused(overwrite: bool, tmp_path: Path) -> None:
    path = tmp_path / "one"

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([worker.index]).capture_into(ps.EventWriter(path, overwrite=overwrite))
        worker.run()

    with pytest.raises(ps.GraphError if overwrite else FileExistsError, match="one"):
        ps.execute(main, workers=2)
    if overwrite:  # what has ended may be replaced
        for _ in range(2):
            ps.execute(main)


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_named(kind: str) -> None:
    data = WHOLE[kind]
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << (at % 8)
        where = 0 if at < 16 else max(start for start, _, _ in frames(data) if start <= at)
        with pytest.raises(ps.CodecError, match=rf"^<BytesIO>: damaged at byte {where}: "):
            events(bytes(damaged))


@settings(max_examples=examples(200))
@given(
    kind=st.sampled_from(KINDS),
    which=st.integers(0, 10),
    changes=st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.none() | st.integers(0, 600),
)
def test_nonsense_under_right_checksums_is_an_error(
    kind: str, which: int, changes: list[tuple[int, int]], cut: int | None
) -> None:
    if kind == "records":
        return  # a pickle that is made up may do anything: that is why they need trust
    parts = frames(WHOLE[kind])
    at = which % len(parts)
    body = bytearray(parts[at][2])
    for place, byte in changes:
        body[place % len(body)] = byte
    made = [(k, bytes(body[:cut]) if n == at else b) for n, (_, k, b) in enumerate(parts)]
    data = WHOLE[kind][:16] + b"".join(framed(k, b) for k, b in made)
    try:
        read = events(data)
    except ps.CodecError:
        return  # anything else would be a defect
    for event in read:
        if isinstance(event, Messages):
            event.data.validate(full=True)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([(3, 1)], "not the one that every capture begins with"),
        ([(0, 1), (0, -1)], "not the one"),
    ],
)
def test_events_that_no_stream_has_are_refused(changes: list[tuple[int, int]], said: str) -> None:
    body = len(changes).to_bytes(4, "little") + bytes(4)
    for time, diff in changes:
        body += time.to_bytes(8, "little") + diff.to_bytes(8, "little", signed=True)
    start = frames(WHOLE["records"])[0][2]
    data = WHOLE["records"][:16] + framed(1, start) + framed(2, body)
    with pytest.raises(ps.CodecError, match=said):
        events(data)


def test_columns_do_not_smuggle_pickles_in() -> None:
    """A file that declares columns and holds records: nothing is unpickled."""
    message = next(body for _, kind, body in frames(WHOLE["records"]) if kind == 3)
    parts = frames(WHOLE["columns"])
    data = WHOLE["columns"][:16] + b"".join(framed(k, message if k == 3 else b) for _, k, b in parts)
    with pytest.raises(ps.CodecError, match="damaged at byte"):
        list(ps.EventReader(io.BytesIO(data)))


# ------------------------------------------------------------ the command


def test_the_command_lists_and_sums_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "words.events"
    path.write_bytes(WHOLE["columns"])
    assert command(["events", str(path)]) == 0
    first, *listed, last = capsys.readouterr().out.splitlines()
    assert first.endswith("words.events: columns (word: string, n: list<item: int64>); times of 1 coordinate")
    assert [line.split()[1] for line in listed] == ["progress", "records", "progress"]
    assert "2 at 0" in listed[1]
    assert last.startswith("complete: 1 messages, 2 records at 1 times, from 0 to 0")
    path.write_bytes(WHOLE["records"])
    assert command(["events", "--summary", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("Python records, pickled; times of 1 coordinate")


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "words.events"
    path.write_bytes(WHOLE["records"][:-40])
    assert command(["events", str(path)]) == 3
    assert "cut at byte" in capsys.readouterr().out
    path.write_bytes(WHOLE["records"][:-1] + b"x")
    assert command(["events", str(path), str(tmp_path / "none")]) == 1
    said = capsys.readouterr().err
    assert "damaged at byte" in said
    assert "No such file" in said
