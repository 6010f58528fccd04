"""Journals: records of sources that cannot be read again, logged before their senders are answered.

A journal is a folder of numbered files. Each begins with the number of its first record, followed by the
records, each with its length and checksum. An execution that opens the journal creates the next file, and
then reads the earlier ones; an execution that appends checks, after the sync, whether there is a later file.
So the records of an execution that was overtaken are either read by the one that overtook it, or appending
raises.

Files of which a complete checkpoint covers all records are removed.
"""

from __future__ import annotations

import os
import pickle
import re
import struct
import threading
import zlib
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from pointstamp._files import make_durable, make_folder
from pointstamp.connectors.protocol import PartitionReader, number_of
from pointstamp.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import BinaryIO

    from pointstamp.connectors.rejecting import Rejected

__all__ = ["Journal", "Journaled", "folder_of", "pickled"]

T = TypeVar("T")

FRAME = struct.Struct("<II")
"""Before each record: its length, and the CRC-32 of its bytes."""

HEAD = struct.Struct("<8sQI")
"""At the beginning of a file: its kind, the number of its first record, and the CRC-32 of both."""

KIND = b"PSTMJRN1"

NAME = re.compile(r"([0-9]{20})\.journal")

MOST = 64 << 20
"""Bytes of a file after which another one is begun."""


def folder_of(location: Path, source: str, partition: str) -> Path:
    """Returns the folder of a partition's journal, beside the checkpoints.

    Args:
        location: The folder of the checkpoints.
        source: The identity of the operator that reads.
        partition: The partition.
    """

    def plain(name: str) -> str:
        return re.sub(r"[^A-Za-z0-9_-]", lambda found: f"%{ord(found[0]):X}.", name)

    return location / "journals" / plain(source) / plain(partition)


class _File(NamedTuple):
    """A file that was there when the journal was opened, or is written."""

    number: int
    first: int
    """The number of its first record."""
    path: Path


