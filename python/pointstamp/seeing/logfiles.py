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
"""What an Arrow stream begins with."""

_END = b"\xff\xff\xff\xff\0\0\0\0"
"""What one ends with."""

_COLUMNS = frozenset({"at", "worker", "kind", "dataflow", "operator", "node", "output", "address", "name"})
"""Those by which a log is known."""

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
                batch.validate(full=True)  # before anybody looks into it
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
    missing = sorted(_COLUMNS.difference(schema.names))
    if missing:
        raise PointstampError(
            f"{str(path)!r} is no log of this version of pointstamp: it has no column {missing[0]!r}; its "
            f"columns are {', '.join(schema.names) or 'none'}"
        )
