"""Packages that a connector needs and the package itself does not: imported when they are used."""

from __future__ import annotations

import importlib
from typing import Any


def needed(module: str, what: str, package: str, extra: str) -> Any:
    """A module of a package that an extra installs.

    Raises:
        ImportError: If it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{what} needs the package {package}: pip install 'pointstamp[{extra}]'") from error
