"""The kinds of joins: the values of `how=`, with the same meaning for records and for columns."""

from __future__ import annotations

from typing import Any, Literal, get_args

__all__ = ["How", "OneSided", "check_how", "check_join", "left_or_inner", "one_sided", "outer_sides"]

How = Literal["inner", "left", "right", "full"]
"""Joins whose results are pairs: of records with a match, and of records without one and None."""

OneSided = Literal["semi", "anti"]
"""Joins whose results are records of the left side: those with a match, or those without."""


_ALL = (*get_args(How), *get_args(OneSided))


def check_how(how: Any, kinds: tuple[str, ...] = _ALL) -> None:
    """Refuses a join that is none of some kinds.

    Raises:
        ValueError: If it is none of them.
    """
    if how not in kinds:
        raise ValueError(f"how is one of {', '.join(map(repr, kinds))}, not {how!r}")


def check_join(how: Any, fn: Any) -> None:
    """Refuses a join of an unknown kind, and a function of pairs for a join that makes none.

    Raises:
        ValueError: If `how` is no kind of join.
        TypeError: If there is a function, and no pairs.
    """
    check_how(how)
    if one_sided(how) and fn is not None:
        raise TypeError(f"a join with how={how!r} makes no pairs for fn: leave fn out, and map the result")


def one_sided(how: str) -> bool:
    """Whether a join's results are records of the left side alone."""
    return how in get_args(OneSided)


def outer_sides(how: str) -> tuple[bool, bool]:
    """Whether the left and the right side's records come also where they match nothing.

    Raises:
        ValueError: If `how` is no kind of join whose results are pairs.
    """
    check_how(how, get_args(How))
    return how in {"left", "full"}, how in {"right", "full"}


def left_or_inner(join: str, how: str) -> bool:
    """Whether the left side's records come also where they match nothing, of a join that looks things up.

    Raises:
        ValueError: If it is neither ``"left"`` nor ``"inner"``.
    """
    if how not in {"left", "inner"}:
        raise ValueError(
            f"{join} looks up a record of the right side for each of the left: how is 'left' or 'inner', not "
            f"{how!r}. interval_join and joins of windows have the other kinds"
        )
    return how == "left"
