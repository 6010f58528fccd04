"""Places in a query's text for errors of expressions, which know their columns and not the text.

An error of an expression has the expression in its message. So each expression that is made of a part of the
text is noted with the part, and the longest expression in a message is that of the part to name.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pointstamp.errors import GraphError
from pointstamp.queries.parsing import DIALECT, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

__all__ = ["at", "note", "placed"]

_noted: ContextVar[list[tuple[Any, exp.Expr]]] = ContextVar("expressions of a query")

PLACED = "SQL, "
"""The beginning of a message that has a place."""


def note(expr: Any, node: exp.Expr) -> None:
    """Notes the part of a query that an expression is made of."""
    _noted.get([]).append((expr, node))


@contextmanager
def at(node: exp.Expr) -> Iterator[None]:
    """Adds the place of a part of the text to errors of the block that have none.

    Raises:
        GraphError: The error of the block, with the place.
    """
    try:
        yield
    except GraphError as error:
        message = str(error)
        if message.startswith(PLACED):
            raise
        refuse(node, _as_written(message))


@contextmanager
def placed() -> Iterator[None]:
    """Adds the place in the text to errors of expressions that the block notes.

    Raises:
        GraphError: The error of the block, with the place, and the expression as the text has it.
    """
    token = _noted.set([])
    try:
        yield
    except GraphError as error:
        message = str(error)
        if message.startswith(PLACED):
            raise
        found = max(
            ((repr(expr), node) for expr, node in _noted.get() if repr(expr) in message),
            key=lambda one: len(one[0]),
            default=None,
        )
        if found is None:
            raise
        text, node = found
        refuse(node, _as_written(message.replace(text, node.sql(DIALECT, comments=False).replace('"', ""))))
    finally:
        _noted.reset(token)


def _as_written(message: str) -> str:
    """A message with the names of columns as the text has them."""
    return re.sub(r'col\("([^"]*)"\)', r"\1", message)
