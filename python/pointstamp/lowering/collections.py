"""Rules of nodes over collections, and conversions between arrangements and other forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._core import Reduction
from pointstamp.lowering.rules import converts, makes, rule
from pointstamp.plan import collections
from pointstamp.plan.node import Form

if TYPE_CHECKING:
    from pointstamp.lowering.building import Building
    from pointstamp.plan.node import Node, Output

__all__: list[str] = []

_TOTALS = frozenset([Reduction.DISTINCT, Reduction.COUNT, Reduction.COUNT_BY_KEY])
"""Reductions to a function of a count, which needs no arrangement of results where times are ordered."""


# ------------------------------------------------------------ record by record


@rule(collections.PROJECT)
def project(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Applies an expression to each record."""
    return _core.project(stream, node["fields"], node.title)


@rule(collections.FILTER_FIELDS)
def filter_fields(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Keeps the records of which a condition is true."""
    return _core.filter_fields(stream, node["condition"], node.title)


@rule(collections.CHECK_PAIRS)
def check_pairs(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Raises an error for a record that is no pair."""
    return _core.check_pairs(stream, node["expected"], node.kind.name)


@rule(collections.NEGATE)
def negate(_building: Building, _node: Node, stream: _core.Stream) -> _core.Stream:
    """Negates counts."""
    return _core.negate(stream)


@rule(collections.ACCUMULATE)
def accumulate(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Makes records whose diffs are sums and counts of the values of each key."""
    return _core.accumulate(stream, node["key"], node["values"], node.title)


@rule(collections.HASHED)
def hashed(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Puts a hash in front of each record."""
    return _core.hashed(stream, node["range"], node.kind.name)


@rule(collections.BY_MAGNITUDE)
def by_magnitude(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Moves records to later turns of a loop."""
    return _core.by_magnitude(stream, node["number"], node.kind.name)


@rule(collections.CONSOLIDATE)
def consolidate(_building: Building, _node: Node, stream: _core.Stream) -> _core.Stream:
    """Adds up the updates of each time."""
    return _core.consolidate(stream)


@rule(collections.UPDATES)
def updates(_building: Building, _node: Node, stream: _core.Stream) -> _core.Stream:
    """Makes records of updates."""
    return _core.to_updates(stream)


# ------------------------------------------------------------ columns


@rule(collections.SELECT)
def select(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Computes columns of columns."""
    before = node.inputs[0].output.schema
    assert before is not None
    fields = node["fields"]
    return _core.select_columns(stream, before, list(fields), list(fields.values()))


@rule(collections.RENAME, collections.TO_RECORDS)
def rename(_building: Building, _node: Node, stream: _core.Stream) -> _core.Stream:
    """Leaves rows as they are: columns have names in schemas only, and a row is a tuple."""
    return stream


@rule(collections.FILTER_COLUMNS)
def filter_columns(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Keeps the rows of which a condition on the columns is true."""
    schema = node.output.schema
    assert schema is not None
    return _core.filter_columns(stream, schema, node["condition"])


@rule(collections.COLUMN_UPDATES)
def column_updates(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Makes record batches of updates."""
    before = node.inputs[0].output.schema
    assert before is not None
    return _core.column_updates(stream, before)


# ------------------------------------------------------------ arrangements


@converts(Form.UPDATES, Form.BY_KEY)
def by_key(building: Building, _output: Output, stream: _core.Stream) -> _core.Arrangement:
    """Arranges pairs by key."""
    return _core.arrange(stream, True, _name_of_arranging(building))


@converts(Form.UPDATES, Form.BY_RECORD)
def by_record(building: Building, _output: Output, stream: _core.Stream) -> _core.Arrangement:
    """Arranges records by themselves."""
    return _core.arrange(stream, False, _name_of_arranging(building))


def _name_of_arranging(building: Building) -> str:
    """The name of the operator that arranges, with its first reader as a prefix: ``join: arrange``."""
    own = collections.ARRANGE.name
    return own if building.title in ("", own) else f"{building.title}: {own}"


@rule(collections.ARRANGE)
def arrange(_building: Building, node: Node, arrangement: _core.Arrangement) -> _core.Arrangement:
    """Shows an arrangement to the program, which may read its trace."""
    node["arranged"]._bind(arrangement)
    return arrangement


@rule(collections.ARRANGED_UPDATES)
def arranged_updates(_building: Building, _node: Node, arrangement: _core.Arrangement) -> _core.Stream:
    """Makes updates of an arrangement."""
    return _core.arrangement_updates(arrangement)


@rule(collections.JOIN)
def join(_building: Building, node: Node, left: _core.Arrangement, right: _core.Arrangement) -> _core.Stream:
    """Joins the values of each key in two arrangements."""
    return _core.join_arranged(left, right, node["result"], node["function"], node.kind.name)


@makes(*collections.REDUCTIONS)
def reduction(building: Building, node: Node, form: Form) -> Any:
    """Reduces an arrangement to another one, or, where nothing reads that, to updates at once."""
    output, kind = node.output, node["reduction"]
    if form is output.form:
        arrangement = building.taken(node.inputs[0])
        return _core.reduce_arranged(arrangement, kind, node["argument"], node.kind.name)
    if form is not Form.UPDATES:
        return None
    if kind in _TOTALS and node.scope.dims == 1 and output.form not in building.wants(output):
        return _core.total_updates(building.taken(node.inputs[0]), kind, node.kind.name)
    return _core.arrangement_updates(building.take(output, output.form))


# ------------------------------------------------------------ loops


@rule(collections.SET)
def set_variable(_building: Building, node: Node, stream: _core.Stream) -> None:
    """Closes the loop of a variable."""
    assert node.closes is not None
    node.closes["loop"].set(stream)
