"""Operators of collections that stop after a few updates, wherever their work can be stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pointstamp import _core


@contextmanager
def fuel_of(updates: int) -> Iterator[None]:
    """Within it an activation works on so many updates, in every worker of the process."""
    usual = _core.set_collections_fuel(updates)
    try:
        yield
    finally:
        _core.set_collections_fuel(usual)
