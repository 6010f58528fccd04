"""The secret of a user's own clusters on one host, where a configuration names none.

It keeps other users of the host out. A file that only its owner can read holds it; the first cluster that
needs it makes it, and processes that start together agree on one, because a file appears with its contents or
not at all.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from pathlib import Path

from pointstamp.errors import ConfigError

__all__ = ["path_of_secret", "user_secret"]

_LENGTH = 32
"""Random bytes of the secret; the file has them as hexadecimal digits."""


def path_of_secret() -> Path:
    """Returns the path of the file: under ``XDG_DATA_HOME``, by default ``~/.local/share``."""
    home = os.environ.get("XDG_DATA_HOME", "")
    # The specification says to ignore a relative one.
    base = Path(home) if os.path.isabs(home) else Path.home() / ".local" / "share"
    return base / "pointstamp" / "secret"


def user_secret() -> bytes:
    """The secret in the user's file, which is made if there is none.

    Raises:
        ConfigError: If the file cannot be read or made, others can read it, or it is not one of ours.
    """
    path = path_of_secret()
    try:
        return _read(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _unusable(f"cannot be read: {error}", path) from error
    try:
        _make(path)
        return _read(path)
    except OSError as error:
        raise _unusable(f"cannot be made: {error}", path) from error


def _read(path: Path) -> bytes:
    # Checked through the open descriptor, so that the checked file is the one that is read.
    with open(path, "rb", opener=_no_link) as file:
        status = os.fstat(file.fileno())
        if os.name == "posix":
            mode = stat.S_IMODE(status.st_mode)
            if status.st_uid != os.geteuid():
                raise _unusable("belongs to another user", path)
            if mode & 0o077:
                raise _unusable(
                    f"can be read by other users (mode {mode:03o}): delete it, or chmod 600", path
                )
        contents = file.read(4 * _LENGTH).strip()
    try:
        secret = bytes.fromhex(contents.decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) != _LENGTH:
        raise _unusable(f"does not hold {_LENGTH} bytes as hexadecimal digits: delete it", path)
    return secret


def _no_link(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0))


def _make(path: Path) -> None:
    """Makes the file, whole; where another process was faster, its file stays."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".secret-", dir=path.parent)  # mode 600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(_LENGTH) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            pass
    finally:
        os.unlink(temporary)


def _unusable(why: str, path: Path) -> ConfigError:
    return ConfigError(
        f"{path}, which holds the secret of clusters that name none, {why}; "
        "or pass secret= in the configuration"
    )
