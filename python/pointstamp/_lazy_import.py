"""Names of a package that are imported when a program first asks for them.

Owns `later`, which makes the `__getattr__` of such a package (PEP 562). Type checkers read the imports of the
package under `TYPE_CHECKING`, which have to name the same. The first use of a name imports its module; from
then on it is an attribute of the package like any other.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["later"]


def later(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns the function that gives a package's names that are not there yet.

    Args:
        package: Its own name.
        names: The module that has each name; for a module of the package, that module itself.
    """

    def get(name: str) -> Any:
        if name not in names:
            known = sys.modules[package]
            raise AttributeError(f"module '{package}' has no attribute '{name}'", name=name, obj=known)
        module = import_module(names[name])
        value = module if module.__name__ == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get
