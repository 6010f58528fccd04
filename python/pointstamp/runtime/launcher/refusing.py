"""Refusals before the program's function is called: a sentence, in place of a traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pointstamp.errors import ConfigError

__all__ = ["is_refusal"]

_OURS = ("pointstamp", "contextlib")


def is_refusal(error: ConfigError) -> bool:
    """Whether an error comes from the command's own options, and not out of the program."""
    frames = error.__traceback__
    while frames is not None:
        module = str(frames.tb_frame.f_globals.get("__name__"))
        if module != "__main__" and module.partition(".")[0] not in _OURS:
            return False
        if module == "__main__" and frames.tb_frame.f_globals.get("__package__") != "pointstamp":
            return False
        frames = frames.tb_next
    return True
