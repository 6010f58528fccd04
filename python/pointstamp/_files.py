"""Opening files to write, where another user may have put something else into their place.

Owns the rule that every writer of the package follows: it never writes through a link, and only to plain
files with one name. In a folder that others can write to, such as ``/tmp``, a link may have been put there so
that the program overwrites its target.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["make_durable", "make_folder", "open_plain", "written_whole"]


def open_plain(path: str | os.PathLike[str], *, empty: bool = True) -> BinaryIO:
    """Opens a file to write, which is made where it is missing, without a buffer.

    Args:
        path: Of the file. Links in the folders that lead to it are followed; a link in its own place is not.
        empty: Whether the file is truncated. If not, the caller does that, once it has locked the file.

    Raises:
        OSError: If there is a link, a folder, a pipe or a device, a file with another name besides, or the
            file cannot be opened.
    """
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        if not hasattr(os, "O_NOFOLLOW") and os.path.islink(path):
            raise _refused(path, "a symbolic link")
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP and os.path.islink(path):
            raise _refused(path, "a symbolic link") from None
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise _refused(path, "no plain file")
        if status.st_nlink > 1:
            raise _refused(path, "a file that has another name, too")
        if empty:
            os.ftruncate(descriptor, 0)
        return open(descriptor, "wb", buffering=0)
    except BaseException:
        os.close(descriptor)
        raise


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Creates a file that replaces the one under its name, or a link there, when the block has ended.

    Where the block raises, nothing is left.

    Raises:
        OSError: If the folder is missing or cannot be written to.
    """
    target = Path(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:100]}-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        if os.name == "posix":
            mask = os.umask(0o077)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def make_folder(path: str | os.PathLike[str]) -> None:
    """Makes a folder, where it is missing, that the program's own files lie in.

    Raises:
        OSError: If there is a link in its place, or it cannot be made.
    """
    os.makedirs(path, exist_ok=True)
    if os.path.islink(path):
        raise _refused(path, "a symbolic link")


def _refused(path: str | os.PathLike[str], what: str) -> OSError:
    return OSError(
        errno.ELOOP,
        f"It is {what}, which is not written to: name the file itself, or remove it",
        os.fspath(path),
    )


def make_durable(path: str | os.PathLike[str]) -> None:
    """Has a file, or the names in a folder, outlive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
