"""The types of `typed.py` for type checkers."""

from collections.abc import Callable, Iterable
from typing import Any, Concatenate, Literal, TypeAlias, TypeVar, overload

import pyarrow as pa

from pointstamp._core import Capability, FrontieredInput, InputPort, OutputPort
from pointstamp.api.arrow_stream import ArrowStream
from pointstamp.api.custom_operators import CustomOperators
from pointstamp.api.stream import Stream
from pointstamp.info import OperatorInfo
from pointstamp.logic.declared_state import Declared
from pointstamp.logic.notify import Notificator
from pointstamp.logic.vertex import Vertex
from pointstamp.pacts import Pact
from pointstamp.types import Time

__all__ = ["ColumnOperators", "RecordOperators"]

T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")
L = TypeVar("L")

Build: TypeAlias = Callable[[Capability, OperatorInfo], L]

class RecordOperators(CustomOperators[T]):
    @overload  # type: ignore[override]  # CustomOperators says which calls there are
    def unary(
        self,
        pact: Pact,
        name: str,
        build: Build[Callable[[InputPort[T], OutputPort[U]], None]],
        *,
        state: Declared = ...,
    ) -> Stream[U]: ...
    @overload
    def unary(
        self,
        pact: Pact,
        name: str,
        build: Build[Callable[[InputPort[T], OutputPort[Any]], None]],
        *,
        schema: pa.Schema,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload  # type: ignore[override]  # CustomOperators says which calls there are
    def unary_frontier(
        self,
        pact: Pact,
        name: str,
        build: Build[Callable[[FrontieredInput[T], OutputPort[U]], None]],
        *,
        state: Declared = ...,
    ) -> Stream[U]: ...
    @overload
    def unary_frontier(
        self,
        pact: Pact,
        name: str,
        build: Callable[[Capability, OperatorInfo], Callable[[FrontieredInput[T], OutputPort[Any]], None]],
        *,
        schema: pa.Schema,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload  # type: ignore[override]  # CustomOperators says which calls there are
    def unary_notify(
        self,
        pact: Pact,
        name: str,
        init: Iterable[Time],
        logic: Callable[Concatenate[FrontieredInput[T], OutputPort[U], Notificator, ...], None],
        *,
        state: Declared = ...,
    ) -> Stream[U]: ...
    @overload
    def unary_notify(
        self,
        pact: Pact,
        name: str,
        init: Iterable[Time],
        logic: Callable[Concatenate[FrontieredInput[T], OutputPort[Any], Notificator, ...], None],
        *,
        schema: pa.Schema,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload  # type: ignore[override]  # CustomOperators says which calls there are
    def vertex(
        self,
        vertex: Callable[[], Vertex],
        *,
        pact: Pact | None = None,
        name: str | None = None,
        state: Literal["none"] | None = ...,
    ) -> Stream[Any]: ...
    @overload
    def vertex(
        self,
        vertex: Callable[[], Vertex],
        *,
        pact: Pact | None = None,
        name: str | None = None,
        schema: pa.Schema,
        state: Literal["none"] | None = ...,
    ) -> ArrowStream: ...
    @overload  # type: ignore[override]  # CustomOperators says which calls there are
    def binary(
        self,
        other: CustomOperators[V],
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo], Callable[[InputPort[T], InputPort[V], OutputPort[U]], None]
        ],
        *,
        state: Declared = ...,
    ) -> Stream[U]: ...
    @overload
    def binary(
        self,
        other: CustomOperators[V],
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo], Callable[[InputPort[T], InputPort[V], OutputPort[Any]], None]
        ],
        *,
        schema: pa.Schema,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload  # type: ignore[override]  # CustomOperators says which calls there are
    def binary_frontier(
        self,
        other: CustomOperators[V],
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo],
            Callable[[FrontieredInput[T], FrontieredInput[V], OutputPort[U]], None],
        ],
        *,
        state: Declared = ...,
    ) -> Stream[U]: ...
    @overload
    def binary_frontier(
        self,
        other: CustomOperators[V],
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo],
            Callable[[FrontieredInput[T], FrontieredInput[V], OutputPort[Any]], None],
        ],
        *,
        schema: pa.Schema,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload  # type: ignore[override]  # CustomOperators says which calls there are
    def binary_notify(
        self,
        other: CustomOperators[V],
        pact1: Pact,
        pact2: Pact,
        name: str,
        init: Iterable[Time],
        logic: Callable[
            Concatenate[FrontieredInput[T], FrontieredInput[V], OutputPort[U], Notificator, ...], None
        ],
        *,
        state: Declared = ...,
    ) -> Stream[U]: ...
    @overload
    def binary_notify(
        self,
        other: CustomOperators[V],
        pact1: Pact,
        pact2: Pact,
        name: str,
        init: Iterable[Time],
        logic: Callable[
            Concatenate[FrontieredInput[T], FrontieredInput[V], OutputPort[Any], Notificator, ...], None
        ],
        *,
        schema: pa.Schema,
        state: Declared = ...,
    ) -> ArrowStream: ...

