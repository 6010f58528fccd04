"""The order of joins: what is in FROM and WHERE, put together step by step.

Conditions on one table filter it before it is joined. A relation that is likely to have few rows, because a
column of it equals a constant, and that equalities connect with one other relation alone, is joined with that
one first. Then the relations that equalities connect are joined, first those that the text names first. A
condition is applied as soon as all columns that it reads are there.
Relations that no equality connects are multiplied where one of them has one row, and refused otherwise.

Cost: a step arranges the result of the one before, so the state is in the size of the intermediate results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp.queries.conditions import is_of_few, tables_of
from pointstamp.queries.parsing import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from sqlglot import exp

    from pointstamp._core import Expr
    from pointstamp.queries.relations import Relation
    from pointstamp.queries.scalars import Scalars

    Needed: TypeAlias = "Callable[[list[exp.Expr]], set[str]]"

__all__ = ["Unit", "equalities", "together"]


class Unit:
    """A relation that is to be joined.

    Attributes:
        relation: The relation.
        tables: The tables that its columns are of.
        place: Its place in the text.
        few: Whether it is likely to have few of its tables' rows; see `is_of_few`.
    """

    __slots__ = ("few", "place", "relation", "tables")

    def __init__(self, relation: Relation, tables: set[str], place: exp.Expr, *, few: bool = False) -> None:
        self.relation, self.tables, self.place, self.few = relation, tables, place, few


def equality(
    condition: exp.Expr, left: set[str], right: set[str], scalars: Scalars
) -> tuple[Expr, Expr] | None:
    """The sides of an equality, of which the first reads the left tables; None for another condition."""
    from sqlglot import exp

    if not isinstance(condition, exp.EQ):
        return None
    a, b = condition.this, condition.expression
    read = tables_of(a), tables_of(b)
    if not all(read):
        return None
    if read[0] <= left and read[1] <= right:
        return scalars.of(a), scalars.of(b)
    if read[1] <= left and read[0] <= right:
        return scalars.of(b), scalars.of(a)
    return None


def equalities(
    conditions: list[exp.Expr], left: set[str], right: set[str], scalars: Scalars
) -> list[tuple[Expr, Expr]]:
    """The sides of the equalities between left and right tables, which it removes from the list."""
    pairs = []
    for condition in [*conditions]:
        pair = equality(condition, left, right, scalars)
        if pair is not None:
            pairs.append(pair)
            conditions.remove(condition)
    return pairs


def filtered(unit: Unit, conditions: list[exp.Expr], scalars: Scalars) -> Unit:
    """Applies the conditions whose tables a unit has, and removes them from the list."""
    relation, few = unit.relation, unit.few
    for condition in [*conditions]:
        if tables_of(condition) <= unit.tables:
            conditions.remove(condition)
            relation = relation.where(scalars.of(condition))
            few = few or (len(tables_of(condition)) == 1 and is_of_few(condition))
    return Unit(relation, unit.tables, unit.place, few=few)


def _pruned(unit: Unit, conditions: list[exp.Expr], needed: Needed) -> Unit:
    """A unit with the columns that conditions or later parts of the query read: one at least."""
    names = needed(conditions)
    kept = [name for name in unit.relation.names if name in names] or unit.relation.names[:1]
    return Unit(unit.relation.only(kept), unit.tables, unit.place, few=unit.few)


def together(units: Sequence[Unit], conditions: list[exp.Expr], scalars: Scalars, needed: Needed) -> Unit:
    """Joins units, and applies conditions, which it removes from the list.

    Args:
        units: The units.
        conditions: Those of all units.
        scalars: The translation of conditions.
        needed: Returns the columns that some conditions and later parts of the query read. Others are left
            out as soon as no condition reads them: a row of numbers alone takes less memory and time.

    Raises:
        GraphError: If no equality connects two units of more rows than one.
    """
    left = [filtered(unit, conditions, scalars) for unit in units]
    left = [_pruned(unit, conditions, needed) for unit in left]
    left = _reduced_by_few(left, conditions, scalars, needed)
    made = left.pop(0)
    while left:
        step = _by_equality(made, left, conditions, scalars) or _by_one_row(made, left)
        if step is None:
            # Perhaps equalities connect the others first, and a third unit connects them with this one.
            later = _connected(left, conditions, scalars)
            if later is None:
                unit = left[0]
                refuse(
                    unit.place,
                    f"no equality connects {', '.join(sorted(unit.tables))} with "
                    f"{', '.join(sorted(made.tables))}: a join needs one, such as a.key = b.key, or a "
                    "side of one row",
                )
            left.remove(later)
            left.append(made)
            made = later
            continue
        unit, relation = step
        left.remove(unit)
        joined = Unit(relation, made.tables | unit.tables, made.place)
        made = _pruned(filtered(joined, conditions, scalars), conditions, needed)
    return made


def _reduced_by_few(
    units: list[Unit], conditions: list[exp.Expr], scalars: Scalars, needed: Needed
) -> list[Unit]:
    """Joins each unit of few rows that equalities connect with one other unit alone with that unit.

    So a table of millions is joined with the suppliers of one nation, and not with all suppliers, and then
    with the nation: the results between, which are arranged, have few rows. Of several such units one comes
    first whose other unit is arranged by the equal columns already, and then those at the end of the text,
    where small tables are.
    """
    left = list(units)
    while len(left) > 2:
        found = []
        for index, unit in enumerate(left):
            if not unit.few or unit.relation.single:
                continue
            pairs = {
                at: _pairs(other, unit, conditions, scalars)
                for at, other in enumerate(left)
                if other is not unit
            }
            others = [at for at, equal in pairs.items() if equal]
            if len(others) == 1:
                [at] = others
                is_new = not left[at].relation.is_keyed([mine for mine, _ in pairs[at]])
                found.append((is_new, -at, index))
        if not found:
            break
        _, place, index = min(found)
        target, unit = left[-place], left[index]
        relation = target.relation.join(
            unit.relation, equalities(conditions, target.tables, unit.tables, scalars)
        )
        joined = Unit(relation, target.tables | unit.tables, target.place, few=True)
        left[-place] = _pruned(filtered(joined, conditions, scalars), conditions, needed)
        del left[index]
    return left


def _pairs(a: Unit, b: Unit, conditions: list[exp.Expr], scalars: Scalars) -> list[tuple[Expr, Expr]]:
    """The sides of the equalities between two units."""
    return equalities([*conditions], a.tables, b.tables, scalars)


def _by_equality(
    made: Unit, left: list[Unit], conditions: list[exp.Expr], scalars: Scalars
) -> tuple[Unit, Relation] | None:
    """The first unit that equalities connect with another one, and their join."""
    for unit in left:
        pairs = equalities(conditions, made.tables, unit.tables, scalars)
        if pairs:
            return unit, made.relation.join(unit.relation, pairs)
    return None


def _by_one_row(made: Unit, left: list[Unit]) -> tuple[Unit, Relation] | None:
    """A unit that is multiplied with another one, because one of them has one row."""
    for unit in left:
        if unit.relation.single or made.relation.single:
            return unit, made.relation.times(unit.relation)
    return None


def _connected(units: list[Unit], conditions: list[exp.Expr], scalars: Scalars) -> Unit | None:
    """A unit that an equality connects with another one."""
    for unit in units:
        for other in units:
            if unit is not other and _pairs(unit, other, conditions, scalars):
                return unit
    return None
