"""A program's function on its way to the processes that `execute(main, processes=)` starts.

A function that another interpreter can import travels as its name. One that it cannot (it is defined in the
program that runs, in a notebook, at the prompt, or inside another function) travels as its code, with the
objects that it refers to; `cloudpickle` packs it. The processes do not run the program again, so that it
needs no ``if __name__ == "__main__":``. Instead the classes and functions of ``__main__`` go along, under
their names: records of such classes are pickled by name when they move between the processes.
"""

from __future__ import annotations

import pickle
import sys
import types
from typing import TYPE_CHECKING, Any

from pointstamp._unpicklable import unpicklable
from pointstamp.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["pack", "unpack"]

_MAIN = "__main__"


def pack(main: Callable[..., Any]) -> tuple[bytes, dict[str, bytes]]:
    """Returns the function as bytes, and the objects of ``__main__`` that it may need, by name.

    Raises:
        ConfigError: If it cannot be packed, or cloudpickle is needed and not installed.
    """
    if _is_importable(main):
        return pickle.dumps(main), {}
    try:
        import cloudpickle
    except ImportError:
        raise ConfigError(
            f"{_name(main)} is defined where other processes cannot import it, and cloudpickle, which packs "
            "such functions, is not installed: pip install cloudpickle, or define the function in a module"
        ) from None
    try:
        packed: bytes = cloudpickle.dumps(main)
    except Exception as error:
        found = unpicklable(main, cloudpickle.dumps) or "something that it refers to"
        raise ConfigError(
            f"{_name(main)} cannot be sent to other processes, because of {found}: {error}. Make files, "
            "locks and connections inside the function: each process then has its own"
        ) from error
    named = {}
    for name, value in list(vars(sys.modules[_MAIN]).items()):
        if isinstance(value, (type, types.FunctionType)) and value.__module__ == _MAIN and value is not main:
            try:
                named[name] = cloudpickle.dumps(value)
            except Exception:  # nothing that `main` refers to: that was packed above
                continue
    return packed, named


def unpack(packed: bytes, named: dict[str, bytes], *, replaces: bool = True) -> Callable[..., Any]:
    """The function, in a process that was started for it.

    Args:
        packed: The function.
        named: What of ``__main__`` it may need, by name.
        replaces: Whether that takes the place of what ``__main__`` has under such a name.
    """
    module = sys.modules[_MAIN]
    for name, value in named.items():
        if not replaces and hasattr(module, name):
            continue
        try:
            setattr(module, name, pickle.loads(value))
        except Exception:  # it refers to a module that is not here, and may never be asked for
            continue
    main: Callable[..., Any] = pickle.loads(packed)
    return main


def _is_importable(main: Callable[..., Any]) -> bool:
    """Whether another interpreter finds the function, and all that it is made of, by name."""
    try:
        names = _Names()
        names.dump(main)
    except Exception:
        return False
    return not names.of_main


class _Names(pickle.Pickler):
    """Pickles to nowhere, and notes whether anything refers to ``__main__``."""

    def __init__(self) -> None:
        super().__init__(self)
        self.of_main = False

    def write(self, data: Any) -> int:
        return len(data)

    def reducer_override(self, value: Any) -> Any:
        named = isinstance(value, (type, types.FunctionType))
        self.of_main = self.of_main or (value if named else type(value)).__module__ == _MAIN
        return NotImplemented


def _name(main: Callable[..., Any]) -> str:
    return getattr(main, "__qualname__", None) or repr(main)
