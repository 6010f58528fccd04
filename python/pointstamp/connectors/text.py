"""Files of text, read in blocks of whole lines, and followed while they grow and are rotated.

Owns the offset of such a file. It is a number of bytes, which also carries what the file begins with, what
stands before the offset, and which file of the system it is: these tell whether a file of the same name is
still the one that the offset is of. They are taken of the bytes that were read, and the file is compared with
them after each read.

A file that is followed is rotated by giving it another name and making a new one. The old one is read to
its end, which is reached when the new one has something in it; then the next one is read from its beginning:
the new one, or the first of those in between.
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

from pointstamp._errors import PointstampError, add_note
from pointstamp.connectors.protocol import PartitionReader
from pointstamp.connectors.rotated import beside, successor

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
"""Bytes at the beginning of a file, and before an offset, by which it is told apart from others."""

NOT_CUT = (
    "What was written to it meanwhile is lost; a file that is followed may only grow (of logrotate take "
    "'create', not 'copytruncate')"
)


class Mark(NamedTuple):
    """Bytes of a file: how many, and their checksum."""

    size: int
    checksum: int


class Marks(NamedTuple):
    """Marks that tell the file of an offset from others.

    Attributes:
        head: Its first bytes, up to the offset.
        tail: The last bytes before the offset. Files that begin alike, as with a long header, differ here.
        file: Its device and its number there, which others of the same contents do not have.
    """

    head: Mark
    tail: Mark
    file: tuple[int, int]


class FileOffset(int):
    """A number of bytes, and what is known of the file that it is of.

    It is equal to the number, and pickled with both. What keeps the number alone keeps an offset, too, by
    which a file that was rotated is not told apart.
    """

    marks: Marks | None

    def __new__(cls, value: int, marks: Marks | None = None) -> FileOffset:
        """An offset of a file with these marks."""
        made = super().__new__(cls, value)
        made.marks = marks
        return made

    def __getnewargs__(self) -> tuple[int, Marks | None]:  # type: ignore[override]  # of an int: itself
        return int(self), self.marks


class BadLine(Exception):
    """A line of a block that cannot be read: its number in the block, from 0, and why."""

    def __init__(self, line: int, error: Exception) -> None:
        super().__init__(line, error)
        self.line = line
        self.error = error


class TextReader(PartitionReader[Any]):
    """Reads blocks of whole lines.

    Args:
        path: Of the file.
        parse: Makes a batch of a block, given the file's first line where that is a header.
        follow: Whether to wait for more at its end, and to go on with the next file of that name.
        header: Whether the first line belongs to no block.
        quoted: What a value in quotes is, where lines may be in it.
    """

    def __init__(
        self,
        path: str,
        parse: Callable[[bytes, bytes], Any],
        *,
        follow: bool,
        header: bool = False,
        quoted: re.Pattern[bytes] | None = None,
    ) -> None:
        self._path = path
        self._file = _opened(path, LOOKS if follow else 1)
        self._parse = parse
        self._follow = follow
        self._quoted = quoted
        self._offset = FileOffset(0)
        self._head = self._tail = b""  # of what is before the offset
        self._has_header = header
        self._header = None if header else b""
        self._ended = False
        self._closed = threading.Event()
        self._lock = threading.Lock()

    def read(self) -> Any:
        """The next block; None at the end, and when it is not wanted any more."""
        while True:
            with self._lock:
                if self._closed.is_set() or self._ended:
                    return None
                block = self._lines()
                if not block and self._follow and self._is_rotated():
                    block = self._lines(last=True)
                    if not block and self._next():
                        continue
                if block:
                    return self._parsed(block)
            if not self._follow:
                return None
            self._closed.wait(LOOK_AGAIN)

    def _parsed(self, block: bytes) -> Any:
        try:
            batch = self._parse(block, self._header or b"")
        except BadLine as bad:
            raise ValueError(f"line {self._line() + bad.line} of {self._path}: {bad.error}") from bad.error
        except Exception as error:
            add_note(error, f"in {self._path}, in the rows from line {self._line()} on")
            raise
        self._advance(block)
        return batch

    def _line(self) -> int:
        """The number of the line that is read next, from 1."""
        self._file.seek(0)
        left, lines = int(self._offset), 1
        while left > 0 and (block := self._file.read(min(left, BLOCK))):
            lines += block.count(b"\n")
            left -= len(block)
        return lines

    # ------------------------------------------------------------ blocks

    def _lines(self, last: bool = False) -> bytes:
        """Whole lines, and of a file that does not grow a last one without an end; nothing at the end."""
        grows = self._follow and not last
        try:
            if self._header is None and not self._take_header(grows):
                return b""
            return self._block(grows)
        finally:
            self._check()  # after the read: then what was read is of the file that is known

    def _block(self, grows: bool) -> bytes:
        self._file.seek(self._offset)
        block = b""
        while more := self._file.read(BLOCK):
            block += more
            end = block.rfind(b"\n") + 1
            if end:
                end = self._cut(block, end)
            if end:
                return block[:end]
            if len(block) > MOST_QUOTED and b"\n" in block:
                raise ValueError(
                    f"line {self._line()} of {self._path}: a value in quotes has no end in {len(block)} bytes"
                )
        if grows:
            return b""
        self._ended = not self._follow  # what is appended now would be the rest of a line
        return block

    def _check(self) -> None:
        """Checks that the file still holds the bytes that were read of it."""
        head, tail = _around(self._file, self._offset)
        size = os.fstat(self._file.fileno()).st_size  # after these were read: it may be cut in between
        if size < self._offset:
            raise PointstampError(
                f"{self._path} was cut: it has {size} bytes, and {self._offset} were read. {NOT_CUT}"
            )
        marks = self._offset.marks
        if marks is None:  # of a number alone: the file is taken for the one that it is of
            self._head, self._tail = head, tail
            self._offset = FileOffset(self._offset, self._marks())
        elif marks.head != _mark(head) or marks.tail != _mark(tail):
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
        if self._offset < len(header):
            before = header[: self._offset]
            self._head, self._tail = before[:KNOWN], before[-KNOWN:]
            self._advance(header[self._offset :])
        return True

    def _cut(self, block: bytes, end: int) -> int:
        """The end of the last row that is whole; 0 where none is. Lines end at `end`."""
        if self._quoted is None or block.count(b'"', 0, end) % 2 == 0:
            return end
        for value in self._quoted.finditer(block, 0, end):
            if not value[1]:  # it goes on behind the block
                return block.rfind(b"\n", 0, value.start()) + 1
        return end

    # ------------------------------------------------------------ which file

    def _advance(self, data: bytes) -> None:
        """Moves the offset behind bytes that were read."""
        self._head += data[: KNOWN - len(self._head)]
        self._tail = (self._tail + data[-KNOWN:])[-KNOWN:]
        self._offset = FileOffset(self._offset + len(data), self._marks())

    def _take(self, file: BinaryIO, offset: FileOffset) -> None:
        """Goes on with another file."""
        self._file.close()
        self._file = file
        self._offset = offset
        self._head, self._tail = _around(file, offset)
        self._header = None if self._has_header else b""

    def _marks(self) -> Marks:
        return Marks(_mark(self._head), _mark(self._tail), _identity(self._file))

    def _is_rotated(self) -> bool:
        """Whether there is another file of this name, with something in it: who writes has left this one."""
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            return False  # it will be made in a moment
        return there.st_size > 0 and not os.path.samestat(there, os.fstat(self._file.fileno()))

    def _next(self) -> bool:
        """Goes on with the file that came after this one; false where it cannot be had at the moment."""
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
        self._take(file, FileOffset(0))
        return True

    @property
    def offset(self) -> FileOffset:
        """The number of bytes that were read, and their file."""
        return self._offset

    def seek(self, offset: int) -> None:
        """Goes on behind so many bytes; of a file that is followed, in the one that they are of.

        Raises:
            PointstampError: If something else stands before the offset in the file, and in each beside it.
        """
        marks: Marks | None = getattr(offset, "marks", None)
        with self._lock:
            if self._closed.is_set():
                return
            if marks is None:
                self._offset = FileOffset(offset)
            else:
                self._take(self._found(offset, marks), FileOffset(offset, marks))

    def _found(self, offset: int, marks: Marks) -> BinaryIO:
        """Opens the file that an offset is of: of several that may be it, the very one that was read."""
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
                f"offset {int(offset)} is not of this {self._path}, which has something else before it: it "
                "was rotated or written anew, and what followed the offset in the old file is not to be "
                "found. Without the offset, all that is there now is read"
            )
        return found

    def _names(self) -> Iterator[Path]:
        """The file, and of one that is followed those beside it whose names begin with its name."""
        path = Path(self._path)
        yield path
        if self._follow:
            yield from beside(path)

    def close(self) -> None:
        """Lets go of the file, and of a thread that waits for it to grow."""
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
    try:
        return open(path, "rb")
    except FileNotFoundError as error:
        if looks > 1:
            add_note(error, f"looked for during {looks * LOOK_AGAIN:g} seconds, in case it was being rotated")
        raise


def _mark(data: bytes) -> Mark:
    return Mark(len(data), zlib.crc32(data))


def _around(file: BinaryIO, offset: int) -> tuple[bytes, bytes]:
    """A file's first bytes, and the last before an offset: what stands there now, not what is buffered."""
    size = min(offset, KNOWN)
    return os.pread(file.fileno(), size, 0), os.pread(file.fileno(), size, offset - size)


def _identity(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino
