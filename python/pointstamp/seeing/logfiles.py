"""The files of a log, one for each worker: which they are, and what is whole in them.

A file is an Arrow stream that a program may have been killed over. It is read batch by batch, each is checked
before it is used, and what comes after the first that is not whole is left out.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pointstamp._errors import PointstampError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

__all__ = ["batches_of", "files_of", "path_of"]

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
"""The columns without which an event of a kind says nothing; those of other kinds need none."""

_ALWAYS = ("at", "worker", "kind")
"""The columns that every event has."""

_log = logging.getLogger("pointstamp.seeing.log")


def path_of(folder: Path, worker: int) -> Path:
    """The file of a worker."""
    return folder / f"worker-{worker}.arrows"


def files_of(folder: Path) -> list[tuple[Path, int]]:
    """The files in a folder that are logs by their names, with the numbers of their workers, in order."""
    named = [(path, _NAME.fullmatch(path.name)) for path in folder.glob("worker-*.arrows")]
    return sorted(((path, int(name[1])) for path, name in named if name), key=lambda file: file[1])


def batches_of(path: Path) -> Iterator[pa.RecordBatch]:
    """The batches of a file as far as it is whole; what is missing is said to `logging`.

    Raises:
        PointstampError: If it cannot be read, or is no log.
    """
    import pyarrow as pa

    begin = _ends(path)[0]
    if not _BEGIN.startswith(begin[:4]):
        raise PointstampError(f"{str(path)!r} is no log of pointstamp: it is not an Arrow stream")
    count = events = 0
    problem = None
    try:
        with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
            _check(path, reader.schema)
            for batch in reader:
                batch.validate(full=True)  # before it is looked into
                _check_events(batch)
                count, events = count + 1, events + batch.num_rows
                yield batch
    except PointstampError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:  # names that are no text, too
        problem = str(error).splitlines()[0] if str(error) else type(error).__name__
    if problem is None and _ends(path)[1] != _END:
        problem = "it has no end"
    if problem is not None:
        _log.warning(
            "the log %r is not whole: the program was killed while it wrote, or still runs, or the file was "
            "damaged. %d batches of %d events before that are read (%s)",
            *(str(path), count, events, problem),
        )


def _ends(path: Path) -> tuple[bytes, bytes]:
    """The first and the last bytes of a file."""
    try:
        with path.open("rb") as file:
            begin = file.read(len(_END))
            file.seek(max(0, file.seek(0, 2) - len(_END)))
            return begin, file.read(len(_END))
    except OSError as error:
        raise PointstampError(f"the log {str(path)!r} cannot be read: {error}") from error


def _check(path: Path, schema: pa.Schema) -> None:
    """Checks that a file's columns are those of a log of this version."""
    columns = [(field.name, str(field.type)) for field in schema]
    if columns == list(_COLUMNS.items()):
        return
    said = f"{str(path)!r} is no log of this version of pointstamp: "
    missing = sorted(_COLUMNS.keys() - set(schema.names))
    other = next((column for column in columns if _COLUMNS.get(column[0]) not in (None, column[1])), None)
    if missing:
        said += f"it has no column {missing[0]!r}"
    elif other:
        said += f"the column {other[0]!r} is of {other[1]}, and not of {_COLUMNS[other[0]]}"
    else:
        said += "it has more columns, or they are in another order"
    raise PointstampError(f"{said}; its columns are {', '.join(schema.names) or 'none'}")


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
