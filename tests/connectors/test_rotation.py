"""Files that are rotated while they are followed, and offsets of files that have another name by now."""

import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.connectors import CSVSource, JSONLinesSource

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64())])


def following(source: Any, wanted: Callable[[list[Any]], bool], act: Callable[[], object]) -> list[Any]:
    """Reads a source until that is enough; `act` is called between steps, once something was read."""
    seen: list[Any] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.read(source)
            if source.schema is None:
                stream.inspect(seen.append)
            else:
                stream.inspect_batch(lambda _, batch: seen.extend(batch.to_pylist()))
        while not wanted(seen):
            if seen:  # the first file is open
                act()
            worker.step_or_park(0.05)
        raise StopAsyncIteration  # it would follow for ever

    with pytest.raises(StopAsyncIteration):
        ps.execute(main)
    return seen


def once(*acts: Callable[[], object]) -> Callable[[], object]:
    """Does each of these in a call of its own, and then nothing."""
    left = list(acts)
    return lambda: left.pop(0)() if left else None


def append(path: Path, text: str) -> Callable[[], None]:
    def write() -> None:
        with path.open("a") as file:
            file.write(text)

    return write


def test_the_next_file_is_read_and_nothing_of_the_old_is_lost(tmp_path: Path) -> None:
    path, old = tmp_path / "log.jsonl", tmp_path / "log.jsonl.1"
    path.write_text("1\n2\n")
    acts = once(
        lambda: path.rename(old),
        append(old, "3\n"),  # who writes has it open still
        append(path, ""),
        append(old, "4\n5"),  # and does not end its last line
        append(path, "6\n"),
        append(path, "7\n"),
    )
    seen = following(JSONLinesSource(path, follow=True), lambda seen: 7 in seen, acts)
    assert seen == [1, 2, 3, 4, 5, 6, 7]


def test_each_file_of_a_csv_has_names_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("a,b\n1,2\n")

    def rotate() -> None:
        path.rename(tmp_path / "log.csv.1")
        path.write_text("b,a\n4,3\n")

    source = CSVSource(path, schema=SCHEMA, follow=True)
    seen = following(source, lambda seen: len(seen) == 2, once(lambda: None, rotate))
    assert seen == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


@contextmanager
def opened(source: Any, path: Path, offset: Any = None) -> Iterator[Any]:
    """A reader of a file, from an offset on."""
    reader = source.open(str(path))
    if offset is not None:
        reader.seek(offset)
    yield reader
    reader.close()


def following_lines(path: Path, offset: Any = None) -> AbstractContextManager[Any]:
    """A reader of lines of JSON that follows a file."""
    return opened(JSONLinesSource(path, follow=True), path, offset)


def over(path: Path) -> None:
    """Writes to a file from its beginning, more than it held: its size does not tell."""
    with path.open("r+") as file:
        file.write("3\n4\n5\n6\n")


