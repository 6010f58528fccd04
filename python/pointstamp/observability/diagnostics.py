"""Passes messages of the engine on to `logging`, for debugging.

Its loggers are below ``pointstamp``, named for the module: ``pointstamp.engine.cluster``, for example. The
engine keeps messages at the level that ``pointstamp`` has when a computation begins, or above; messages below
it cost nothing. Workers pass them on before their next step, and `execute` at its end. No thread of the
engine waits for the interpreter.
"""

from __future__ import annotations

from pointstamp import _core

__all__ = ["keep", "pass_on"]

ROOT = "pointstamp"


def keep() -> None:
    """Begins to keep messages at the loggers' levels."""
    import logging  # needed by a computation, not by `import pointstamp`

    level = logging.getLogger(ROOT).getEffectiveLevel()
    if logging.root.manager.disable >= level:
        level = logging.root.manager.disable + 1
    _core.keep_diagnostics(max(0, min(level, 255)))


def pass_on() -> None:
    """Passes the kept messages to `logging`."""
    import logging

    texts, lost = _core.take_diagnostics()
    for level, place, text in texts:
        logging.getLogger(_logger(place)).log(level, "%s", text)
    if lost:
        logging.getLogger(ROOT).warning("%d more diagnostics were not kept", lost)


def _logger(place: str) -> str:
    """The name of the logger of a module of Rust.

    >>> _logger("pointstamp_engine::cluster")
    'pointstamp.engine.cluster'
    """
    crate, *path = place.split("::")
    return ".".join([ROOT, crate.removeprefix("pointstamp_"), *path])
