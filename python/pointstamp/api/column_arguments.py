"""Arguments that name columns: keys, and pairs of a column and a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["aggregations_of", "key_names", "part_name"]


def key_names(by: str | Sequence[str]) -> list[str]:
    """The names of a key's columns.

    Raises:
        TypeError: If it is something else, such as a function.
    """
    if callable(by):
        raise TypeError("a key of columns is the name of a column, or several, not a function: add a column")
    if not isinstance(by, str) and not hasattr(by, "__iter__"):
        raise TypeError(f"a key is the name of a column, or several, not {by!r}")
    given = [by] if isinstance(by, str) else list(by)
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"a key is the name of a column, or several, not {name!r}")
    return given


def aggregations_of(given: Any, call: str = "aggregate") -> list[tuple[str, str]]:
    """Pairs of a column and a function.

    Args:
        given: The pairs.
        call: The method that takes them.

    Raises:
        TypeError: If it is something else; for one pair that is not in a list, it says so.
    """

    def is_pair(item: Any) -> bool:
        return isinstance(item, tuple | list) and len(item) == 2 and all(isinstance(x, str) for x in item)

    if is_pair(given):
        raise TypeError(f"{call} takes a list of pairs, and this is one pair: write [{tuple(given)!r}]")
    if isinstance(given, dict):
        pairs = [(column, function) for column, function in given.items() if isinstance(function, str)]
        cure = f": write {pairs!r}" if pairs else ""
        raise TypeError(f"{call} takes pairs such as [('price', 'sum')], not a dict{cure}")
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise TypeError(f"{call} takes pairs such as [('price', 'sum')], not {given!r}")
    pairs = list(given)
    for item in pairs:
        if not is_pair(item):
            raise TypeError(f"{call} takes pairs (column, function) such as ('price', 'sum'), not {item!r}")
    return [(column, function) for column, function in pairs]


def part_name(name: str | None, part: str) -> str | None:
    """The name of a part of what a program has called by a name; None where it has not."""
    return None if name is None else f"{name}: {part}"