def test_a_file_that_is_written_over_while_it_is_followed_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("1\n2\n")
    source = JSONLinesSource(path, follow=True)
    with pytest.raises(ps.PointstampError, match=r"log\.jsonl was written anew"):
        following(source, lambda seen: len(seen) > 2, once(lambda: over(path)))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_file_that_is_written_over_around_a_read_is_an_error(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("1\n2\n")
    with following_lines(path) as reader:
        assert reader.read() == [1, 2]
        block = reader._block

        def reads(grows: bool) -> bytes:
            if when == "before":
                over(path)
            data: bytes = block(grows)
            if when == "after":
                over(path)
            return data

        reader._block = reads
        for _ in range(2):  # what it holds now does not become what is known
            with pytest.raises(ps.PointstampError, match=r"log\.jsonl was written anew"):
                reader.read()
        assert reader.offset["position"] == 4


def test_a_file_that_was_written_over_behind_its_beginning_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    banner = '"banner"\n' * 200  # longer than the bytes of the beginning that are kept
    path.write_text(banner + "1\n2\n")
    with following_lines(path) as reader:
        assert len(reader.read()) == 202
        path.write_text(banner + "3\n4\n5\n")
        with pytest.raises(ps.PointstampError, match=r"log\.jsonl was written anew"):
            reader.read()


def test_a_file_that_is_missing_while_it_is_rotated_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("1\n")
    source = JSONLinesSource(path, follow=True)
    path.rename(tmp_path / "log.jsonl.1")
    looks: Iterator[Callable[[], object]] = iter([lambda: 0, lambda: path.write_text("2\n")])
    monkeypatch.setattr("pointstamp.connectors.text.sleep", lambda _: next(looks)())
    reader = source.open(str(path))
    assert reader.read() == [2]
    reader.close()
    path.unlink()
    monkeypatch.setattr("pointstamp.connectors.text.sleep", lambda _: None)
    with pytest.raises(FileNotFoundError, match="does not exist and was looked for during 2 seconds"):
        source.open(str(path))


def test_what_is_appended_after_the_last_line_is_no_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('1\n{"n": 2}')
    with opened(JSONLinesSource(path), path) as reader:
        assert reader.read() == [1]
        assert reader.read() == [{"n": 2}]
        append(path, "3\n")()
        assert reader.read() is None


# ------------------------------------------------------------ offsets


def read_to(path: Path, kind: Any, count: int, **options: Any) -> Any:
    """The offset after so many reads of a file."""
    with opened(kind(path, **options), path) as reader:
        for _ in range(count):
            assert reader.read() is not None
    return json.loads(json.dumps(reader.offset))  # as a program keeps it


def test_an_offset_is_plain_data_that_knows_its_file(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("1\n2\n")
    offset = read_to(path, JSONLinesSource, 1)
    there = path.stat()
    mark = [4, zlib.crc32(b"1\n2\n")]
    assert offset == {"position": 4, "head": mark, "tail": mark, "file": [there.st_dev, there.st_ino]}
    append(path, "3\n")()
    with opened(JSONLinesSource(path), path, offset) as reader:
        assert reader.read() == [3]
        assert reader.offset["position"] == 6


LONE = {"position": 4}

WRONG: list[Any] = [
    *(4, "4", None, [], {}, LONE),
    *({"position": position} for position in (-1, True, 2.0, 1 << 63, "4")),
    *({"head": head} for head in ([4], [4, -1], [4, 1 << 32], [3, 0], "ab", {"a": 1, "b": 2})),
    *({"file": file} for file in (3, [1, 2, 3], [1, 1 << 64])),
    {"more": 1},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_what_is_no_offset_is_refused(wrong: Any, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("1\n2\n")
    right = read_to(path, JSONLinesSource, 1)
    merged = isinstance(wrong, dict) and len(wrong) == 1 and wrong != LONE
    given = right | wrong if merged else wrong
    reader = JSONLinesSource(path).open(str(path))
    with pytest.raises(ps.PointstampError, match=r"is no offset of .*log\.jsonl: .*from its beginning"):
        reader.seek(given)
    reader.close()


def test_a_file_that_is_not_followed_goes_on_where_it_has_another_name(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("1\n2\n")
    offset = read_to(path, JSONLinesSource, 1)
    append(path, "3\n")()
    path.rename(tmp_path / "log.jsonl.1")
    path.write_text("4\n")
    with opened(JSONLinesSource(path), path, offset) as reader:
        assert [reader.read(), reader.read(), reader.read()] == [[3], [4], None]
        after = json.loads(json.dumps(reader.offset))
    (tmp_path / "log.jsonl.1").rename(tmp_path / "log.jsonl.2")
    path.rename(tmp_path / "log.jsonl.1")
    path.write_text("5\n")
    for kept, rest in ((offset, [[3], [4], [5]]), (after, [[5]])):
        with opened(JSONLinesSource(path), path, kept) as reader:
            assert [reader.read() for _ in rest] == rest
            assert reader.read() is None


@pytest.mark.parametrize("follow", [False, True])
def test_an_offset_of_a_file_that_was_replaced_is_refused(follow: bool, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("1\n2\n")
    offset = read_to(path, JSONLinesSource, 1)
    path.write_text("5\n6\n7\n")
    (tmp_path / "log.jsonl.1").write_text("8\n9\n7\n")  # not it
    source = JSONLinesSource(path, follow=follow)
    with pytest.raises(ps.PointstampError, match=r"offset 4 is not of this .*log\.jsonl") as caught:
        ps.example(lambda scope: scope.read(source, offsets={str(path): offset}).capture())
    assert any("while reading partition" in note for note in getattr(caught.value, "__notes__", []))


def test_reading_goes_on_in_the_file_that_has_another_name_by_now(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("1\n2\n")
    offset = read_to(path, JSONLinesSource, 1)
    append(path, "3\n")()
    path.rename(tmp_path / "log.jsonl.1")
    path.write_text("4\n5\n")
    with following_lines(path, offset) as reader:
        assert [reader.read(), reader.read()] == [[3], [4, 5]]
        assert reader.offset["position"] == 4


def rotate_by_number(path: Path, rows: int) -> None:
    for number in range(5, 0, -1):
        old = path.with_name(f"{path.name}.{number}")
        if old.exists():
            old.rename(path.with_name(f"{path.name}.{number + 1}"))
    rotate_to(path.with_name(f"{path.name}.1"), path, rows)


def rotate_to(old: Path, path: Path, rows: int) -> None:
    path.rename(old)
    path.write_text(f"{rows}\n")


def rotate_by_date(path: Path, rows: int) -> None:
    rotate_to(path.with_name(f"{path.name}-2026010{rows}"), path, rows)


def rotate_by_counting_up(path: Path, rows: int) -> None:
    rotate_to(path.with_name(f"{path.name}.{rows}"), path, rows)


ROTATIONS = [rotate_by_number, rotate_by_date]


def aged(path: Path) -> None:
    """Makes all that is there older than what is written next: times of files are coarse."""
    for other in path.parent.iterdir():
        status = other.stat()
        os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns - 10**9))


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_files_of_several_rotations_over_a_restart_are_read_one_after_another(
    rotate: Callable[[Path, int], None], tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("1\n")
    (tmp_path / "log.jsonl.9").write_text("0\n")
    (tmp_path / "log.jsonl-20251231").write_text("0\n")
    (tmp_path / "log.jsonl.offsets").write_text("0\n")
    aged(path)
    offset = read_to(path, JSONLinesSource, 1)
    append(path, "2\n")()
    for row in (3, 4, 5):
        aged(path)
        rotate(path, row)
    (tmp_path / "log.jsonl.offsets").write_text("0\n")  # the newest, and none of them
    with following_lines(path, offset) as reader:
        assert [reader.read() for _ in range(4)] == [[2], [3], [4], [5]]


@pytest.mark.parametrize("rotate", ROTATIONS)
def test_files_of_several_rotations_while_nothing_is_read_are_read_one_after_another(
    rotate: Callable[[Path, int], None], tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("1\n")
    with following_lines(path) as reader:
        assert reader.read() == [1]
        for row in (2, 3):
            rotate(path, row)
        assert [reader.read(), reader.read()] == [[2], [3]]


def test_names_that_are_counted_up_are_older_where_their_number_is_less(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("1\n")
    aged(path)
    rotate_by_counting_up(path, 2)
    with following_lines(path) as reader:
        assert reader.read() == [2]
        rotate_by_counting_up(path, 3)
        assert reader.read() == [3]


def test_a_file_in_between_that_was_compressed_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("1\n")
    with following_lines(path) as reader:
        assert reader.read() == [1]
        rotate_by_number(path, 2)
        rotate_by_number(path, 3)
        (tmp_path / "log.jsonl.1").rename(tmp_path / "log.jsonl.1.gz")
        with pytest.raises(
            ps.PointstampError,
            match=r"log\.jsonl was rotated more than once, .*log\.jsonl\.1\.gz, which is not read",
        ):
            reader.read()


def columns(path: Path, *rows: int) -> None:
    """Adds rows to a CSV file whose header is longer than the bytes of the beginning that are kept."""
    new = not path.exists()
    with path.open("a") as file:
        if new:
            file.write(",".join(f"column_{n:04}" for n in range(120)) + "\n")
        for row in rows:
            file.write(",".join([str(row)] * 120) + "\n")


def test_files_that_begin_alike_are_told_apart_by_what_is_before_the_offset(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    schema = pa.schema([("column_0000", pa.int64())])
    columns(path, 1, 2)
    offset = read_to(path, CSVSource, 1, schema=schema, follow=True)
    columns(path, 3)
    path.rename(tmp_path / "log.csv.1")
    columns(path, 4, 5, 6, 7)
    with opened(CSVSource(path, schema=schema, follow=True), path, offset) as reader:
        assert [reader.read().column(0).to_pylist() for _ in range(2)] == [[3], [4, 5, 6, 7]]


def test_files_that_are_alike_up_to_the_offset_are_told_apart_by_which_was_read(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("1\n2\n")
    offset = read_to(path, JSONLinesSource, 1)
    append(path, "3\n")()
    path.rename(tmp_path / "log.jsonl.2")
    for name in (path, tmp_path / "log.jsonl.1", tmp_path / "log.jsonl.3"):
        name.write_text("1\n2\n4\n")
    with following_lines(path, offset) as reader:
        assert [reader.read(), reader.read()] == [[3], [1, 2, 4]]


def test_the_names_of_columns_are_those_of_the_file_that_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("a,b\n1,2\n")
    offset = read_to(path, CSVSource, 1)
    append(path, "3,4\n")()
    path.rename(tmp_path / "log.csv-20260101")
    path.write_text("b,a\n6,5\n")
    with opened(CSVSource(path, schema=SCHEMA, follow=True), path, offset) as reader:
        rows = [*reader.read().to_pylist(), *reader.read().to_pylist()]
        assert rows == [{"a": 3, "b": 4}, {"a": 5, "b": 6}]