class ColumnOperators(CustomOperators[pa.RecordBatch]):
    @overload  # type: ignore[override]  # CustomOperators says which calls there are
    def unary(
        self,
        pact: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo], Callable[[InputPort[pa.RecordBatch], OutputPort[Any]], None]
        ],
        *,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload
    def unary(
        self,
        pact: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo], Callable[[InputPort[pa.RecordBatch], OutputPort[U]], None]
        ],
        *,
        schema: None,
        state: Declared = ...,
    ) -> Stream[U]: ...
    @overload
    def unary(
        self,
        pact: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo], Callable[[InputPort[pa.RecordBatch], OutputPort[Any]], None]
        ],
        *,
        schema: pa.Schema,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload  # type: ignore[override]  # CustomOperators says which calls there are
    def unary_frontier(
        self,
        pact: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo], Callable[[FrontieredInput[pa.RecordBatch], OutputPort[Any]], None]
        ],
        *,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload
    def unary_frontier(
        self,
        pact: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo], Callable[[FrontieredInput[pa.RecordBatch], OutputPort[U]], None]
        ],
        *,
        schema: None,
        state: Declared = ...,
    ) -> Stream[U]: ...
    @overload
    def unary_frontier(
        self,
        pact: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo], Callable[[FrontieredInput[pa.RecordBatch], OutputPort[Any]], None]
        ],
        *,
        schema: pa.Schema,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload  # type: ignore[override]  # CustomOperators says which calls there are
    def unary_notify(
        self,
        pact: Pact,
        name: str,
        init: Iterable[Time],
        logic: Callable[
            Concatenate[FrontieredInput[pa.RecordBatch], OutputPort[Any], Notificator, ...], None
        ],
        *,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload
    def unary_notify(
        self,
        pact: Pact,
        name: str,
        init: Iterable[Time],
        logic: Callable[Concatenate[FrontieredInput[pa.RecordBatch], OutputPort[U], Notificator, ...], None],
        *,
        schema: None,
        state: Declared = ...,
    ) -> Stream[U]: ...
    @overload
    def unary_notify(
        self,
        pact: Pact,
        name: str,
        init: Iterable[Time],
        logic: Callable[
            Concatenate[FrontieredInput[pa.RecordBatch], OutputPort[Any], Notificator, ...], None
        ],
        *,
        schema: pa.Schema,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload  # type: ignore[override]  # CustomOperators says which calls there are
    def vertex(
        self,
        vertex: Callable[[], Vertex],
        *,
        pact: Pact | None = None,
        name: str | None = None,
        state: Literal["none"] | None = ...,
    ) -> ArrowStream: ...
    @overload
    def vertex(
        self,
        vertex: Callable[[], Vertex],
        *,
        pact: Pact | None = None,
        name: str | None = None,
        schema: None,
        state: Literal["none"] | None = ...,
    ) -> Stream[Any]: ...
    @overload
    def vertex(
        self,
        vertex: Callable[[], Vertex],
        *,
        pact: Pact | None = None,
        name: str | None = None,
        schema: pa.Schema,
        state: Literal["none"] | None = ...,
    ) -> ArrowStream: ...
    @overload  # type: ignore[override]  # CustomOperators says which calls there are
    def binary(
        self,
        other: CustomOperators[V],
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo],
            Callable[[InputPort[pa.RecordBatch], InputPort[V], OutputPort[Any]], None],
        ],
        *,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload
    def binary(
        self,
        other: CustomOperators[V],
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo],
            Callable[[InputPort[pa.RecordBatch], InputPort[V], OutputPort[U]], None],
        ],
        *,
        schema: None,
        state: Declared = ...,
    ) -> Stream[U]: ...
    @overload
    def binary(
        self,
        other: CustomOperators[V],
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo],
            Callable[[InputPort[pa.RecordBatch], InputPort[V], OutputPort[Any]], None],
        ],
        *,
        schema: pa.Schema,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload  # type: ignore[override]  # CustomOperators says which calls there are
    def binary_frontier(
        self,
        other: CustomOperators[V],
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo],
            Callable[[FrontieredInput[pa.RecordBatch], FrontieredInput[V], OutputPort[Any]], None],
        ],
        *,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload
    def binary_frontier(
        self,
        other: CustomOperators[V],
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo],
            Callable[[FrontieredInput[pa.RecordBatch], FrontieredInput[V], OutputPort[U]], None],
        ],
        *,
        schema: None,
        state: Declared = ...,
    ) -> Stream[U]: ...
    @overload
    def binary_frontier(
        self,
        other: CustomOperators[V],
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: Callable[
            [Capability, OperatorInfo],
            Callable[[FrontieredInput[pa.RecordBatch], FrontieredInput[V], OutputPort[Any]], None],
        ],
        *,
        schema: pa.Schema,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload  # type: ignore[override]  # CustomOperators says which calls there are
    def binary_notify(
        self,
        other: CustomOperators[V],
        pact1: Pact,
        pact2: Pact,
        name: str,
        init: Iterable[Time],
        logic: Callable[
            Concatenate[
                FrontieredInput[pa.RecordBatch], FrontieredInput[V], OutputPort[Any], Notificator, ...
            ],
            None,
        ],
        *,
        state: Declared = ...,
    ) -> ArrowStream: ...
    @overload
    def binary_notify(
        self,
        other: CustomOperators[V],
        pact1: Pact,
        pact2: Pact,
        name: str,
        init: Iterable[Time],
        logic: Callable[
            Concatenate[FrontieredInput[pa.RecordBatch], FrontieredInput[V], OutputPort[U], Notificator, ...],
            None,
        ],
        *,
        schema: None,
        state: Declared = ...,
    ) -> Stream[U]: ...
    @overload
    def binary_notify(
        self,
        other: CustomOperators[V],
        pact1: Pact,
        pact2: Pact,
        name: str,
        init: Iterable[Time],
        logic: Callable[
            Concatenate[
                FrontieredInput[pa.RecordBatch], FrontieredInput[V], OutputPort[Any], Notificator, ...
            ],
            None,
        ],
        *,
        schema: pa.Schema,
        state: Declared = ...,
    ) -> ArrowStream: ...
