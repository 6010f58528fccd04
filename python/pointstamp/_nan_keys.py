"""Makes one of several keys that do not equal themselves: the first of them stands for the others.

Owns `first_alike`, which the extension module asks for keys that hold a NaN and are neither floats nor tuples
of them. Two are alike if they are of one type and have one stable hash; where a type has none, if they are
pickled alike.
"""

from __future__ import annotations

import pickle
from threading import RLock
from typing import Any
from weakref import WeakValueDictionary

from pointstamp._core import stable_hash

__all__ = ["first_alike"]

_lock = RLock()  # reentrant: while it is held, the collector may run code of the program's
_first: WeakValueDictionary[tuple[type, int | bytes], Any] = WeakValueDictionary()
_unforgettable: dict[tuple[type, int | bytes], Any] = {}
"""Values of types without weak references, such as `Decimal`: one for each key with a NaN, for good."""


def first_alike(key: Any) -> Any:
    """Returns the representative of keys like this one that are in use, or else the key itself."""
    try:
        parts: int | bytes = stable_hash(key)
    except TypeError:
        try:
            parts = pickle.dumps(key)
        except Exception:  # whatever its own methods raise
            return key
    alike = type(key), parts
    with _lock:
        try:
            return _first.setdefault(alike, key)
        except TypeError:
            return _unforgettable.setdefault(alike, key)
