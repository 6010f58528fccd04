"""The table of rules by which nodes become operators.

A rule is a function of a `Building`, a node and the node's inputs as objects of the extension; it returns an
object for each output. Each family of kinds has a module, which is imported when the first node of the family
is lowered: programs over records do not import the rules of columns.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from pointstamp.plan.node import Form, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["conversion", "converts", "makes", "rule", "rules_of"]

F = TypeVar("F", bound="Callable[..., Any]")

_RULES: dict[Kind, Callable[..., Any]] = {}
_MAKERS: dict[Kind, Callable[..., Any]] = {}
_FOUND: dict[Kind, tuple[Callable[..., Any], Callable[..., Any] | None]] = {}
_CONVERSIONS: dict[tuple[Form, Form], Callable[..., Any]] = {}
_FAMILIES = {
    Form.TIMED: "records",
    Form.MIXED: "columns",
    Form.UPDATES: "collections",
    Form.BY_KEY: "collections",
    Form.BY_RECORD: "collections",
}
"""The module with the conversions of each form."""


def rule(*kinds: Kind) -> Callable[[F], F]:
    """Registers the rule of some kinds: ``rule(building, node, *inputs)``."""

    def register(function: F) -> F:
        for kind in kinds:
            _RULES[kind] = function
        return function

    return register


def makes(*kinds: Kind) -> Callable[[F], F]:
    """Registers the rule by which kinds make their output in several forms: ``make(building, node, form)``.

    It returns None for a form that it does not make: the output is converted to that from its plain form.
    """

    def register(function: F) -> F:
        for kind in kinds:
            _MAKERS[kind] = function
        return function

    return register


def converts(found: Form, wanted: Form) -> Callable[[F], F]:
    """Registers the conversion of an output to another form: ``convert(building, output, made)``."""

    def register(function: F) -> F:
        _CONVERSIONS[found, wanted] = function
        return function

    return register


def rules_of(kind: Kind) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """Returns the rule of a kind, and the function by which it makes its output in several forms.

    One of the two is there: a kind has a rule, or makes forms.
    """
    found = _FOUND.get(kind)
    if found is None:
        # Also where the kind has a rule already: another thread may still import the rest of the module. An
        # import waits for that.
        import_module(f"pointstamp.lowering.{kind.family}")
        found = _FOUND[kind] = _RULES.get(kind, _no_rule), _MAKERS.get(kind)
    return found


def _no_rule(*_: Any) -> None:
    raise AssertionError("a kind that makes forms has no rule")


def conversion(found: Form, wanted: Form) -> Callable[..., Any]:
    """The conversion from one form to another."""
    import_module(f"pointstamp.lowering.{_FAMILIES[found]}")  # waits where another thread imports it
    return _CONVERSIONS[found, wanted]
