"""Files of text, read in blocks of whole lines, and followed while they grow and are rotated.

Owns the offset of such a file, which is plain data: `FileOffset.plain` lists its fields. It has a number of
bytes, checksums of the first bytes and of those before the offset, and the file's identity in the file
system. These show whether a file of the same name is still the one of the offset. They are computed from the
bytes that were read, and the file is compared with them after each read.

A followed file is rotated by renaming it and making a new one. The old one is read to its end, which is
reached when the new one has content; then the next one is read from its beginning: the new one, or the first
of those in between. A file that is not followed continues in the next file only where reading began, by an
offset, in one that has another name by now.

Rows that cannot be read are looked for in the block that does not parse, by halves: each costs about twice
the logarithm of the number of rows in attempts.
"""

from __future__ import annotations

import errno
import os
import threading
import zlib
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from pointstamp.connectors.protocol import PartitionReader
from pointstamp.connectors.rejecting import OnError, Rejected, shown, unreadable
from pointstamp.connectors.rotated import beside, successor
from pointstamp.errors import PointstampError, add_note

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator

__all__ = ["BadLine", "FileOffset", "TextReader"]

BLOCK = 1 << 20
"""Bytes of text that are read at once."""

MOST_QUOTED = 8 << 20
"""Bytes that are read at most before a value in quotes has ended. A line without quotes may be longer."""

LOOK_AGAIN = 0.05
"""Seconds after which a file that is followed is asked whether it has grown."""

LOOKS = 40
"""Looks for a followed file before it counts as missing: while it is rotated there is none."""

KNOWN = 1 << 10
"""The number of bytes at the beginning of a file, and before an offset, by which it is recognised."""

NOT_CUT = (
    "What was written to it meanwhile is lost; a file that is followed may only grow (of logrotate take "
    "'create', not 'copytruncate')"
)


class Mark(NamedTuple):
    """Bytes of a file: their number, and their checksum."""

    size: int
    checksum: int


class Marks(NamedTuple):
    """Marks that distinguish the file of an offset from others.

    Attributes:
        head: Its first bytes, up to the offset.
        tail: The last bytes before the offset. Files that begin alike, as with a long header, differ here.
        file: Its device and its number there, which others of the same contents do not have.
    """

    head: Mark
    tail: Mark
    file: tuple[int, int]


class FileOffset(NamedTuple):
    """A number of bytes, and the identity of the file.

    Attributes:
        position: The number of bytes of the file that were read.
        marks: The identity of the file.
    """

    position: int
    marks: Marks

    def plain(self) -> dict[str, Any]:
        """The offset as plain data.

        The fields are ``position``, ``head`` and ``tail``, each the number and the checksum (CRC-32) of the
        bytes at the beginning of the file and before the position, and ``file``, the file's device and its
        number there.
        """
        marks = self.marks
        return {
            "position": self.position,
            "head": list(marks.head),
            "tail": list(marks.tail),
            "file": list(marks.file),
        }

    @classmethod
    def of(cls, offset: Any, path: str) -> FileOffset:
        """Reads an offset, which may have been kept elsewhere.

        Raises:
            PointstampError: If it is no offset of a file.
        """
        try:
            position = _number(offset["position"], _MOST)
            head, tail, file = (
                tuple(_number(number, most) for number in _two(offset[name]))
                for name, most in (("head", _CHECKSUMS), ("tail", _CHECKSUMS), ("file", _FILES))
            )
            if set(offset) != {"position", "head", "tail", "file"}:
                raise ValueError("it has other fields")
            if not head[0] == tail[0] == min(position, KNOWN):
                raise ValueError("its marks are of another number of bytes")
        except (KeyError, TypeError, ValueError) as error:
            why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise PointstampError(
                f"{offset!r:.200} is no offset of {path}: {why}. Give what PartitionReader.durable was "
                "given, or none: then the file is read from its beginning"
            ) from None
        return cls(position, Marks(Mark(*head), Mark(*tail), file))  # type: ignore[arg-type]  # two each


_MOST = 1 << 63
_CHECKSUMS = 1 << 32
_FILES = 1 << 64