class Journal:
    """A log of records in a folder. Methods may be called from any thread.

    Args:
        folder: The folder, which is made if it is not there.

    Raises:
        CheckpointError: If a file is damaged.
        OSError: If the folder cannot be written to.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        _make_folders(folder)
        self._number = max(self._numbers(), default=0) + 1
        while (file := self._created(self._number)) is None:
            self._number += 1  # the number of an execution that begins in this moment
        self._file = file
        try:
            earlier = [number for number in self._numbers() if number < self._number]
            self._files = [found for number in earlier if (found := self._look(number)) is not None]
            self.count = self._counted()
            """Records that were ever appended: the number of the next."""
            self.first = self._files[0].first if self._files else self.count
            """The number of the first record that is there."""
            self._begin()
        except BaseException:
            self._file.close()
            raise
        self.begins = self.count
        """The number of the first record of this execution."""

    # ------------------------------------------------------------ files

    def _numbers(self) -> list[int]:
        return sorted(int(found[1]) for name in os.listdir(self._folder) if (found := NAME.fullmatch(name)))

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:020}.journal"

    def _created(self, number: int) -> BinaryIO | None:
        """Creates a file; None where another execution has."""
        try:
            file: Any = open(self._path(number), "xb", buffering=0)  # noqa: SIM115  # until `close`
        except FileExistsError:
            return None
        make_durable(self._folder)
        return file  # type: ignore[no-any-return]

    def _begin(self) -> None:
        """Writes the beginning of the file that was created."""
        head = HEAD.pack(KIND, self.count, zlib.crc32(KIND + self.count.to_bytes(8, "little")))
        self._file.write(head)
        os.fsync(self._file.fileno())
        self._size = HEAD.size
        self._files.append(_File(self._number, self.count, self._path(self._number)))

    def _look(self, number: int) -> _File | None:
        """Reads the beginning of a file; returns None for a file that was left before it had a record."""
        path = self._path(number)
        with open(path, "rb") as file:
            head = file.read(HEAD.size)
        if len(head) < HEAD.size:
            path.unlink(missing_ok=True)
            return None
        kind, first, checksum = HEAD.unpack(head)
        if kind != KIND or checksum != zlib.crc32(kind + first.to_bytes(8, "little")):
            raise _damaged(path, 0)
        return _File(number, first, path)

    def _counted(self) -> int:
        """Counts the records, and checks each."""
        if not self._files:
            return 0
        last = self._files[-1]
        return last.first + sum(1 for _ in self._records(last))

    def _records(self, file: _File) -> Iterator[bytes]:
        """Yields the records of a file, up to an incomplete one, whose sender was not answered."""
        size = os.path.getsize(file.path)
        with open(file.path, "rb") as opened:
            at = HEAD.size
            opened.seek(at)
            while at + FRAME.size <= size:
                length, checksum = FRAME.unpack(opened.read(FRAME.size))
                if at + FRAME.size + length > size:
                    return
                record = opened.read(length)
                if zlib.crc32(record) != checksum:
                    if at + FRAME.size + length == size:
                        return  # the last, of which a part was lost with the power
                    raise _damaged(file.path, at)
                yield record
                at += FRAME.size + length

    # ------------------------------------------------------------ records

    def append(self, records: Sequence[bytes]) -> None:
        """Appends records, durably.

        Raises:
            CheckpointError: If another execution has taken over. It may have the records, or not.
            OSError: If they cannot be written. None of them is there.
        """
        with self._lock:
            if self._size >= MOST:
                self._roll()
            frames = b"".join(FRAME.pack(len(record), zlib.crc32(record)) + record for record in records)
            try:
                _write(self._file, frames)
                os.fsync(self._file.fileno())
            except BaseException:
                os.ftruncate(self._file.fileno(), self._size)
                self._file.seek(self._size)
                raise
            if self._numbers()[-1] > self._number:
                raise self._overtaken()
            self._size += len(frames)
            self.count += len(records)

    def _roll(self) -> None:
        file = self._created(self._number + 1)
        if file is None:
            raise self._overtaken()
        self._file.close()
        self._file = file
        self._number += 1
        self._begin()

    def _overtaken(self) -> CheckpointError:
        return CheckpointError(
            f"the journal {self._folder} is written by another execution, which has taken over: "
            "records put in here are not read. End this one"
        )

    def read(self, start: int) -> Iterator[bytes]:
        """Returns the records of earlier executions from a number on.

        Raises:
            CheckpointError: If they are not there, or damaged.
        """
        if not self.first <= start <= self.begins:
            raise CheckpointError(
                f"the journal {self._folder} has the records {self.first} to {self.begins}, and the "
                f"checkpoint resumes at record {start}: the journal was removed or is another one, or the "
                "checkpoint is an older one (at=). Bring the journal back, or take the newest checkpoint"
            )
        files = [file for file in self._files if file.first < self.begins]
        for file, after in zip_longest(files, files[1:]):
            # Records that an overtaken execution appended later are not read: its appending raised.
            end = self.begins if after is None else after.first
            if end <= start:
                continue
            for number, record in enumerate(self._records(file), file.first):
                if number >= end:
                    break
                if number >= start:
                    yield record

    def trim(self, start: int) -> None:
        """Removes files that have nothing from a number on."""
        with self._lock:
            while len(self._files) > 1 and self._files[1].first <= start:
                self._files.pop(0).path.unlink(missing_ok=True)

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._file.close()


class Journaled(PartitionReader[T], Generic[T]):
    """A reader whose batches are logged before they are sent: after a failure they come from the journal.

    Args:
        open_reader: Opens the reader, when the journal was read.
        folder: The folder of the journal.
    """

    def __init__(self, open_reader: Callable[[], PartitionReader[T]], folder: Path) -> None:
        self._open_reader = open_reader
        self._journal = Journal(folder)
        self._number = self._journal.first
        self._inner_offset: Any = None
        self._lock = threading.Lock()
        self._closed = False
        self._inner: PartitionReader[T] | None = None
        self._left: Iterator[bytes] | None = None
        self._watermark: int | None = None
        self._rejected: Sequence[Rejected] = ()

    def read(self) -> Any:
        """The next batch: of the journal, or of the reader, once it is logged."""
        if self._left is None:
            self._left = self._journal.read(self._number)
        kept = next(self._left, None)
        if kept is None:
            inner = self._opened()
            batch = None if inner is None else inner.read()
            if inner is None or batch is None:
                self._rejected = () if inner is None else inner.take_rejected()
                return None
            kept = pickle.dumps((batch, inner.take_rejected(), inner.watermark, inner.offset), 5)
            self._journal.append([kept])
        batch, self._rejected, self._watermark, self._inner_offset = pickle.loads(kept)
        self._number += 1
        return batch

    def _opened(self) -> PartitionReader[T] | None:
        """The reader; None where it is not wanted any more."""
        if self._inner is not None:
            return self._inner
        inner = self._open_reader()
        with self._lock:
            if not self._closed:
                self._inner = inner
        if self._inner is None:
            inner.close()
            return None
        if self._inner_offset:
            inner.seek(self._inner_offset)
        return inner

    @property
    def offset(self) -> dict[str, Any]:
        """The number of batches that were read, and the reader's own offset."""
        return {"record": self._number, "offset": self._inner_offset}

    @property
    def watermark(self) -> int | None:
        """See `PartitionReader`."""
        return self._watermark

    def take_rejected(self) -> list[Any]:
        """See `PartitionReader`."""
        taken, self._rejected = self._rejected, ()
        return list(taken)

    def seek(self, offset: Any) -> None:
        """Seeks to an offset; see `PartitionReader`."""
        fields = offset if isinstance(offset, dict) else {}
        self._number = number_of(fields.get("record"), "a journal", "a number of batches, as 'record'")
        self._inner_offset = fields.get("offset")

    def durable(self, offset: Any) -> None:
        """Removes the records that a checkpoint covers."""
        self._journal.trim(offset["record"])

    def close(self) -> None:
        """Closes the reader and the journal."""
        with self._lock:
            self._closed = True
            inner = self._inner
        if inner is not None:
            inner.close()
        self._journal.close()


def _make_folders(folder: Path) -> None:
    """Creates a folder and its parents, durably."""
    missing = []
    at = folder
    while not at.exists():
        missing.append(at)
        at = at.parent
    for one in reversed(missing):
        make_folder(one)
        make_durable(one.parent)


def pickled(records: Iterable[Any]) -> list[bytes]:
    """Pickles records for a journal.

    Raises:
        TypeError: If one cannot be pickled.
    """
    try:
        return [pickle.dumps(record, 5) for record in records]
    except Exception as error:
        raise TypeError(f"a journal takes what can be pickled: {type(error).__name__}: {error}") from error


def _write(file: BinaryIO, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _damaged(path: Path, at: int) -> CheckpointError:
    return CheckpointError(
        f"the journal {path} is damaged at byte {at}: bring the file back from a copy, or remove the journal "
        "and the checkpoints, and begin again"
    )
