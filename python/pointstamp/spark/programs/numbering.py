"""Nodes of any type as numbers, from which their workers follow.

The worker that a node's hash chooses is its owner, and gives it a number: `number % peers` is the owner, and
`number // peers` the node's place among the owner's. The state of the owner's nodes is then in arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from pointstamp.pacts import Exchange, Pipeline
from pointstamp.spark.programs.encoding import encoded
from pointstamp.spark.programs.gathering import column, gathered, pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pointstamp as ps
    from pointstamp.spark.programs.gathering import Array, Batches

__all__ = ["EDGES", "WEIGHTED", "Numbered", "names_of", "numbered"]

EDGES = pa.schema([("src", pa.int64()), ("dst", pa.int64())])
WEIGHTED = EDGES.append(pa.field("weight", pa.float64()))

_CODED = WEIGHTED
_REPLIES = pa.schema(
    [("worker", pa.int64()), ("code", pa.int64()), ("node", pa.int64()), ("ends", pa.int64())]
)


class Numbered(NamedTuple):
    """A graph whose nodes are numbers.

    Attributes:
        edges: Its edges, as they lay: `EDGES` or `WEIGHTED`.
        names: The nodes ``(node, name)``, on the workers that own them.
    """

    edges: ps.ArrowStream
    names: ps.ArrowStream


def numbered(
    edges: ps.ArrowStream,
    node: pa.DataType,
    *,
    weighed: Callable[[Batches], Array] | None = None,
    more: pa.Array | None = None,
    by_degree: bool = False,
) -> Numbered:
    """Numbers the nodes of edges ``(src, dst)``.

    Args:
        edges: The edges. Rows without a ``dst`` are nodes that are there also without an edge.
        node: The type of nodes.
        weighed: Returns the weights of the edges of some batches. Left out, edges have none.
        more: Nodes that are there also without an edge.
        by_degree: Turns each edge so that it leads from the node with fewer edges to the one with more; at
            equal degrees, from the lesser number. Leaves out edges from a node to itself.
    """
    scope = edges.scope
    seen = pa.schema([("name", node), ("worker", pa.int64()), ("code", pa.int64()), ("ends", pa.int64())])
    named = pa.schema([("node", pa.int64()), ("name", node)])

    def encode(info: ps.OperatorInfo, batches: Batches) -> list[Iterator[pa.RecordBatch]]:
        alone = [more] if more is not None and info.index == 0 else []
        alone += [batch["src"].filter(batch["dst"].is_null()).cast(node) for batch in batches]
        batches = [batch.filter(batch["dst"].is_valid()) for batch in batches]
        columns = [[batch[end].cast(node) for batch in batches] for end in ("src", "dst")]
        columns.append(alone)
        values, (source, target, _) = encoded(columns, node)
        ends = np.bincount(source, minlength=len(values)) + np.bincount(target, minlength=len(values))
        workers = np.full(len(values), info.index)
        weights = np.zeros(len(source)) if weighed is None else weighed(batches)
        return [
            pieces(seen, values, workers, np.arange(len(values)), ends),
            pieces(_CODED, source, target, weights),
        ]

    def number(info: ps.OperatorInfo, batches: Batches) -> list[Iterator[pa.RecordBatch]]:
        values, [codes] = encoded([[batch["name"] for batch in batches]], node)
        ends = np.zeros(len(values), np.int64)
        np.add.at(ends, codes, column(batches, "ends"))
        numbers = np.arange(len(values)) * info.peers + info.index
        replies = pieces(
            _REPLIES, column(batches, "worker"), column(batches, "code"), numbers[codes], ends[codes]
        )
        return [replies, pieces(named, numbers, values)]

    def translate(_: ps.OperatorInfo, coded: Batches, replies: Batches) -> list[Iterator[pa.RecordBatch]]:
        code = column(replies, "code")
        numbers, ends = np.empty(len(code), np.int64), np.empty(len(code), np.int64)
        numbers[code], ends[code] = column(replies, "node"), column(replies, "ends")
        source, target = column(coded, "src"), column(coded, "dst")
        if by_degree:
            between = source != target
            source, target = source[between], target[between]
            ours, theirs = ends[source], ends[target]
            source, target = numbers[source], numbers[target]
            turned = (theirs < ours) | ((theirs == ours) & (target < source))
            return [pieces(EDGES, np.where(turned, target, source), np.where(turned, source, target))]
        if weighed is None:
            return [pieces(EDGES, numbers[source], numbers[target])]
        weights = column(coded, "weight", np.float64)
        return [pieces(WEIGHTED, numbers[source], numbers[target], weights)]

    nodes, coded = gathered(scope, "distinct nodes", [(edges, Pipeline())], [seen, _CODED], encode)
    replies, names = gathered(scope, "number nodes", [(nodes, Exchange("name"))], [_REPLIES, named], number)
    [result] = gathered(
        scope,
        "numbered edges",
        [(coded, Pipeline()), (replies, Exchange("worker"))],
        [EDGES if weighed is None else WEIGHTED],
        translate,
    )
    return Numbered(result, names)


def names_of(names: ps.ArrowStream, rows: ps.ArrowStream, columns: list[str]) -> ps.ArrowStream:
    """Replaces the numbers in some columns by the names of the nodes.

    Args:
        names: The nodes, on the workers that own them.
        rows: Rows of columns of numbers of nodes.
        columns: The columns to replace.
    """
    scope = rows.scope
    kind = names.schema.field("name").type
    for name in columns:
        place = rows.schema.get_field_index(name)
        schema = rows.schema.set(place, pa.field(name, kind))

        def replace(
            info: ps.OperatorInfo, named: Batches, rows: Batches, place: int = place, schema: Any = schema
        ) -> list[Iterator[pa.RecordBatch]]:
            values = pa.chunked_array([batch["name"] for batch in named], kind).combine_chunks()
            return [
                (
                    pa.RecordBatch.from_arrays(
                        [
                            values.take(pa.array(column.to_numpy() // info.peers)) if n == place else column
                            for n, column in enumerate(batch.columns)
                        ],
                        schema=schema,
                    )
                    for batch in rows
                )
            ]

        [rows] = gathered(
            scope, f"names of {name}", [(names, Pipeline()), (rows, Exchange(name))], [schema], replace
        )
    return rows
