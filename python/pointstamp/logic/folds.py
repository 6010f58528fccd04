"""Checks of the results of the functions of folding operators, where a mistake would pass for a result.

They run for each record, so that nothing is formatted, or looked up for a message, before a value is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["no_pair", "no_state", "outputs_of"]


def no_state(operator: str, fold: Callable[..., Any]) -> str:
    """Says that a fold returned None in place of the new state."""
    return (
        f"the fold of {operator}, {_name(fold)}, returned None: it must return the new state, also where it "
        "has changed the old one in place"
    )


def no_pair(operator: str, fold: Callable[..., Any], returned: Any) -> str:
    """Says that a function returned no pair of the new state and a result."""
    return f"{_function(operator, fold)} must return (state, result), and returned {returned!r:.100}"


def outputs_of(
    returned: Any, fold: Callable[..., Any], operator: str = "state_machine"
) -> tuple[Any, Iterable[Any]]:
    """The new state and the outputs that the function of an operator returned.

    Raises:
        TypeError: If it is no such pair, or the outputs are one record and not an iterable of records.
    """
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise TypeError(
            f"{_function(operator, fold)} must return (state, outputs), and returned {returned!r}"
        )
    state, outputs = returned
    if isinstance(outputs, (str, bytes, dict)) or (isinstance(outputs, tuple) and outputs):
        raise TypeError(
            f"{_function(operator, fold)} returned {outputs!r} as its outputs, which are an iterable of "
            f"records: return (state, [{outputs!r}]) for one record, or a list of several"
        )
    if not hasattr(outputs, "__iter__"):
        raise TypeError(
            f"{_function(operator, fold)} returned {outputs!r} as its outputs: return a list of records"
        )
    return state, outputs


def _function(operator: str, fold: Callable[..., Any]) -> str:
    return f"the function of {operator}, {_name(fold)},"


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))
