"""The budget of memory of a process, where its configuration has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp import _core
from pointstamp.runtime.checkpoints import place_of

if TYPE_CHECKING:
    from pointstamp.config import Config

__all__ = ["budget_of"]


def budget_of(config: Config) -> _core.Budget | None:
    """Makes the budget of a configuration; None where memory is not bounded.

    Raises:
        ConfigError: If no files can be made in the folder for state that memory has no room for.
    """
    return None if config.memory is None else _core.Budget(config.memory, _folder(config))


def _folder(config: Config) -> str:
    """Returns the folder of the files: they have no names there, and are gone with the process."""
    if config.spill is not None:
        return config.spill
    if (place := place_of(config)) is not None:
        return str(place)
    import tempfile  # not where the folder is given

    return tempfile.gettempdir()