def _number(value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < most:
        raise ValueError(f"{value!r:.50} is no number from 0 on, below {most}")
    return value


def _two(value: Any) -> list[Any]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ValueError(f"{value!r:.50} is no pair of numbers")
    return list(value)


class BadLine(Exception):
    """A line of a block that cannot be read: its number in the block, from 0, and why."""

    def __init__(self, line: int, error: Exception) -> None:
        super().__init__(line, error)
        self.line = line
        self.error = error


class NoNames(PointstampError, ValueError):
    """The first line of a file does not have the names of its columns."""


BAD = (BadLine, ValueError, RecursionError)
"""The error of a parser for a row that cannot be read."""


class _Salvaged:
    """The rows of a block that does not parse.

    Attributes:
        good: Batches of the readable rows.
        records: The number of records in these.
        bad: The others, each with its error and the number of records before it.
        passed: All rows that were looked at, in their order.
    """

    def __init__(self) -> None:
        self.good: list[Any] = []
        self.records = 0
        self.bad: list[tuple[bytes, Exception, int]] = []
        self.passed: list[bytes] = []


class TextReader(PartitionReader[Any]):
    """Reads blocks of whole lines.

    Args:
        path: Of the file.
        parse: Makes a batch of a block, given the file's first line where that is a header.
        follow: Whether to wait for more at its end, and to continue with the next file of that name.
        header: Whether the first line belongs to no block.
        quoted: The quoted value of a line, where lines may be in it.
        on_error: The treatment of rows that cannot be read: see `rejecting`.
    """

    def __init__(
        self,
        path: str,
        parse: Callable[[bytes, bytes], Any],
        *,
        follow: bool,
        header: bool = False,
        quoted: re.Pattern[bytes] | None = None,
        on_error: OnError = "raise",
    ) -> None:
        self._path = path
        self._file = _opened(path, LOOKS if follow else 1)
        self._parse = parse
        self._follow = follow
        self._quoted = quoted
        self._raises = on_error == "raise"
        self._rejected: list[Rejected] = []
        self._position = 0
        self._counted = (0, 1)  # a position, and the number of the line that begins there
        self._head = self._tail = b""  # bytes before the position
        self._marks = self._marked()
        self._behind = False  # whether the file that is read has another name by now
        self._unclosed = False  # whether the block is a line with a value in quotes that has no end
        self._has_header = header
        self._header = None if header else b""
        self._ended = False
        self._closed = threading.Event()
        self._lock = threading.Lock()

    def read(self) -> Any:
        """The next block; None at the end, and when it is not wanted any more."""
        while True:
            with self._lock:
                if self._closed.is_set() or (self._ended and not self._go_on()):
                    return None
                block = self._lines()
                if not block and self._follow and self._is_rotated():
                    block = self._lines(last=True)
                    if not block and self._next():
                        continue
                if block:
                    return self._parsed(block)
            if not self._follow:
                self._ended = True
                continue
            self._closed.wait(LOOK_AGAIN)

    def _go_on(self) -> bool:
        """Continues with the next file, where one that is not followed has another name by now."""
        if not self._behind or not self._next():
            return False
        self._ended = False
        self._behind = not os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno()))
        return True

    # ------------------------------------------------------------ rows that cannot be read

    def _parsed(self, block: bytes) -> Any:
        if self._unclosed:
            self._unclosed = False
            self._reject([(block, ValueError("a value in quotes has no end"), 0)])
            self._advance(block)
            return []
        try:
            batch = self._parse(block, self._header or b"")
        except NoNames:
            raise  # of all rows
        except BAD:
            return self._salvaged(block)
        except Exception as error:
            add_note(error, f"in {self._path}, in the rows from line {self._line()} on")
            raise
        self._advance(block)
        return batch

    def _salvaged(self, block: bytes) -> Any:
        """Returns the readable rows of a block; for a reader that raises, those before the first bad one."""
        found = _Salvaged()
        self._split(self._rows(block), found)
        good, bad, passed = found.good, found.bad, found.passed
        if not bad or not self._raises:
            self._reject(bad, passed)
            self._advance(block)
        elif passed and passed[0] is not bad[0][0]:
            before = passed[: next(at for at, row in enumerate(passed) if row is bad[0][0])]
            self._advance(b"".join(before))
        else:
            row, error, _ = bad[0]
            cause = error.error if isinstance(error, BadLine) else error
            raised = ValueError(f"line {self._line()} of {self._path}: {cause}")
            add_note(
                raised,
                f"It begins at byte {self._position}: {shown(row)!r:.200}. Mend it and run again, or pass "
                "on_error='skip', or a sink that takes such lines",
            )
            raise unreadable(raised) from cause
        return _together(good)

    def _split(self, rows: list[bytes], found: _Salvaged) -> None:
        """Parses rows in parts: returns the batches of readable ones, and the others.

        A reader that raises looks no further than the first row that is bad.
        """
        if self._raises and found.bad:
            return
        if not any(row.strip() for row in rows):
            found.passed += rows
            return
        try:
            batch = self._parse(b"".join(rows), self._header or b"")
        except BAD as error:
            failed = error
        else:
            found.good.append(batch)
            found.records += len(batch)
            found.passed += rows
            return
        if len(rows) > 1:
            half = len(rows) // 2
            self._split(rows[:half], found)
            self._split(rows[half:], found)
            return
        first, end, rest = rows[0].partition(b"\n")
        # A quote that does not end includes the following lines in its value.
        row = first + end
        found.bad.append((row, failed, found.records))
        found.passed.append(row)
        if rest:
            self._split(self._rows(rest), found)

    def _rows(self, block: bytes) -> list[bytes]:
        """The rows of a block, with their ends."""
        parts = block.split(b"\n")
        lines = [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
        if self._quoted is None or b'"' not in block:
            return lines
        inside = [value.span() for value in self._quoted.finditer(block) if b"\n" in value[0]]
        rows: list[bytes] = []
        row, end, at = b"", 0, 0
        for line in lines:
            row += line
            end += len(line)
            while at < len(inside) and inside[at][1] < end:
                at += 1
            if at == len(inside) or not inside[at][0] < end <= inside[at][1]:
                rows.append(row)
                row = b""
        return rows + ([row] if row else [])

    def _reject(self, bad: list[tuple[bytes, Exception, int]], passed: list[bytes] | None = None) -> None:
        """Keeps the reports of rows that are left out."""
        line, at, left = self._line(), self._position, list(bad)
        for row in passed if passed is not None else [row for row, _, _ in bad]:
            if left and row is left[0][0]:
                _, error, records = left.pop(0)
                cause = error.error if isinstance(error, BadLine) else error
                self._rejected.append(Rejected(self._path, at, line, shown(row), str(cause), records))
            line += row.count(b"\n")
            at += len(row)

    def take_rejected(self) -> list[Rejected]:
        """See `PartitionReader`."""
        taken, self._rejected = self._rejected, []
        return taken

    def _line(self) -> int:
        """The number of the line that is read next, from 1."""
        at, line = self._counted if self._counted[0] <= self._position else (0, 1)
        self._file.seek(at)
        while at < self._position and (block := self._file.read(min(self._position - at, BLOCK))):
            line += block.count(b"\n")
            at += len(block)
        self._counted = (at, line)
        return line

    # ------------------------------------------------------------ blocks

    def _lines(self, last: bool = False) -> bytes:
        """Whole lines, and of a file that does not grow a last one without an end; nothing at the end."""
        grows = self._follow and not last
        try:
            if self._header is None and not self._take_header(grows):
                return b""
            return self._block(grows)
        finally:
            self._check()  # after the read: the bytes are from the known file

    def _block(self, grows: bool) -> bytes:
        self._file.seek(self._position)
        block = b""
        while more := self._file.read(BLOCK):
            block += more
            end = block.rfind(b"\n") + 1
            if end:
                end = self._cut(block, end)
            if end:
                return block[:end]
            if len(block) > MOST_QUOTED and b"\n" in block:
                if not self._raises:
                    self._unclosed = True
                    return block[: block.index(b"\n") + 1]
                error = (
                    f"line {self._line()} of {self._path}: a value in quotes has no end in {len(block)} bytes"
                )
                raise unreadable(ValueError(error))
        if grows:
            return b""
        self._ended = not self._follow  # later bytes would be the rest of a line
        return block

    def _check(self) -> None:
        """Checks that the file still holds the bytes that were read of it."""
        head, tail = _around(self._file, self._position)
        size = os.fstat(self._file.fileno()).st_size  # after these were read: it may be cut in between
        if size < self._position:
            raise PointstampError(
                f"{self._path} was cut: it has {size} bytes, and {self._position} were read. {NOT_CUT}"
            )
        if self._marks.head != _mark(head) or self._marks.tail != _mark(tail):
            raise PointstampError(
                f"{self._path} was written anew: what was read of it stands there no more. {NOT_CUT}"
            )

    def _take_header(self, grows: bool) -> bool:
        """Reads the first line; false where it is not whole yet."""
        self._file.seek(0)
        header = self._file.readline()
        if grows and not header.endswith(b"\n"):
            return False
        self._header = header
        if self._position < len(header):
            before = header[: self._position]
            self._head, self._tail = before[:KNOWN], before[-KNOWN:]
            self._advance(header[self._position :])
        return True

    def _cut(self, block: bytes, end: int) -> int:
        """The end of the last row that is whole; 0 where none is. Lines end at `end`."""
        if self._quoted is None or block.count(b'"', 0, end) % 2 == 0:
            return end
        for value in self._quoted.finditer(block, 0, end):
            if not value[1]:  # it continues behind the block
                return block.rfind(b"\n", 0, value.start()) + 1
        return end

    # ------------------------------------------------------------ which file

    def _advance(self, data: bytes) -> None:
        """Moves the offset behind bytes that were read."""
        self._head += data[: KNOWN - len(self._head)]
        self._tail = (self._tail + data[-KNOWN:])[-KNOWN:]
        self._position += len(data)
        self._marks = self._marked()

    def _take(self, file: BinaryIO, position: int) -> None:
        """Continues with another file."""
        self._file.close()
        self._file = file
        self._position = position
        self._counted = (0, 1)
        self._head, self._tail = _around(file, position)
        self._marks = self._marked()
        self._header = None if self._has_header else b""

    def _marked(self) -> Marks:
        return Marks(_mark(self._head), _mark(self._tail), _identity(self._file))

    def _is_rotated(self) -> bool:
        """Returns whether another file of this name has content: the writer has left this one."""
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            return False  # it will be made in a moment
        return there.st_size > 0 and not os.path.samestat(there, os.fstat(self._file.fileno()))

    def _next(self) -> bool:
        """Continues with the file after this one; false where it cannot be opened at the moment."""
        old, path = os.fstat(self._file.fileno()), Path(self._path)
        after = successor(path, old)
        try:
            file = open(after, "rb")  # noqa: SIM115  # until `close`
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EMFILE, errno.ENFILE):
                return False
            raise
        if successor(path, old) != after:  # it was rotated in this moment
            file.close()
            return False
        self._take(file, 0)
        return True

    @property
    def offset(self) -> dict[str, Any]:
        """The number of bytes that were read, and of which file: see `FileOffset.plain`."""
        return FileOffset(self._position, self._marks).plain()

    def seek(self, offset: Any) -> None:
        """Continues after an offset, in its file, which may have another name by now.

        Raises:
            PointstampError: If it is no offset of a file, or something else stands before it in the file, and
                in each beside it.
        """
        given = FileOffset.of(offset, self._path)
        with self._lock:
            if self._closed.is_set():
                return
            self._take(self._found(*given), given.position)
            there = os.stat(self._path) if os.path.exists(self._path) else None
            self._behind = there is None or not os.path.samestat(there, os.fstat(self._file.fileno()))

    def _found(self, offset: int, marks: Marks) -> BinaryIO:
        """Opens the file of an offset: of several candidates, the one that was read."""
        found: BinaryIO | None = None
        for path in self._names():
            try:
                file = open(path, "rb")  # noqa: SIM115  # until `close`
            except FileNotFoundError:
                continue  # it has got another name in this moment
            head, tail = _around(file, offset)
            fits = (_mark(head), _mark(tail)) == (marks.head, marks.tail)
            if fits and (found is None or _identity(file) == marks.file):
                if found is not None:
                    found.close()
                found = file
            else:
                file.close()
        if found is None:
            raise PointstampError(
                f"offset {offset} is not of this {self._path}, which has something else before it: it "
                "was rotated or written anew, and what followed the offset in the old file is not to be "
                "found. Without the offset, all that is there now is read"
            )
        return found

    def _names(self) -> Iterator[Path]:
        """Returns the file, and the files beside it whose names begin with its name."""
        path = Path(self._path)
        yield path
        yield from beside(path)

    def close(self) -> None:
        """Closes the file, and ends a thread that waits for it to grow."""
        self._closed.set()
        with self._lock:
            self._file.close()


def _opened(path: str, looks: int) -> BinaryIO:
    """Opens a file, which is looked for that often.

    Raises:
        FileNotFoundError: If it is not there.
    """
    for _ in range(looks - 1):
        with suppress(FileNotFoundError):
            return open(path, "rb")
        sleep(LOOK_AGAIN)
    return open(path, "rb")


def _together(batches: list[Any]) -> Any:
    """Batches as one: lists of records, or record batches of one schema."""
    if not any(len(batch) for batch in batches):
        return []
    if isinstance(batches[0], list):
        return [record for batch in batches for record in batch]
    import pyarrow as pa

    return pa.Table.from_batches([batch for batch in batches if len(batch)]).combine_chunks().to_batches()[0]


def _mark(data: bytes) -> Mark:
    return Mark(len(data), zlib.crc32(data))


def _around(file: BinaryIO, offset: int) -> tuple[bytes, bytes]:
    """Reads a file's first bytes, and the last before an offset: the present ones, not buffered ones."""
    size = min(offset, KNOWN)
    return os.pread(file.fileno(), size, 0), os.pread(file.fileno(), size, offset - size)


def _identity(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino
