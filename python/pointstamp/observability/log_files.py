"""The files of a log, one for each worker: their names, and their complete batches.

A file is an Arrow stream whose program may have been killed while it wrote. It is read batch by batch, each
is checked before it is used, and everything after the first incomplete one is left out. Memory follows the
size of the file: it is read as a whole, columns are views into it, and no number in it determines an
allocation.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointstamp.errors import CodecError, PointstampError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

__all__ = ["Made", "batches_of", "files_of", "path_of"]

_NAME = re.compile(r"worker-(0|[1-9][0-9]*)\.arrows")

_BEGIN = b"\xff\xff\xff\xff"
"""The first bytes of an Arrow stream."""

_END = b"\xff\xff\xff\xff\0\0\0\0"
"""The last bytes of an Arrow stream."""

_COLUMNS = {
    "at": "uint64",
    "worker": "uint32",
    "kind": "string",
    "dataflow": "uint32",
    "operator": "uint32",
    "edge": "uint32",
    "node": "uint32",
    "port": "uint32",
    "output": "bool",
    "time": "list<item: uint64>",
    "count": "int64",
    "peer": "uint32",
    "address": "list<item: uint64>",
    "name": "string",
    "pact": "string",
    "target": "uint32",
    "target_port": "uint32",
}
"""The columns of a log, in order, and their types."""

_PLACED = ("dataflow", "operator")

_CHANGE = (*_PLACED, "port", "time", "count")

_NEEDED = {
    "scope": (*_PLACED, "count", "address", "name"),
    "operator": (*_PLACED, "address", "name"),
    "edge": (*_PLACED, "edge", "node", "port", "pact", "target", "target_port"),
    "begin": _PLACED,
    "end": _PLACED,
    "send": ("dataflow", "edge", "time", "count"),
    "receive": ("dataflow", "edge", "time", "count"),
    "capability": _CHANGE,
    "frontier": (*_CHANGE, "node", "output"),
}
"""The columns without which an event of a kind is meaningless; other columns are optional."""

_ALWAYS = ("at", "worker", "kind")
"""The columns that every event has."""

_log = logging.getLogger("pointstamp.observability.log")


def path_of(folder: Path, worker: int) -> Path:
    """The file of a worker."""
    return folder / f"worker-{worker}.arrows"


def files_of(folder: Path) -> list[tuple[Path, int]]:
    """The files in a folder that are logs by their names, with the numbers of their workers, in order."""
    named = [(path, _NAME.fullmatch(path.name)) for path in folder.glob("worker-*.arrows")]
    return sorted(((path, int(name[1])) for path, name in named if name), key=lambda file: file[1])


def batches_of(path: Path, worker: int, made: Made) -> Iterator[pa.RecordBatch]:
    """Yields the complete batches of a worker's file; missing ones are reported to `logging`.

    Args:
        path: The file.
        worker: The number of the worker.
        made: The objects of the earlier files; the objects of this file are added.

    Raises:
        PointstampError: If it cannot be read.
        CodecError: If it is no log, or has impossible events.
    """
    import pyarrow as pa

    data = _contents(path)
    if not _BEGIN.startswith(data[:4]):
        raise CodecError(f"{str(path)!r} is no log of pointstamp: it is not an Arrow stream")
    count = events = at = 0
    problem = None
    source = pa.BufferReader(data)
    try:
        messages = pa.ipc.MessageReader.open_stream(source)
        schema = _schema_of(messages)
        _check(path, schema)
        while True:
            at = source.tell()
            batch = _next_batch(messages, schema)
            if batch is None:
                break
            batch.validate(full=True)  # before it is looked into
            _check_events(batch)
            made.take(batch, path, worker, events)
            count, events = count + 1, events + batch.num_rows
            yield batch
    except PointstampError:
        raise
    except StopIteration:
        problem = "it has no columns"
    except (pa.ArrowException, OSError, ValueError) as error:  # names that are no text, too
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
    if problem is None and not data.endswith(_END):
        problem = "it has no end"
    if problem is not None:
        _log.warning(
            "the log %r is not whole: the program was killed while it wrote, or still runs, or the file was "
            "damaged. %d batches of %d events before that are read, up to byte %d (%s)",
            *(str(path), count, events, at, problem),
        )


def _contents(path: Path) -> bytes:
    """All that is in a plain file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise PointstampError(f"the log {str(path)!r} cannot be read: it is no plain file")
            return file.read()
    except OSError as error:
        raise PointstampError(f"the log {str(path)!r} cannot be read: {error}") from error


def _schema_of(messages: pa.ipc.MessageReader) -> pa.Schema:
    """The schema that a stream begins with."""
    import pyarrow as pa

    first = messages.read_next_message()
    if first.type != "schema":
        raise ValueError("it begins with no schema")
    return pa.ipc.read_schema(first)


def _next_batch(messages: pa.ipc.MessageReader, schema: pa.Schema) -> pa.RecordBatch | None:
    """The next batch; None at the end of the stream.

    Raises:
        ValueError: If it has features that no log has: dictionaries, or compression, by which a few bytes may
            claim any size.
    """
    import pyarrow as pa

    try:
        message = messages.read_next_message()
    except StopIteration:
        return None
    if message.type != "record batch":
        raise ValueError(f"it has a message of the type {message.type!r}")
    if _is_compressed(message.metadata.to_pybytes()):
        raise ValueError("a batch is compressed")
    return pa.ipc.read_record_batch(message, schema)


def _is_compressed(message: bytes) -> bool:
    """Whether the message of a batch, a table of FlatBuffers, says that the buffers are compressed.

    A table begins with the distance back to the list of its fields' positions, which is two lengths and a
    position for each field, 0 for an absent one. The header is the third field of a message, and the
    compression of buffers the fourth of a batch's header.
    """

    def field(table: int, index: int) -> int:
        fields = table - struct.unpack_from("<i", message, table)[0]
        (length,) = struct.unpack_from("<H", message, fields)
        place = struct.unpack_from("<H", message, fields + 4 + 2 * index)[0] if length > 4 + 2 * index else 0
        return table + place if place else 0

    try:
        header = field(struct.unpack_from("<I", message)[0], 2)
        return bool(field(header + struct.unpack_from("<I", message, header)[0], 3))
    except struct.error as error:
        raise ValueError("a batch has no header") from error


MAX_DIMS = 4096
"""Coordinates of a time at most."""

MAX_DEPTH = 66
"""Numbers of an address at most: scopes nest at most 64 deep, in a dataflow, and hold an operator."""

_Who = tuple[int, int]


class Made:
    """The dataflows that the files of a log describe, checked as they come: all workers build the same."""

    def __init__(self) -> None:
        self._made: dict[_Who, tuple[str, tuple[int, ...], int]] = {}
        self._at: dict[tuple[int, ...], _Who] = {}
        # Of scopes, by the edges in them.
        self._scopes: set[_Who] = set()

    def take(self, batch: pa.RecordBatch, path: Path, worker: int, before: int) -> None:
        """Checks the events of a batch, behind so many others of its file.

        Raises:
            CodecError: If an event is impossible; the message names the file and the row.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        of_others = pc.not_equal(batch.column("worker"), worker)
        kinds = pc.is_in(batch.column("kind"), value_set=pa.array(["scope", "operator", "edge"]))
        columns = ["kind", "worker", *_NEEDED["operator"], "count"]
        looked_at = pc.indices_nonzero(pc.or_(kinds, of_others))
        rows = batch.select(columns).take(looked_at)
        for index, row in zip(looked_at.to_pylist(), rows.to_pylist(), strict=True):
            wrong = f"it is of worker {row['worker']}" if row["worker"] != worker else self._wrong(row)
            if wrong:
                raise CodecError(
                    f"the log {str(path)!r} is damaged: in row {before + index}, an event of the kind "
                    f"{row['kind']!r}, {wrong}"
                )

    def _wrong(self, row: dict[str, Any]) -> str | None:
        """Returns the fault of an event that something was made, if it has one."""
        who = (row["dataflow"], row["operator"])
        named = f"operator {who[1]} of dataflow {who[0]}"
        known = self._made.get(who)
        if row["kind"] == "edge":
            if known is not None and known[0] != "scope":
                return f"{named} has an edge in it, and is no scope"
            self._scopes.add(who)
            return None
        address, dims = tuple(row["address"]), row["count"] if row["kind"] == "scope" else 0
        if len(address) > MAX_DEPTH:
            return f"the address has {len(address)} numbers, and scopes nest at most {MAX_DEPTH - 2} deep"
        if address[0] != who[0]:
            return f"the address {list(address)} is not of dataflow {who[0]}"
        if not 0 <= dims <= MAX_DIMS:
            return f"times have {dims} coordinates, of at most {MAX_DIMS}"
        if row["kind"] == "operator" and who in self._scopes:
            return f"{named} is no scope, and has an edge in it"
        if known not in (None, (row["kind"], address, dims)) or self._at.get(address, who) != who:
            return f"{named} at {list(address)} contradicts what was made before"
        self._made[who] = (row["kind"], address, dims)
        self._at[address] = who
        return None


def _check(path: Path, schema: pa.Schema) -> None:
    """Checks that a file's columns are the columns of this version's logs."""
    columns = [(field.name, str(field.type)) for field in schema]
    required = [field.name for field in schema if not field.nullable]
    if columns == list(_COLUMNS.items()) and not required:
        return
    said = f"{str(path)!r} is no log of this version of pointstamp: "
    missing = sorted(_COLUMNS.keys() - set(schema.names))
    other = next((column for column in columns if _COLUMNS.get(column[0]) not in (None, column[1])), None)
    if missing:
        said += f"it has no column {missing[0]!r}"
    elif other:
        said += f"the column {other[0]!r} is of {other[1]}, and not of {_COLUMNS[other[0]]}"
    elif required:
        said += f"the column {required[0]!r} is not nullable"
    else:
        said += "it has more columns, or they are in another order"
    raise CodecError(f"{said}; its columns are {', '.join(schema.names) or 'none'}")


def _check_events(batch: pa.RecordBatch) -> None:
    """Checks that the events of a batch have the columns of their kinds.

    Raises:
        ValueError: If one lacks something.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in _COLUMNS:
        column = batch.column(name)
        if name in ("time", "address") and column.flatten().null_count:
            raise ValueError(f"a {name} lacks a number")
        if not column.null_count:
            continue
        lacking = pc.filter(batch.column("kind"), pc.is_null(column))
        kinds = pa.array([kind for kind, needed in _NEEDED.items() if name in needed], pa.string())
        found = lacking if name in _ALWAYS else pc.filter(lacking, pc.is_in(lacking, value_set=kinds))
        if len(found):
            raise ValueError(f"an event of the kind {found[0].as_py()!r} has no {name!r}")
    lengths = pc.list_value_length(batch.column("address"))
    if pc.any(pc.equal(lengths, 0)).as_py():
        raise ValueError("an address is empty")
