"""Pickles of operators' state, in which capabilities are references.

A module of its own, so that importing the package imports no pickle.
"""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

from pointstamp._core import Capability, Piece
from pointstamp.errors import CheckpointError

if TYPE_CHECKING:
    from pointstamp.logic.declared_state import Restored

__all__ = ["dumps", "loads"]


def loads(written: Piece, restored: Restored) -> Any:
    """Reads a pickle of `dumps`; capabilities are those that the operator held."""
    return _Unpickler(io.BytesIO(written.read()), restored).load()


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, restored: Restored) -> None:
        super().__init__(file)
        self._restored = restored

    def persistent_load(self, pid: tuple[int, Any]) -> Capability:
        return self._restored.capability(*pid)


def dumps(name: str, contents: Any) -> Piece:
    """Pickles the state of an operator, which may hold capabilities.

    Raises:
        CheckpointError: If something in it cannot be pickled.
    """
    file = io.BytesIO()
    try:
        _Pickler(file, 5).dump(contents)
    except Exception as error:
        raise CheckpointError(
            f"the state of operator '{name}' cannot be pickled: {type(error).__name__}: {error}. Keep plain "
            "data, or give the operator a snapshot() that returns some"
        ) from error
    return Piece(file.getvalue())


class _Pickler(pickle.Pickler):
    """Pickles capabilities as references. It is asked for each object: about as much as pickling it."""

    def persistent_id(self, obj: Any) -> tuple[int, Any] | None:
        return (obj._output, obj.time) if type(obj) is Capability else None
