"""Streams: the records that flow from one operator to the next, with every operator as a method."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from pointstamp._nan_order import key_function
from pointstamp._validation import count_of, function_of, probe_of, program_line, several, stream_given
from pointstamp.api.classes import collection_of, stream_of
from pointstamp.api.typed import RecordOperators
from pointstamp.errors import GraphError
from pointstamp.logic.accumulate import accumulate, combined
from pointstamp.logic.aggregate import aggregate
from pointstamp.logic.join_kinds import check_join
from pointstamp.logic.planned import single_output
from pointstamp.logic.reclock import Held, reclock
from pointstamp.logic.records_of_a_time import add_counts, count_here, distinct
from pointstamp.logic.state_machine import state_machine
from pointstamp.logic.timed import OVER_COLUMNS, map_timed
from pointstamp.logic.to_arrow import to_arrow
from pointstamp.pacts import Broadcast, ByKey, ByRecord, Exchange, Gather, Pipeline, pact_of
from pointstamp.plan import records, shape
from pointstamp.plan.least_time import IN_RECORDS, never_meet
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterable, Iterator
    from datetime import timedelta

    import pyarrow as pa

    from pointstamp._core import ProbeHandle
    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.api.collection import Collection
    from pointstamp.api.keyed_stream import KeyedStream
    from pointstamp.api.loops import LoopHandle
    from pointstamp.api.scope import Scope
    from pointstamp.api.windowed_stream import WindowedStream
    from pointstamp.expr.windows import WindowKind
    from pointstamp.logic.declared_state import Waiting
    from pointstamp.logic.join_kinds import How, OneSided
    from pointstamp.logic.state import KeyedState
    from pointstamp.pacts import Pact
    from pointstamp.plan.node import Kind
    from pointstamp.types import Time

__all__ = ["Stream"]

T = TypeVar("T")
U = TypeVar("U")
K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


class Stream(RecordOperators[T]):
    """A stream of Python records. Every method adds a node to the dataflow's plan.

    Functions over records that follow one another (`map`, `filter`, `inspect`, ...) run as one operator, a
    batch at a time. A function that raises ends the computation: `execute` raises its exception.

    Attributes:
        scope: The scope that the stream is in.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     words = scope.to_stream(["to", "be", "or", "not"])
        ...     return words.filter(lambda word: "o" in word).map(str.upper).capture()
        >>> ps.example(build).extract()
        [(0, ['NOT', 'OR', 'TO'])]
    """

    __slots__ = ("_output", "scope")

    _output: Output

    def __init__(self, scope: Scope, output: Output) -> None:
        self.scope = scope
        self._output = output

    def __repr__(self) -> str:
        return f"<Stream in {self.scope!r}>"

    def _stage(
        self, kind: Kind, function: Callable[..., Any], name: str | None, parts: int = 1
    ) -> list[Stream[Any]]:
        function = function_of(kind.name, function)
        if self._output.form is Form.TIMED and kind.stage in OVER_COLUMNS:
            over_columns = OVER_COLUMNS[kind.stage](function)
            return [Stream(self.scope, map_timed(self.scope, self._output, over_columns, name or kind.name))]
        outputs = [Output(Form.RECORDS) for _ in range(parts)]
        self.scope._append(kind, [self._output], *outputs, name=name, function=function)
        return [Stream(self.scope, output) for output in outputs]

    def _one(self, kind: Kind, name: str | None, **arguments: Any) -> Stream[Any]:
        """Adds a node with one input and one output, of records."""
        node = self.scope._append(kind, [self._output], Output(Form.RECORDS), name=name, **arguments)
        return Stream(self.scope, node.output)

    def _forward(
        self, kind: Kind, pact: Pact, *, name: str | None = None, form: Form = Form.RECORDS
    ) -> Stream[T]:
        """The same records in a form, moved by a pact."""
        route = pact_of(pact, self._output, name or kind.name)
        node = self.scope._append(kind, [self._output.read_as(form)], Output(form), name=name, pact=route)
        return Stream(self.scope, node.output)

    def _of_a_time(self, made: tuple[Callable[..., Any], Waiting], pact: Pact, name: str) -> Stream[Any]:
        """Adds an operator with state of each time, whose results are at the times of its records."""
        build, state = made
        inputs = [(self._output, pact)]
        output = single_output(self.scope, name, inputs, build, notify=True, keeps_times=True, state=state)
        return Stream(self.scope, output)

    # ------------------------------------------------------------ records

    def map(self, fn: Callable[[T], U], *, name: str | None = None) -> Stream[U]:
        """Each record through a function.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.to_stream([1, 2]).map(str).capture()).extract()
            [(0, ['1', '2'])]
        """
        return self._stage(records.MAP, fn, name)[0]

    def flat_map(self, fn: Callable[[T], Iterable[U]], *, name: str | None = None) -> Stream[U]:
        """Each record through a function that returns any number of records.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.to_stream(["ab", "c"]).flat_map(list).capture()).extract()
            [(0, ['a', 'b', 'c'])]
        """
        return self._stage(records.FLAT_MAP, fn, name)[0]

    def filter(self, fn: Callable[[T], bool], *, name: str | None = None) -> Stream[T]:
        """The records for which the function returns True.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.to_stream(range(6)).filter(lambda n: n % 2 == 0).capture()
            >>> ps.example(build).extract()
            [(0, [0, 2, 4])]
        """
        return self._stage(records.FILTER, fn, name)[0]

    def map_in_place(self, fn: Callable[[T], None], *, name: str | None = None) -> Stream[T]:
        """The same records, each after a function that changes it. Other readers of the stream see that.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.to_stream([[2, 1], [4, 3]]).map_in_place(list.sort).capture()
            >>> ps.example(build).extract()
            [(0, [[1, 2], [3, 4]])]
        """
        return self._stage(records.MAP_IN_PLACE, fn, name)[0]

    def map_batches(self, fn: Callable[[list[T]], Iterable[U]], *, name: str | None = None) -> Stream[U]:
        """Each batch of records through a function. Batches are of any size, as the stream carries them.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.to_stream(range(5)).map_batches(lambda numbers: [sum(numbers)]).capture()
            >>> ps.example(build).extract()
            [(0, [10])]
        """
        return self._stage(records.MAP_BATCHES, fn, name)[0]

    def try_map(
        self, fn: Callable[[T], U], *, name: str | None = None
    ) -> tuple[Stream[U], Stream[tuple[T, Exception]]]:
        """Applies a function to each record; records that raise go to the second stream, with the exception.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     numbers, failures = scope.to_stream(["1", "x"]).try_map(int)
            ...     return numbers.capture(), failures.map(lambda f: (f[0], str(f[1]))).capture()
            >>> numbers, failures = ps.example(build)
            >>> numbers.extract()
            [(0, [1])]
            >>> failures.extract()
            [(0, [('x', "invalid literal for int() with base 10: 'x'")])]
        """
        results, failures = self._stage(records.TRY_MAP, fn, name, 2)
        return several("try_map", "results, failures", (results, failures))

    def ok_err(
        self, fn: Callable[[T], tuple[bool, Any]], *, name: str | None = None
    ) -> tuple[Stream[Any], Stream[Any]]:
        """Splits by a function that returns ``(is_ok, value)``: (the values that are ok, the others).

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     verdict = lambda n: (True, n) if n >= 0 else (False, f"{n} is negative")
            ...     oks, errors = scope.to_stream([1, -2]).ok_err(verdict)
            ...     return oks.capture(), errors.capture()
            >>> [captured.extract() for captured in ps.example(build)]
            [[(0, [1])], [(0, ['-2 is negative'])]]
        """
        oks, errors = self._stage(records.OK_ERR, fn, name, 2)
        return several("ok_err", "oks, errors", (oks, errors))

    def inspect(self, fn: Callable[[T], Any], *, name: str | None = None) -> Stream[T]:
        """Calls a function with each record, and passes the records on.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.to_stream(["a", "b"]).inspect(print)) and None
            a
            b
        """
        return self._stage(records.INSPECT, fn, name)[0]

    def inspect_time(self, fn: Callable[[T, Time], Any], *, name: str | None = None) -> Stream[T]:
        """Calls a function with each record and its time, and passes the records on.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     days = scope.to_stream([3, 1]).delay(lambda day, time: day)
            ...     days.inspect_time(lambda day, time: print(time, day))
            >>> ps.example(build)
            3 3
            1 1
        """
        return self._stage(records.INSPECT_TIME, fn, name)[0]

    def inspect_batch(self, fn: Callable[[Time, list[T]], Any], *, name: str | None = None) -> Stream[T]:
        """Calls a function with the time and the records of each batch, and passes the records on.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.to_stream(["a", "b"]).inspect_batch(print)) and None
            0 ['a', 'b']
        """
        return self._stage(records.INSPECT_BATCH, fn, name)[0]

    # ------------------------------------------------------------ shape

    def concat(self, *more: Stream[T], name: str | None = None) -> Stream[T]:
        """The records of this stream and the others.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.to_stream([1, 2]).concat(scope.to_stream([3])).capture()
            >>> ps.example(build).extract()
            [(0, [1, 2, 3])]
        """
        return self.scope.concatenate([self, *more], name=name)

    def partition(
        self, parts: int, fn: Callable[[T], tuple[int, U]], *, name: str | None = None
    ) -> list[Stream[U]]:
        """Splits the stream by a function that returns ``(part, record)``.

        Args:
            parts: The number of streams to make.
            fn: Returns the part, from 0, and the record to send there.
            name: The operator's name.

        Raises:
            IndexError: When the dataflow runs, for a part that does not exist.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     parts = scope.to_stream(range(6)).partition(3, lambda n: (n % 3, n))
            ...     return [part.capture() for part in parts]
            >>> [captured.extract() for captured in ps.example(build)]
            [[(0, [0, 3])], [(0, [1, 4])], [(0, [2, 5])]]
        """
        parts = count_of("partition takes first a number of parts", parts, error=GraphError)
        return self._stage(records.PARTITION, fn, name, parts)

    def branch(
        self, fn: Callable[[Time, T], bool], *, name: str | None = None
    ) -> tuple[Stream[T], Stream[T]]:
        """Splits the stream by a function of time and record: (false, true).

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     odd, even = scope.to_stream(range(5)).branch(lambda time, n: n % 2 == 0)
            ...     return odd.capture(), even.capture()
            >>> [captured.extract() for captured in ps.example(build)]
            [[(0, [1, 3])], [(0, [0, 2, 4])]]
        """
        no, yes = self._stage(records.BRANCH, fn, name, 2)
        return several("branch", "no, yes", (no, yes))

    def branch_when(
        self, fn: Callable[[Time], bool], *, name: str | None = None
    ) -> tuple[Stream[T], Stream[T]]:
        """Splits the stream by a function of the time: (false, true).

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     days = scope.to_stream([3, 7]).delay(lambda day, time: day)
            ...     early, late = days.branch_when(lambda time: time >= 5)
            ...     return early.capture(), late.capture()
            >>> [captured.extract() for captured in ps.example(build)]
            [[(3, [3])], [(7, [7])]]
        """
        no, yes = self._stage(records.BRANCH_WHEN, fn, name, 2)
        return several("branch_when", "no, yes", (no, yes))

    # ------------------------------------------------------------ movement between workers

    def exchange(self, key: Callable[[T], Hashable], *, name: str | None = None) -> Stream[T]:
        """Moves each record to the worker that its key chooses.

        An `int` key goes to worker ``key % peers`` (its value modulo 2**64); any other key to
        ``stable_hash(key) % peers``, the same worker in every process and every run.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         numbers = scope.to_stream(range(6) if worker.index == 0 else [])
            ...         here = numbers.exchange(lambda n: n).capture()
            ...     worker.run()
            ...     return here.extract()
            >>> ps.execute(main, workers=2)
            [[(0, [0, 2, 4])], [(0, [1, 3, 5])]]
        """
        return self._forward(shape.EXCHANGE, Exchange(key), name=name, form=self._output.form)

    def broadcast(self, *, name: str | None = None) -> Stream[T]:
        """Sends each record to every worker.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words = scope.to_stream(["stop"] if worker.index == 0 else [])
            ...         here = words.broadcast().capture()
            ...     worker.run()
            ...     return here.extract()
            >>> ps.execute(main, workers=2)
            [[(0, ['stop'])], [(0, ['stop'])]]
        """
        return self._forward(shape.BROADCAST, Broadcast(), name=name)

    # ------------------------------------------------------------ timestamps

    def delay(self, fn: Callable[[T, Time], Time], *, name: str | None = None) -> Stream[T]:
        """Moves each record to a time at or after its own. Records are sent at once and wait for nothing.

        Args:
            fn: Called with a record and its time; returns the new time.
            name: The operator's name.

        Raises:
            TimeError: When the dataflow runs, for a time that is not at or after the record's.

        Examples:
            >>> import pointstamp as ps
            >>> build = lambda scope: scope.to_stream([2, 0, 2]).delay(lambda x, time: x).capture()
            >>> ps.example(build).extract()
            [(0, [0]), (2, [2, 2])]
        """
        return self._one(records.DELAY, name, function=function_of("delay", fn))

    def delay_batch(self, fn: Callable[[Time], Time], *, name: str | None = None) -> Stream[T]:
        """Moves records to a time that depends on their own time alone; as `delay`, once for each batch.

        Args:
            fn: Called with a time; returns the new time.
            name: The operator's name.

        Raises:
            TimeError: When the dataflow runs, for a time that is not at or after the one it is called with.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.to_stream([1, 2]).delay_batch(lambda time: time + 7).capture()
            >>> ps.example(build).extract()
            [(7, [1, 2])]
        """
        return self._one(records.DELAY_BATCH, name, function=function_of("delay_batch", fn))

    def reclock(self, clock: Stream[Any], *, name: str | None = None) -> Stream[T]:
        """Holds records until the clock ticks, and sends them at the time of the tick.

        A record on the clock is a tick. When its time is closed on both streams, it sends all records held of
        that time or before. Ticks count on the workers that they are on: `broadcast` the clock for all to see
        them. Records that no tick is at or after are dropped when the clock's stream ends.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     data = scope.to_stream(range(6)).delay(lambda x, time: x)
            ...     clock = scope.to_stream([2, 4]).delay(lambda x, time: x)
            ...     return data.reclock(clock).capture()
            >>> ps.example(build).extract()
            [(2, [0, 1, 2]), (4, [3, 4])]
        """
        inputs = [(self._output, Pipeline()), (stream_given("reclock", clock)._output, Pipeline())]
        # A record that is given again, without the tick that released it, would wait for another.
        held = Held()
        made = single_output(
            self.scope,
            name or "reclock",
            inputs,
            partial(reclock, held),
            notify=True,
            retains_forever=True,
            state=held,
        )
        return Stream(self.scope, made)

    # ------------------------------------------------------------ scopes and loops

    def enter(self, scope: Scope) -> Stream[T]:
        """The same records in a scope inside the stream's; the times gain coordinates, which are 0.

        Raises:
            GraphError: If `scope` is not directly inside the stream's scope.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     with scope.iterative() as inner:
            ...         return scope.to_stream([1, 2]).enter(inner).capture()
            >>> ps.example(build).extract()
            [((0, 0), [1, 2])]
        """
        return Stream(scope, scope._entered(self._output))

    def enter_at(self, scope: Scope, fn: Callable[[T], Time], *, name: str | None = None) -> Stream[T]:
        """Enters a scope as `enter`, with a function that chooses the appended coordinates of each record.

        Args:
            scope: Directly inside the stream's scope.
            fn: Called with a record; returns the appended coordinates, as a time is written: an int where the
                scope appends one.
            name: The operator's name.

        Raises:
            GraphError: If `scope` is not directly inside the stream's scope.
            TimeError: When the dataflow runs, for something that is not such coordinates.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     with scope.iterative() as inner:
            ...         return scope.to_stream([3, 1, 3]).enter_at(inner, lambda x: x).capture()
            >>> ps.example(build).extract()
            [((0, 1), [1]), ((0, 3), [3, 3])]
        """
        function = function_of("enter_at", fn)
        appended = scope.dims - self.scope.dims
        return self.enter(scope)._one(records.ENTER_AT, name, function=function, appended=appended)

    def leave(self) -> Stream[T]:
        """The same records in the scope around the stream's; the times lose the coordinates that it appended.

        Raises:
            GraphError: If the stream is in a root scope.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     with scope.iterative() as inner:
            ...         return scope.to_stream([1, 2]).enter(inner).map(str).leave().capture()
            >>> ps.example(build).extract()
            [(0, ['1', '2'])]
        """
        left = self.scope._left(self._output)
        assert self.scope.parent is not None
        return Stream(self.scope.parent, left)

    def connect_loop(self, handle: LoopHandle[T]) -> None:
        """Defines a loop variable: the records of this stream enter the loop again.

        Raises:
            GraphError: If the loop variable is connected already, or is of another scope.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     with scope.iterative() as inner:
            ...         handle, again = inner.loop_variable()
            ...         numbers = scope.to_stream([10]).enter(inner).concat(again)
            ...         numbers.map(lambda n: n // 2).filter(lambda n: n > 0).connect_loop(handle)
            ...         return numbers.leave().capture()
            >>> ps.example(build).extract()
            [(0, [1, 2, 5, 10])]
        """
        handle._connect(self.scope, self._output)

    # ------------------------------------------------------------ aggregation

    def count(self, *, name: str | None = None) -> Stream[int]:
        """Counts the records of each time, of all workers; sent on the first worker when the time closes.

        Times without records send nothing. Records are counted where they are.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.to_stream(list("abc")).count().capture()).extract()
            [(0, [3])]
        """
        return self._one(records.COUNT, name)

    def accumulate(
        self,
        default: Callable[[], U],
        fold: Callable[[U, list[T]], U],
        *,
        combine: Callable[[U, U], U] | None = None,
        name: str | None = None,
    ) -> Stream[U]:
        """The records of each time, of all workers, folded into one result; sent when the time closes.

        The records move to the first worker. With `combine` they are folded where they are, and only the
        result of each worker moves.

        Args:
            default: Makes the result to begin with.
            fold: Called with the result so far and a batch of records; returns the new result.
            combine: Called with the results of two workers; returns the result of both. None: the records
                move.
            name: The operator's name.

        Raises:
            TypeError: When the dataflow runs, if `fold` or `combine` returns None in place of a result.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     numbers = scope.to_stream(range(10))
            ...     return numbers.accumulate(int, lambda total, batch: total + sum(batch)).capture()
            >>> ps.example(build).extract()
            [(0, [45])]

            >>> from operator import add
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words = scope.to_stream(["a", "b"] if worker.index == 0 else ["c"])
            ...         sizes = words.accumulate(int, lambda n, batch: n + len(batch), combine=add).capture()
            ...     worker.run()
            ...     return sizes.extract()
            >>> ps.execute(main, workers=2)
            [[(0, [3])], []]
        """
        function_of("accumulate", default)
        function_of("accumulate", fold)
        title, read = name or "accumulate", self._output
        if combine is not None:
            function_of("accumulate", combine)
            build, state = accumulate(default, fold, combine)
            locally = [(read, Pipeline())]
            read = single_output(self.scope, f"{title}: locally", locally, build, notify=True, state=state)
            build, state = combined(default, combine)
        else:
            build, state = accumulate(default, fold)
        made = single_output(self.scope, title, [(read, Gather())], build, notify=True, state=state)
        return Stream(self.scope, made)

    @overload
    def aggregate(
        self: Stream[tuple[K, V]],
        fold: Callable[[K, V, U], U],
        emit: None = None,
        *,
        default: Callable[[], U],
        name: str | None = None,
    ) -> Stream[tuple[K, U]]: ...
    @overload
    def aggregate(
        self: Stream[tuple[K, V]],
        fold: Callable[[K, V, U], U],
        emit: Callable[[K, U], R],
        *,
        default: Callable[[], U],
        name: str | None = None,
    ) -> Stream[R]: ...
    def aggregate(
        self: Stream[tuple[K, V]],
        fold: Callable[[K, V, U], U],
        emit: Callable[[K, U], Any] | None = None,
        *,
        default: Callable[[], U],
        name: str | None = None,
    ) -> Stream[Any]:
        """Per time and key, the values folded into a state, and a record made of it when the time closes.

        The stream's records are ``(key, value)``, and are exchanged by key.

        Args:
            fold: Called with a key, a value and the key's state; returns the new state.
            emit: Called with a key and its final state; returns the record to send. None: ``(key, state)``.
            default: Makes the state of a key that has none.
            name: The operator's name.

        Raises:
            TypeError: When the dataflow runs, for a record of another form, or a key that cannot be routed;
                if `fold` returns None in place of a state.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.to_stream(["a", "bb", "cc"]).map(lambda word: (len(word), word))
            ...     return words.aggregate(lambda length, word, seen: [*seen, word], default=list).capture()
            >>> ps.example(build).extract()
            [(0, [(1, ['a']), (2, ['bb', 'cc'])])]
        """
        for function in (fold, default, *(() if emit is None else (emit,))):
            function_of("aggregate", function)
        build, state = aggregate(fold, emit, default)
        inputs = [(self._output, ByKey())]
        made = single_output(self.scope, name or "aggregate", inputs, build, notify=True, state=state)
        return Stream(self.scope, made)

    def state_machine(
        self: Stream[tuple[K, V]],
        fold: Callable[[K, V, U], tuple[U | None, Iterable[R]]],
        *,
        default: Callable[[], U],
        name: str | None = None,
    ) -> Stream[R]:
        """Keyed state that is kept across times, and changed in the order of times.

        The stream's records are ``(key, value)``, and are exchanged by key. A value is applied once its time
        is closed, after the values of all earlier times; times without a total order come in the order of
        their coordinates where they close together.

        Args:
            fold: Called with a key, a value and the key's state; returns the new state, or None to forget the
                key, and the records to send at the value's time.
            default: Makes the state of a key that has none.
            name: The operator's name.

        Raises:
            TypeError: When the dataflow runs, for a record of another form, or a key that cannot be routed.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     deposits = scope.to_stream([("ann", 5), ("bob", 2), ("ann", 3)]).delay(lambda x, _: x[1])
            ...     def deposit(name, amount, balance):
            ...         return balance + amount, [(name, balance + amount)]
            ...     return deposits.state_machine(deposit, default=int).capture()
            >>> ps.example(build).extract()
            [(2, [('bob', 2)]), (3, [('ann', 3)]), (5, [('ann', 8)])]
        """
        build, state = state_machine(
            function_of("state_machine", fold), function_of("state_machine", default)
        )
        made = single_output(
            self.scope,
            name or "state_machine",
            [(self._output, ByKey())],
            build,
            notify=True,
            retains_forever=True,
            state=state,
        )
        return Stream(self.scope, made)

    def distinct(self, *, name: str | None = None) -> Stream[T]:
        """Each record once per time, sent when it is first seen. Records are exchanged by themselves.

        Raises:
            TypeError: When the dataflow runs, for a record that cannot be hashed or routed.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.to_stream(list("banana")).distinct().capture()).extract()
            [(0, ['a', 'b', 'n'])]
        """
        # One of each record in a batch is enough to travel.
        once = self._stage(records.MAP_BATCHES, _unique, name or "distinct")[0]
        return once._of_a_time(distinct(), ByRecord(), name or "distinct")

    def value_counts(self, *, name: str | None = None) -> Stream[tuple[T, int]]:
        """Each distinct record of a time with the number of its occurrences, sent when the time closes.

        Records are counted where they are, and exchanged by themselves. No function is called for a record.

        Raises:
            TypeError: When the dataflow runs, for a record that cannot be hashed or routed.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.to_stream(list("banana")).value_counts().capture()).extract()
            [(0, [('a', 3), ('b', 1), ('n', 2)])]
        """
        name = name or "value_counts"
        here = self._of_a_time(count_here(), Pipeline(), f"{name}: here")
        return here._of_a_time(add_counts(), ByKey(), name)

    # ------------------------------------------------------------ collections

    @overload
    def to_collection(self, *, diffs: Literal[False] = False, name: str | None = None) -> Collection[T]: ...
    @overload
    def to_collection(
        self: Stream[tuple[U, int]], *, diffs: Literal[True], name: str | None = None
    ) -> Collection[U]: ...
    def to_collection(self, *, diffs: bool = False, name: str | None = None) -> Collection[Any]:
        """The records as a collection: each is there once, from its time on.

        Args:
            diffs: The records are pairs ``(record, diff)``: each adds so many of a record, or takes them
                away.
            name: The operator's name.

        Raises:
            TypeError: When the dataflow runs, for a record that a collection cannot keep, or that is no such
                pair.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     changes = scope.to_stream([("tea", 2), ("rye", 1), ("tea", -1)])
            ...     return changes.to_collection(diffs=True).capture()
            >>> ps.example(build).extract()
            [(0, [('rye', 1), ('tea', 1)])]
        """
        node = self.scope._append(
            records.TO_COLLECTION, [self._output], Output(Form.UPDATES), name=name, diffs=diffs
        )
        collection: Collection[Any] = collection_of(self.scope, node.output)
        return collection

    # ------------------------------------------------------------ observing

    def probe_with(self, handle: ProbeHandle, *, name: str | None = None) -> Stream[T]:
        """Attaches a handle, which may be attached elsewhere, too, and passes the stream on.

        Examples:
            One probe follows two streams:

            >>> import pointstamp as ps
            >>> def main(worker):
            ...     probe = ps.ProbeHandle()
            ...     with worker.dataflow() as scope:
            ...         first, words = scope.new_input()
            ...         second, numbers = scope.new_input()
            ...         words.probe_with(probe)
            ...         numbers.probe_with(probe)
            ...     first.close()
            ...     second.advance_to(4)
            ...     worker.step_while(lambda: probe.less_than(4))
            ...     return probe.frontier.elements
            >>> ps.execute(main)
            [[4]]
        """
        return Stream(self.scope, self._probed(probe_of(handle), name))

    # ------------------------------------------------------------ columns

    def to_arrow(self, schema: pa.Schema, *, name: str | None = None) -> ArrowStream:
        """The records as rows of record batches.

        Args:
            schema: The columns. A record is a `dict` with their names, or a tuple of their values, in order.
            name: The operator's name.

        Raises:
            TypeError: When the dataflow runs, for a record of another form.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> schema = pa.schema([("word", pa.string()), ("n", pa.int64())])
            >>> def build(scope):
            ...     words = scope.to_stream([("b", 1), ("a", 2), ("b", 3)]).to_arrow(schema)
            ...     return words.aggregate("word", n_sum=ps.col("n").sum()).to_records().capture()
            >>> ps.example(build).extract()
            [(0, [{'word': 'b', 'n_sum': 4}, {'word': 'a', 'n_sum': 2}])]
        """
        stream: ArrowStream = stream_of(self.scope, to_arrow(self.scope, self._output, schema, name))
        return stream

    # ------------------------------------------------------------ event time

    def event_time(
        self,
        timestamp: Callable[[T], Any],
        *,
        lateness: Any = 0,
        idle: float | None = 10.0,
        ahead: timedelta | None = None,
        name: str | None = None,
    ) -> tuple[Stream[T], Stream[T]]:
        """Moves records to their event times; returns also the stream of late records.

        The first stream's frontier is the watermark: the least, over the workers, of the latest time of a
        worker's records, minus the lateness. A record is late if its time is more than the lateness behind
        the latest of its worker's earlier records. Each record is on one of the two streams; ``late.count()``
        counts them.

        The times of the stream itself do not matter: a source may send everything at one time. A worker whose
        input has ended holds nothing up, and an idle one follows the least watermark of the others.

        Args:
            timestamp: Returns a record's time: an int that is not negative, in a unit of your own, or a
                datetime with a zone, which becomes microseconds since 1970.
            lateness: The maximum distance of a record behind the latest one; an int, or a timedelta for
                datetimes.
            idle: The seconds without a record after which a worker no longer holds the others up; None:
                never.
            ahead: For datetimes: the maximum distance of a record after now, by the machine's clock. A later
                one, such as of the year 9999, would make all later records late: it counts as late, and moves
                no watermark. None: no limit.
            name: The operator's name.

        Returns:
            The records at their times, and the late ones, at the watermark that they found.

        Raises:
            TypeError: When the dataflow runs, for something that is no time, or a datetime without a zone.
            TimeError: When the dataflow runs, for a time below 0, or before 1970.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.to_stream([("b", 5), ("a", 3), ("c", 1), ("d", 6)])
            ...     on_time, late = words.event_time(lambda word: word[1], lateness=2)
            ...     return on_time.capture(), late.capture()
            >>> on_time, late = ps.example(build)
            >>> on_time.extract()
            [(3, [('a', 3)]), (5, [('b', 5)]), (6, [('d', 6)])]
            >>> [words for _, words in late.extract()]
            [[('c', 1)]]
        """
        from pointstamp.event_time.clock import Clock, not_ahead
        from pointstamp.logic.event_time import event_times
        from pointstamp.logic.splitting import split_records

        function_of("event_time", timestamp)
        clock = Clock()
        units = clock.span("lateness", lateness)
        if units < 0:
            raise ValueError(f"lateness is at least 0, not {lateness}")
        split = split_records(timestamp, clock, not_ahead(ahead, clock.span))
        made = event_times(self.scope, self._output, split, clock, lateness=units, idle=idle, name=name)
        on_time, late = (stream_of(self.scope, output) for output in made)
        return several("event_time", "on_time, late", (on_time, late))

    @overload
    def key_by(
        self, key: Callable[[T], K], value: None = None, *, name: str | None = None
    ) -> KeyedStream[K, T]: ...
    @overload
    def key_by(
        self, key: Callable[[T], K], value: Callable[[T], V], *, name: str | None = None
    ) -> KeyedStream[K, V]: ...
    def key_by(
        self, key: Callable[[T], K], value: Callable[[T], V] | None = None, *, name: str | None = None
    ) -> KeyedStream[K, Any]:
        """Gives each record a key: windows, joins in time and state are methods of the result.

        Args:
            key: Returns a record's key: anything that `stable_hash` takes.
            value: Returns the kept part of a record; None keeps the record.
            name: The operator's name.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     bids = scope.to_stream([("pen", 3), ("cup", 5), ("pen", 4)])
            ...     by_item = bids.key_by(lambda bid: bid[0], lambda bid: bid[1])
            ...     return by_item.running("sum").capture()
            >>> ps.example(build).extract()
            [(0, [('cup', 5), ('pen', 3), ('pen', 7)])]
        """
        from pointstamp.api.keyed_stream import KeyedStream
        from pointstamp.logic.splitting import keyed_pair, with_keys

        function_of("key_by", key)
        if value is not None:
            function_of("key_by", value)
        if self.scope.dims > 1:
            pairs = self.map(keyed_pair(key, value), name=name or "key_by")
            return KeyedStream(self.scope, pairs._output)
        keyed = map_timed(self.scope, self._output, with_keys(key, value), name or "key_by")
        return KeyedStream(self.scope, keyed)

    def window(
        self, window: WindowKind, *, early: Any = None, state: KeyedState[None, Any] | None = None
    ) -> WindowedStream[None, T]:
        """All records in windows of event time, whatever their keys: results are ``(Window, result)``.

        One worker has all of them: where there are many records, `key_by` and window first, and this after.

        Args:
            window: As in `KeyedStream.window`.
            early: As in `KeyedStream.window`.
            state: As in `KeyedStream.window`; its one key is None.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.to_stream([("b", 3), ("a", 1), ("c", 12)])
            ...     on_time, late = words.event_time(lambda word: word[1], lateness=5)
            ...     return on_time.window(ps.Tumbling(10)).count().capture()
            >>> ps.example(build).extract()
            [(9, [(Window(start=0, end=10), 2)]), (19, [(Window(start=10, end=20), 1)])]
        """
        from pointstamp.api.windowed_stream import WindowedStream

        keyed = self.key_by(_no_key)
        return WindowedStream(self.scope, keyed._output, window, early=early, state=state, by_key=False)

    # ------------------------------------------------------------ calls to the outside

    def async_map(
        self,
        fn: Callable[[Any], Awaitable[Any]],
        *,
        ordered: bool = True,
        capacity: int = 100,
        timeout: float | None = None,
        retry: int = 0,
        backoff: float = 0.1,
        batch: int | None = None,
        linger: float = 0.01,
        name: str | None = None,
    ) -> tuple[Stream[Any], Stream[tuple[T, Exception]]]:
        """Calls a coroutine function for each record, many at a time; returns also records with failed calls.

        Coroutines run on one event loop for each worker, beside the dataflow. A result is sent at its
        record's time, which stays open until then. When the dataflow ends early, the calls that are out are
        cancelled.

        Args:
            fn: Called with a record; its result is awaited. With `batch` it is called with a list of records,
                and returns a list of as many results.
            ordered: Results come in the order of their records, on each worker; else as they are done.
            capacity: The number of calls in flight, on each worker. As many records again are read ahead;
                while there are so many, the sources of the computation wait, in all processes, and so does a
                program that sends with an input, once `Config.high_water` bytes have not moved. The progress
                of a call must not depend on them.
            timeout: Seconds for one attempt; None: no limit. A call that ignores its cancellation continues
                beside the others, and its result is not used.
            retry: The number of further attempts for a call that raised, or took too long.
            backoff: Seconds before the first of them; twice as long before each next.
            batch: The maximum number of records of one call; None: one record, by itself.
            linger: Seconds that records wait for others to fill a batch.
            name: The operator's name.

        Returns:
            The results, and the dead letters: each record whose last attempt failed, with its exception.

        Raises:
            TypeError: When the dataflow runs, if the result of the function cannot be awaited, or a batch's
                results are not as many as its records.

        Examples:
            >>> import asyncio
            >>> import pointstamp as ps
            >>> async def invert(n):
            ...     await asyncio.sleep(0.001)
            ...     return 1 / n
            >>> def build(scope):
            ...     inverted, failed = scope.to_stream([4, 0, 2]).async_map(invert)
            ...     return inverted.capture(), failed.map(lambda letter: letter[0]).capture()
            >>> [captured.extract() for captured in ps.example(build)]
            [[(0, [0.25, 0.5])], [(0, [0])]]
        """
        from pointstamp.logic.async_map import Terms, async_map

        if not callable(fn):
            raise TypeError(f"async_map needs a coroutine function, not {fn!r}")
        terms = Terms(
            ordered=ordered,
            capacity=capacity,
            timeout=timeout,
            retry=retry,
            backoff=backoff,
            batch=batch,
            linger=linger,
        )
        made = async_map(self.scope, self._output, fn, terms, name or "async_map")
        streams = tuple(stream_of(self.scope, output) for output in made)
        return several("async_map", "results, failed", streams)

    # ------------------------------------------------------------ per time

    @overload
    def join(
        self: Stream[tuple[K, V]],
        other: Stream[tuple[K, U]],
        fn: None = None,
        *,
        how: Literal["inner"] = "inner",
        name: str | None = None,
    ) -> Stream[tuple[K, tuple[V, U]]]: ...
    @overload
    def join(
        self: Stream[tuple[K, V]],
        other: Stream[tuple[K, U]],
        fn: None = None,
        *,
        how: How,
        name: str | None = None,
    ) -> Stream[tuple[K, tuple[V | None, U | None]]]: ...
    @overload
    def join(
        self: Stream[tuple[K, V]],
        other: Stream[tuple[K, U]],
        fn: None = None,
        *,
        how: OneSided,
        name: str | None = None,
    ) -> Stream[tuple[K, V]]: ...
    @overload
    def join(
        self: Stream[tuple[K, V]],
        other: Stream[tuple[K, U]],
        fn: Callable[[K, V, U], R],
        *,
        how: How = "inner",
        name: str | None = None,
    ) -> Stream[R]: ...
    def join(
        self: Stream[tuple[K, V]],
        other: Stream[tuple[K, U]],
        fn: Callable[[K, V, U], Any] | None = None,
        *,
        how: How | OneSided = "inner",
        name: str | None = None,
    ) -> Stream[Any]:
        """Per time, pairs of both streams' ``(key, value)`` records of one key: ``(key, (ours, theirs))``.

        Pairs are sent when the time closes. Records of different times are no pair: for events there are
        `KeyedStream.interval_join` and `table_join`, and for records that stay, `Collection.join`.

        Args:
            other: The other stream.
            fn: Called with the key and the two values; returns the result. None: ``(key, (ours, theirs))``.
            how: The sides whose records without a match are sent, with None in place of the other value: this
                stream (``"left"``), the other (``"right"``), both (``"full"``), or none (``"inner"``).
                ``"semi"`` sends this stream's records ``(key, value)`` that have a match, each once, and
                ``"anti"`` those that have none.
            name: The operator's name.

        Raises:
            ValueError: If `how` is another text.
            TypeError: If `how` is ``"semi"`` or ``"anti"`` and `fn` is given; when the dataflow runs, for a
                record that is no pair.

        Warns:
            UsageWarning: If all records of one side are at the least time, as far as the plan shows, and
                those of the other have times of their own; when the dataflow runs, for the first later record
                of an input of `main`.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     ages, towns = scope.to_stream([("ann", 7), ("bob", 9)]), scope.to_stream([("ann", "Ulm")])
            ...     return ages.join(towns).capture(), ages.join(towns, how="left").capture()
            >>> pairs, with_all_ages = ps.example(build)
            >>> pairs.extract()
            [(0, [('ann', (7, 'Ulm'))])]
            >>> with_all_ages.extract()
            [(0, [('ann', (7, 'Ulm')), ('bob', (9, None))])]
        """
        from pointstamp.logic.join_and_sort import join_per_time
        from pointstamp.logic.per_time import PerTimeAndKey

        check_join(how, fn)
        if fn is not None:
            function_of("join", fn)
        theirs = stream_given("join", other)._output
        unmet = never_meet(self._output, theirs)
        if unmet is not None and not unmet.driven:
            unmet.warn(IN_RECORDS)
            unmet = None
        inputs = [(self._output, ByKey()), (theirs, ByKey())]
        state: PerTimeAndKey[Any] = PerTimeAndKey()
        build = partial(join_per_time, state, fn, how, unmet, program_line())
        made = single_output(self.scope, name or "join", inputs, build, notify=True, state=state)
        return stream_of(self.scope, made)  # type: ignore[no-any-return]

    def reduce(
        self: Stream[tuple[K, V]], fn: Callable[[V, V], V], *, name: str | None = None
    ) -> Stream[tuple[K, V]]:
        """Per time and key, the values of ``(key, value)`` records made one, two at a time.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.to_stream([("a", 3), ("b", 1), ("a", 2)]).reduce(max).capture()
            >>> ps.example(build).extract()
            [(0, [('a', 3), ('b', 1)])]
        """
        function_of("reduce", fn)
        missing = object()

        def fold(_key: K, value: V, so_far: Any) -> Any:
            return value if so_far is missing else fn(so_far, value)

        stream: Any = self
        result: Stream[tuple[K, V]] = stream.aggregate(fold, default=lambda: missing, name=name)
        return result

    def top_k(self, n: int, order: Callable[[T], Any] | None = None, *, name: str | None = None) -> Stream[T]:
        """The `n` greatest records of each time, of all workers, greatest first; sent when the time closes.

        Args:
            n: The number of records.
            order: The value by which they are compared; None: the records themselves. NaN is the greatest
                number.
            name: The operator's name.

        Raises:
            TypeError: If `n` is no int.
            ValueError: If it is less than 1.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.to_stream(["ox", "camel", "bee"]).top_k(2, len).inspect(print)
            >>> ps.example(build) and None
            camel
            bee
        """
        from pointstamp.logic.join_and_sort import gathered

        n = count_of("top_k takes a number of records", n)
        if order is not None:
            function_of("top_k", order)
        key = key_function(order)
        made = gathered(
            self.scope,
            self._output,
            name or "top_k",
            lambda records: sorted(records, key=key, reverse=True)[:n],
            locally=True,
        )
        return stream_of(self.scope, made)  # type: ignore[no-any-return]

    def sort(
        self, order: Callable[[T], Any] | None = None, *, descending: bool = False, name: str | None = None
    ) -> Stream[T]:
        """The records of each time, of all workers, in order, on one worker; sent when the time closes.

        Args:
            order: The value by which they are compared; None: the records themselves. NaN is the greatest
                number.
            descending: The greatest first.
            name: The operator's name.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.to_stream([3, 1, 2]).sort(descending=True).inspect(print)
            >>> ps.example(build) and None
            3
            2
            1
        """
        from pointstamp.logic.join_and_sort import gathered

        if order is not None:
            function_of("sort", order)
        key = key_function(order)
        made = gathered(
            self.scope,
            self._output,
            name or "sort",
            lambda records: sorted(records, key=key, reverse=descending),
            locally=False,
        )
        return stream_of(self.scope, made)  # type: ignore[no-any-return]


def _unique(records: list[Any]) -> Iterator[Any]:
    """One of each record, in the order of first arrival."""
    return iter(dict.fromkeys(records))


def _no_key(_record: Any) -> None:
    return None
