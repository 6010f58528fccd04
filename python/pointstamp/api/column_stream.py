"""The part of `ArrowStream` that its groups of methods share: the output, the schema, and adding nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from pointstamp import _core
    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.api.scope import Scope
    from pointstamp.plan.node import Kind, Node, Read

__all__ = ["ColumnStream"]


class ColumnStream:
    """A stream of columns without its operators.

    Where the rows are at the times of one of their columns, its output is made as `Form.MIXED`: windows, and
    expressions before them, read batches of mixed times, and any other operator finds each row at its time.
    """

    __slots__ = ("_output", "scope")

    scope: Scope
    _output: Output

    def __init__(self, scope: Scope, output: Output) -> None:
        self.scope = scope
        self._output = output

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches."""
        return self._columns.to_pyarrow()

    def __repr__(self) -> str:
        return f"<ArrowStream of {', '.join(self.schema.names)} in {self.scope!r}>"

    @property
    def _columns(self) -> _core.Schema:
        """The schema of the batches, as the extension knows it."""
        assert self._output.schema is not None
        return self._output.schema

    @property
    def _mixed(self) -> Read:
        """The rows as they travel: in batches of mixed times where they are at event times."""
        return self._output.read_as(self._output.form)

    def _of(self, output: Output) -> ArrowStream:
        """A stream of an output that is in the same scope."""
        stream: Any = type(self)(self.scope, output)
        return stream  # type: ignore[no-any-return]

    def _add(self, kind: Kind, output: Output, *, name: str | None, **arguments: Any) -> ArrowStream:
        """Adds a node that reads this stream, and makes another of columns."""
        return self._of(self.scope._append(kind, [self._output], output, name=name, **arguments).output)

    def _add_in_time(self, kind: Kind, sides: list[Read], output: Output, **arguments: Any) -> ArrowStream:
        """Adds a node that reads rows in batches of mixed times."""
        node: Node = self.scope._append(kind, sides, output, **arguments)
        return self._of(node.output)

    def _map_each(
        self,
        kind: Kind,
        function: Callable[[Any], Any],
        schema: _core.Schema,
        *,
        name: str | None,
        changes: Iterable[str] = (),
    ) -> ArrowStream:
        """Each batch through a function that leaves rows at their times.

        `changes` are the columns whose values it may change.
        """
        output, column = self._output, self._output.time_column
        keeps = column is not None and column not in changes and column in schema.to_pyarrow().names
        if keeps and output.form is Form.MIXED:
            made = Output(Form.MIXED, schema, time_column=column)
            return self._add_in_time(kind, [self._mixed], made, name=name, function=function)
        made = Output(Form.COLUMNS, schema, time_type=output.time_type)
        return self._add(kind, made, name=name, function=function)
