"""Files of text, read in blocks of whole lines, and followed while they grow and are rotated.

Owns the offset of such a file. It is a number of bytes, which also carries what the file begins with: that
tells whether a file of the same name is still the one that the offset is of.

A file that is followed is rotated by giving it another name and making a new one. The old one is read to
its end, which is reached when the new one has something in it; then the new one is read from its beginning.
"""

from __future__ import annotations

import errno
import os
import threading
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from pointstamp._errors import PointstampError, add_note
from pointstamp.connectors.protocol import PartitionReader

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

__all__ = ["BadLine", "FileOffset", "Head", "TextReader"]

BLOCK = 1 << 20
"""Bytes of text that are read at once."""

MOST_QUOTED = 8 << 20
"""Bytes that are read at most before a value in quotes has ended. A line without quotes may be longer."""

LOOK_AGAIN = 0.05
"""Seconds after which a file that is followed is asked whether it has grown."""

HEAD = 1 << 10
"""Bytes at the beginning of a file by which it is told apart from others."""

NOT_CUT = (
    "What was written to it meanwhile is lost; a file that is followed may only grow (of logrotate take "
    "'create', not 'copytruncate')"
)


class Head(NamedTuple):
    """What a file begins with: so many bytes, and their checksum."""

    size: int
    checksum: int


class FileOffset(int):
    """A number of bytes, and what the file begins with that it is of.

    It is equal to the number, and pickled with both. What keeps the number alone keeps an offset, too, by
    which a file that was rotated is not told apart.
    """

    head: Head | None

    def __new__(cls, value: int, head: Head | None = None) -> FileOffset:
        """An offset of a file with that beginning."""
        made = super().__new__(cls, value)
        made.head = head
        return made

    def __getnewargs__(self) -> tuple[int, Head | None]:  # type: ignore[override]  # of an int: itself
        return int(self), self.head


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
        self._file: BinaryIO = open(path, "rb")  # noqa: SIM115  # until `close`
        self._parse = parse
        self._follow = follow
        self._quoted = quoted
        self._offset = FileOffset(0)
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
        self._advance(len(block))
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
        self._check()
        if self._header is None and not self._take_header(grows):
            return b""
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
        """That the file still holds what was read of it."""
        size = os.fstat(self._file.fileno()).st_size
        if size < self._offset:
            raise PointstampError(
                f"{self._path} was cut: it has {size} bytes, and {self._offset} were read. {NOT_CUT}"
            )
        head = self._offset.head
        if size > self._offset and head is not None and self._beginning(head.size) != head:
            raise PointstampError(
                f"{self._path} was written anew: it begins otherwise than when it was read. {NOT_CUT}"
            )

    def _take_header(self, grows: bool) -> bool:
        """Reads the first line; false where it is not whole yet."""
        self._file.seek(0)
        header = self._file.readline()
        if grows and not header.endswith(b"\n"):
            return False
        self._header = header
        if self._offset < len(header):
            self._advance(len(header) - self._offset)
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

    def _advance(self, count: int) -> None:
        value, head = self._offset + count, self._offset.head
        if head is None or head.size < HEAD:
            head = self._beginning(min(value, HEAD))
        self._offset = FileOffset(value, head)

    def _beginning(self, size: int) -> Head:
        self._file.seek(0)
        return Head(size, zlib.crc32(self._file.read(size)))

    def _is_rotated(self) -> bool:
        """Whether there is another file of this name, with something in it: who writes has left this one."""
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            return False  # it will be made in a moment
        return there.st_size > 0 and not os.path.samestat(there, os.fstat(self._file.fileno()))

    def _next(self) -> bool:
        """Goes on with the file that has the name now; false where it cannot be had at the moment."""
        try:
            self._open(self._path)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EMFILE, errno.ENFILE):
                return False
            raise
        return True

    def _open(self, path: str) -> None:
        """Goes on with another file, from its beginning."""
        following = open(path, "rb")  # noqa: SIM115  # until `close`
        self._file.close()
        self._file = following
        self._offset = FileOffset(0)
        self._header = None if self._has_header else b""

    @property
    def offset(self) -> FileOffset:
        """How many bytes were read, and of which file."""
        return self._offset

    def seek(self, offset: int) -> None:
        """Goes on behind so many bytes; of a file that is followed, in the one that they are of.

        Raises:
            PointstampError: If the file begins otherwise, and so does each of those beside it.
        """
        head = getattr(offset, "head", None)
        if head is not None and self._beginning(head.size) != head:
            self._open(self._other(offset, head))
        self._offset = FileOffset(offset, head)

    def _other(self, offset: int, head: Head) -> str:
        """The file that had this one's name: it has a name that begins with it."""
        path = Path(self._path)
        for other in sorted(path.parent.iterdir()) if self._follow else []:
            if other != path and other.name.startswith(path.name) and other.is_file():
                with other.open("rb") as file:
                    if zlib.crc32(file.read(head.size)) == head.checksum:
                        return str(other)
        raise PointstampError(
            f"offset {int(offset)} is not of this {self._path}, which begins otherwise: it was rotated or "
            "written anew, and what followed the offset in the old file is not to be found. Without the "
            "offset, all that is there now is read"
        )

    def close(self) -> None:
        """Lets go of the file, and of a thread that waits for it to grow."""
        self._closed.set()
        with self._lock:
            self._file.close()
