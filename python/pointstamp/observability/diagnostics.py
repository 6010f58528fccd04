"""Passes messages of the engine on to `logging`: for people who look for a fault.

Its loggers are below ``pointstamp``, named for the place: ``pointstamp.engine.cluster``, say. The engine
keeps what is at the level that ``pointstamp`` has when a computation begins, or above; below it nothing is
done. Workers pass it on before their next step, and `execute` at its end. No thread of the engine waits for
the interpreter.
"""

from __future__ import annotations

from pointstamp import _core

__all__ = ["keep", "pass_on"]

ROOT = "pointstamp"


def keep() -> None:
    """Keeps what the loggers want, from now on."""
    import logging  # needed by a computation, not by `import pointstamp`

    level = logging.getLogger(ROOT).getEffectiveLevel()
    if logging.root.manager.disable >= level:
        level = logging.root.manager.disable + 1
    _core.keep_diagnostics(max(0, min(level, 255)))


def pass_on() -> None:
    """Gives `logging` what was kept."""
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
