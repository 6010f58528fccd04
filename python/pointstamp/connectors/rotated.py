"""Finds the file that followed a rotated one: after several rotations, the others are beside the newest.

Rotation renames the old file to a name that begins with its name, and ends with a number by which all older
ones are counted up (`log.1` is the last), or with a date (`log-20260102`).
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from pointstamp.errors import PointstampError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["beside", "successor"]

_COUNTED = re.compile(r"(?s)(.*\.)([1-9][0-9]{0,5})")

_DATED = re.compile(r"(?s).*[0-9]{4}.*[0-9]{2}.*[0-9]{2}.*")


def beside(path: Path) -> Iterator[Path]:
    """Returns the files beside a file whose names begin with its name."""
    for other in sorted(path.parent.iterdir()):
        if other != path and other.name.startswith(path.name) and other.is_file():
            yield other


def successor(path: Path, old: os.stat_result) -> Path:
    """Returns the file after one that had this name: the present one, unless it was rotated, too.

    Args:
        path: The name.
        old: Which file it was.

    Raises:
        PointstampError: If one in between is there in another form: it was compressed.
    """
    names = list(beside(path))
    own = next((name for name in names if _is(name, old)), None)
    if own is None:
        return path  # nothing says when it was rotated
    suffix = own.name[len(path.name) :]
    counted = _COUNTED.fullmatch(suffix)
    if counted is not None and counted[2] != "1":
        between = path.with_name(f"{path.name}{counted[1]}{int(counted[2]) - 1}")
        if _is_later(between, old):
            return between
        for name in names:
            if name.name.startswith(f"{between.name}.") and _is_later(name, old):
                raise PointstampError(
                    f"{path} was rotated more than once, and what came after {own} is in {name}, which is "
                    f"not read: unpack it as {between}. Compress no file that may not have been read yet"
                )
    elif counted is None and _DATED.fullmatch(suffix):
        form = _form(own)
        for name in names:
            if name.name > own.name and _form(name) == form and _is_later(name, old):
                return name
    return path


def _form(name: Path) -> str:
    return re.sub("[0-9]", "0", name.name)


def _is(name: Path, file: os.stat_result) -> bool:
    with suppress(OSError):
        return os.path.samestat(name.stat(), file)
    return False


def _is_later(name: Path, file: os.stat_result) -> bool:
    """Whether a file was written to after another: files that are counted upwards are older."""
    with suppress(OSError):
        return name.stat().st_mtime_ns >= file.st_mtime_ns
    return False
