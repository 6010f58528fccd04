"""Refuses common mistakes where a dataflow is written, with a message that says how to mend them.

Owns the checks of functions and names; pacts are checked by `pacts.pact_of`. They run while a dataflow is
built. Properties of a function's result are checked by the operator that calls it.
"""

from __future__ import annotations

import functools
import sys
import threading
import types
import warnings
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from pointstamp.errors import CheckpointError, UsageWarning

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "called",
    "check_reached",
    "choice_of",
    "column_name",
    "count_of",
    "early",
    "function_of",
    "is_frame",
    "main_of",
    "names_of",
    "probe_of",
    "program_line",
    "refuse_async",
    "refuse_generator",
    "several",
    "stream_given",
    "suggesting",
    "unknown_attribute",
    "warn_usage",
    "without_with",
]

C = TypeVar("C", bound=type)
R = TypeVar("R", bound="tuple[Any, ...]")

_COROUTINE = 0x80 | 0x200
"""The flags of code that is `async def`, with or without `yield`."""

_GENERATOR = 0x20
"""The flag of code that yields."""

_MAY_YIELD = frozenset({"flat_map", "map_batches", "map_groups", "reduce"})
"""The operators that take any number of results of a function."""

_OTHER_WORDS = {
    "agg": ("reduce", "aggregate"),
    "all": ("collect",),
    "apply_in_pandas_with_state": ("process", "state_machine"),
    "as_of_join": ("asof_join",),
    "async_io": ("async_map",),
    "avg": ("mean",),
    "distinct": ("dedup", "distinct_count"),
    "drop_late": ("event_time",),
    "fold": ("aggregate", "accumulate"),
    "fold_window": ("window", "aggregate"),
    "join_asof": ("asof_join",),
    "join": ("interval_join", "asof_join", "table_join", "window"),
    "key_on": ("key_by",),
    "length": ("count",),
    "map": ("map_values", "flat_map"),
    "median": ("quantiles",),
    "n_unique": ("distinct_count",),
    "nunique": ("distinct_count",),
    "quantile": ("quantiles",),
    "rolling": ("window",),
    "running": ("scan",),
    "session_window": ("window",),
    "stateful": ("process", "state_machine"),
    "stateful_map": ("state_machine",),
    "to_list": ("collect",),
    "tumble": ("window",),
    "update_state_by_key": ("scan", "state_machine"),
    "add": ("insert",),
    "aggregate": ("map_groups", "reduce", "sum"),
    "append": ("insert",),
    "apply": ("map", "map_batches"),
    "collect": ("capture",),
    "counts": ("value_counts",),
    "count_by_key": ("count",),
    "as_collection": ("to_collection",),
    "flat_map_with_state": ("state_machine",),
    "map_with_state": ("state_machine",),
    "delete": ("remove",),
    "drop_duplicates": ("distinct",),
    "each": ("inspect",),
    "for_each": ("inspect",),
    "foreach": ("inspect",),
    "group_by": ("key_by", "aggregate", "value_counts", "map_groups"),
    "groupby": ("key_by", "aggregate", "value_counts", "map_groups"),
    "keyby": ("key_by", "exchange"),
    "sliding_window": ("window",),
    "tumbling_window": ("window",),
    "watermark": ("event_time",),
    "with_watermark": ("event_time",),
    "dedup": ("distinct", "key_by"),
    "merge": ("join", "concat"),
    "antijoin": ("join",),
    "except_": ("negate",),
    "difference": ("negate",),
    "left_join": ("join",),
    "semijoin": ("join",),
    "reduce": ("map_groups", "aggregate", "accumulate"),
    "repartition": ("exchange",),
    "select": ("map", "map_batches"),
    "send": ("insert",),
    "send_batch": ("insert_many", "update_many"),
    "shuffle": ("exchange",),
    "to_pandas": ("capture", "map_batches"),
    "union": ("concat",),
    "unique": ("distinct",),
    "where": ("filter",),
    "with_columns": ("map_batches", "to_arrow"),
}
"""Names in other libraries, and the methods here that do the same."""

_OF_COLLECTIONS = frozenset(
    [
        "arrange",
        "filter",
        "flat_map",
        "iterate",
        "join",
        "map",
        "map_groups",
        "max",
        "mean",
        "min",
        "sum",
        "top_k",
    ]
)
"""Methods of a collection that a stream of records, an arrangement or a collection of columns may lack."""

_OF_WINDOWS = frozenset(
    ["collect", "count", "distinct_count", "max", "mean", "min", "quantiles", "sum", "top_k"]
)
"""Methods of a window of a stream by key that the stream itself lacks."""

_OF_RECORDS = frozenset(["filter", "flat_map", "inspect", "map"])
"""Methods of a stream of records that a stream of columns lacks."""

_OF_STREAMS = frozenset(
    [
        "branch_when",
        "broadcast",
        "event_time",
        "exchange",
        "inspect_batch",
        "partition",
        "probe_with",
        "sink",
        "unary",
        "window",
        "write",
    ]
)
"""Methods of streams, also of columns, that collections lack: the stream of their updates has them."""

_OF_STREAMS_OF_RECORDS = frozenset(["async_map", "branch", "inspect_time", "key_by", "to_arrow", "try_map"])
"""Methods of streams of records only that collections lack."""

_OF_RESULTS = (
    frozenset(["capture", "capture_into", "concat", "probe", "to_collection"])
    | _OF_STREAMS
    | _OF_STREAMS_OF_RECORDS
    | _OF_RECORDS
)
"""Methods that streams by key, and windows, lack: the streams of their results have them."""


def count_of(what: str, given: Any, *, least: int = 1, error: type[Exception] = ValueError) -> int:
    """Returns a number of things that a program gave: an int, or another integer, such as one of numpy.

    Args:
        what: The operator or argument, and its unit: ``"top_k takes a number of records"``.
        given: The number.
        least: The least number that there may be.
        error: The type of the error for a number below `least`.

    Raises:
        TypeError: If it is no integer; a bool is none.
    """
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise TypeError(f"{what}, an int of at least {least}, not {given!r}")
    number = index(given)
    if number < least:
        raise error(f"{what}, at least {least}, not {number}")
    return number


def choice_of(argument: str, given: Any, choices: tuple[str, ...]) -> str:
    """Returns one of a few names that a program gave.

    Raises:
        ValueError: If it is none of them.
    """
    if given not in choices:
        raise ValueError(f"{argument} is one of {', '.join(map(repr, choices))}, not {given!r}")
    chosen: str = given
    return chosen


def function_of(operator: str, function: Any) -> Any:
    """Returns the function of an operator after checking that its result can be used at once.

    Raises:
        TypeError: If it is not a function, is `async def`, or yields and the operator takes one result.
    """
    if type(function) is types.FunctionType and not function.__code__.co_flags & (_COROUTINE | _GENERATOR):
        return function  # as nearly all are
    if not callable(function):
        from pointstamp._core import Expr

        hint = ""
        if isinstance(function, Expr):
            hint = (
                ", which is an expression: write a function, such as lambda record: record[0]. Expressions "
                "are taken by map, filter and join of collections of records, and by methods of columns"
            )
        raise TypeError(f"{operator} needs a function, not {function!r}{hint}")
    refuse_async(operator, function)
    if operator not in _MAY_YIELD:
        also = ", or use flat_map, which takes any number of them" if operator == "map" else ""
        refuse_generator(operator, function, f"Return the result{also}")
    return function


def main_of(call: str, main: Any) -> Any:
    """Returns the function that every worker runs, after checking its signature.

    Raises:
        TypeError: If it is not a function, is `async def`, or yields.
    """
    if not callable(main):
        raise TypeError(f"{call} needs a function of a worker, such as def main(worker), not {main!r}")
    refuse_async(call, main)
    refuse_generator(call, main, "Return a value, or send records with an InputHandle")
    return main


def names_of(argument: str, names: Any) -> list[str]:
    """The names that an argument lists. Text is a sequence, too: of letters, which nobody means.

    Raises:
        TypeError: If it is one text.
    """
    if isinstance(names, str | bytes):
        text = names if isinstance(names, str) else names.decode(errors="replace")
        meant = [name.strip() for name in text.split(",")]
        raise TypeError(
            f"{argument} is a list of names, and was given {names!r}, whose letters would be names: write "
            f"{argument}={meant!r}"
        )
    return list(names)


def column_name(call: str, name: Any) -> str:
    """The name of a column that a method was given.

    Raises:
        TypeError: If it is no text: a function, an expression, a list of names.
    """
    if isinstance(name, str):
        return name
    cure = ""
    if isinstance(name, list | tuple) and name and all(isinstance(one, str) for one in name):
        cure = f": write {call}({', '.join(map(repr, name))})"
    elif callable(name) or hasattr(name, "meta"):
        cure = ": with_columns makes a column of a function of a batch, or of an expression"
    raise TypeError(f"{call} takes the name of a column, not {name!r}{cure}")


def is_frame(thing: Any) -> bool:
    """Whether something has rows of columns, as data frames, tables and record batches do."""
    kind = type(thing)
    speaks = hasattr(kind, "__arrow_c_stream__") or hasattr(kind, "__arrow_c_array__")
    columns = hasattr(thing, "columns") or hasattr(thing, "schema")
    return columns and (speaks or (kind.__name__ == "DataFrame" and kind.__module__.startswith("pandas")))


def probe_of(handle: Any) -> Any:
    """The probe that `probe_with` was given.

    Raises:
        TypeError: If it is something else.
    """
    from pointstamp._core import ProbeHandle

    if not isinstance(handle, ProbeHandle):
        cure = ": write ProbeHandle()" if handle is ProbeHandle else ", such as ps.ProbeHandle()"
        raise TypeError(
            f"probe_with takes a probe{'' if handle is ProbeHandle else cure}, not {handle!r}"
            f"{cure if handle is ProbeHandle else ''}"
        )
    return handle


def stream_given(operator: str, thing: Any) -> Any:
    """The stream that an operator reads.

    Raises:
        TypeError: If it is something else, such as a collection, a list, or a pair of streams.
    """
    kind = type(thing)
    if hasattr(kind, "map_batches"):  # streams of records and of columns alone
        return thing
    if isinstance(thing, tuple):
        cure = ": take one stream of it, as in `first, second = ...`"
    elif hasattr(kind, "updates"):
        cure = ": the stream of a collection's changes is updates()"
    elif hasattr(thing, "__iter__"):
        cure = ": scope.to_stream(...) makes a stream of records"
    else:
        cure = ""
    raise TypeError(f"{operator} reads streams, not {thing!r}{cure}")


def several(call: str, names: str, results: R) -> R:
    """The results of a method that returns several, as a tuple that says so where it is used as one of them.

    Args:
        call: The method, for the message.
        names: Its possible names in a program, separated by commas.
        results: As many.
    """
    made: Any = _Several(results)
    made.call, made.names = call, names
    return made  # type: ignore[no-any-return]


class _Several(tuple[Any, ...]):
    """See `several`."""

    call: str
    names: str

    def __reduce__(self) -> Any:
        return tuple, (tuple(self),)

    if not TYPE_CHECKING:  # type checkers find out by themselves

        def __getattr__(self, name: str) -> NoReturn:
            message = f"'tuple' object has no attribute '{name}'"
            if not name.startswith("_") and "names" in vars(self):
                own = [own for own, one in zip(self.names.split(", "), self, strict=True) if _has(one, name)]
                then = f", and then {' or '.join(f'{one}.{name}' for one in own)}" if own else ""
                many = "a pair" if len(self) == 2 else "a tuple"
                message = (
                    f"{self.call} gives {'two' if len(self) == 2 else len(self)} results, and {many} of them "
                    f"has no attribute '{name}': write `{self.names} = ...`{then}"
                )
            raise AttributeError(message, name=name, obj=self)


def _has(thing: object, name: str) -> bool:
    """Whether something has a method or property of its class."""
    return any(name in vars(kind) for kind in type(thing).__mro__)


class Line(NamedTuple):
    """A line of a program."""

    file: str
    number: int
    module: str


def program_line() -> Line:
    """The line of the program that called into this package, from where this is called."""
    frame = sys._getframe(1)
    while frame.f_back is not None and f"{frame.f_globals.get('__name__', '')}.".startswith("pointstamp."):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__", ""))


class Early(threading.local):
    """Calls of `extract` on this thread that came before their dataflow's first step, and returned nothing.

    Such a call is a mistake where results come later and are not extracted: programs also poll, and drop
    dataflows. So the warning comes when the worker has ended.
    """

    def __init__(self) -> None:
        self._calls: list[tuple[Any, Line]] = []

    def extracted(self, capture: Any, is_early: bool) -> None:
        """Notes a call on a capture."""
        if self._calls:
            self._calls = [call for call in self._calls if call[0] is not capture]
        if is_early:
            self._calls = [*self._calls[-15:], (capture, program_line())]  # a session's worker ends late

    def warn(self) -> None:
        """Warns of the calls whose captures have events by now. The worker of this thread has ended."""
        calls, self._calls = self._calls, []
        for capture, line in calls:
            if capture._queue.event(0) is not None:
                warn_usage(
                    "extract() was called before the dataflow took a step, and returned nothing; the results "
                    "came later: call worker.run(), or step() until a probe has passed, and extract() then",
                    line,
                )


early = Early()


def warn_usage(message: str, line: Line | None = None) -> None:
    """Warns of a call that works and is rarely meant, at the program's line."""
    at = line or program_line()
    warnings.warn_explicit(message, UsageWarning, at.file, at.number, at.module)


def refuse_async(operator: str, function: Any) -> None:
    """Refuses a function whose result is a coroutine.

    Raises:
        TypeError: The message says what to write instead.
    """
    if type(function) is types.FunctionType and not function.__code__.co_flags & _COROUTINE:
        return  # as nearly all are
    name, flags = _code(function)
    if flags & _COROUTINE:
        raise TypeError(
            f"{operator} was given {name}, which is async: it would return a coroutine that never runs. "
            "Give it a plain function: one that has to wait can call asyncio.run"
        )


def refuse_generator(operator: str, function: Any, cure: str) -> None:
    """Refuses a function that yields, and so does nothing when it is called.

    Raises:
        TypeError: The message says what to write instead.
    """
    name, flags = _code(function)
    if flags & _GENERATOR:
        raise TypeError(
            f"{operator} was given {name}, which yields: a call would return a generator, and run nothing "
            f"of it. {cure}"
        )


def _code(function: Any) -> tuple[str, int]:
    """The name and the flags of the code that a call of the function runs."""
    inner = function
    while True:
        if isinstance(inner, functools.partial):
            inner = inner.func
        elif isinstance(inner, types.MethodType):
            inner = inner.__func__
        else:
            break
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    flags = code.co_flags if isinstance(code, types.CodeType) else 0
    return getattr(inner, "__qualname__", repr(inner)), flags


def unknown_attribute(thing: object, what: str, name: str) -> NoReturn:
    """Raises the error for a missing attribute, with the names of the present ones.

    Raises:
        AttributeError: Always. Of an attribute that a property computes it is the property's own.
    """
    if any(name in vars(kind) for kind in type(thing).__mro__):
        # The attribute exists, but its property has failed and Python has dropped the error. It is raised
        # again.
        object.__getattribute__(thing, name)
    message = f"{what} has no attribute '{name}'"
    if not name.startswith("_"):
        import difflib

        known = [other for other in dir(type(thing)) if not other.startswith("_")]
        if close := [other for other in _OTHER_WORDS.get(name.lower(), ()) if other in known]:
            message += f": there is {' and '.join(close)}"
        elif "join_so_far" in known and name in _OF_RECORDS:
            message += f": map_batches takes a function of a batch, to_records().{name} one of a row"
        elif "join_so_far" in known and name in _OF_STREAMS_OF_RECORDS:
            message += f": streams of records have it, to_records().{name}"
        elif "map_values" in known and name in _OF_WINDOWS:
            message += (
                f": say first over which windows of event time, as in window(ps.Tumbling(10)).{name}; "
                "running gives results so far"
            )
        elif "to_collection" in known and name in _OF_COLLECTIONS:
            message += f": collections have it, to_collection().{name}"
        elif "to_records" in known and name in _OF_RECORDS | _OF_COLLECTIONS:
            message += f": a collection of the rows as records has it, to_records().{name}"
        elif "updates" in known and name in (
            _OF_STREAMS | _OF_STREAMS_OF_RECORDS if "flat_map" in known else _OF_STREAMS
        ):
            message += f": the stream of its updates has it, updates().{name}"
        elif "scan" in known and name in _OF_RESULTS:
            message += f": the streams of its results have it, such as scan(...).{name}"
        elif "distinct_count" in known and name in _OF_RESULTS:
            message += (
                f": choose the result of each window first, as in count().{name}: count, sum, collect, "
                "aggregate and others"
            )
        elif close := difflib.get_close_matches(name, known, n=2):
            message += f": there is {' and '.join(close)}"
    raise AttributeError(message, name=name, obj=thing)


def suggesting(kind: C) -> C:
    """Has the objects of a class say which attributes there are, where one is asked for that is not there.

    Type checkers do not see it: they find out by themselves.
    """

    def missing(thing: object, name: str) -> NoReturn:
        unknown_attribute(thing, called(type(thing)), name)

    kind.__getattr__ = missing  # type: ignore[attr-defined]
    return kind


def called(kind: type) -> str:
    """A class's name with its article."""
    return f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"


def without_with(call: str, name: str) -> NoReturn:
    """Says that a scope is used before its block was entered.

    Raises:
        AttributeError: Always.
    """
    raise AttributeError(
        f"{call} is a block that has not been entered, and has no attribute '{name}': write "
        f"`with {call} as scope:` and build inside it"
    )


def check_reached(behind: Callable[[], str | None] | None) -> None:
    """Refuses to read results while inputs of the worker repeat records that they sent before the checkpoint.

    Args:
        behind: Returns an input that repeats; None where no checkpoints are made.

    Raises:
        CheckpointError: If one repeats: a main that decides by results would decide otherwise than before.
    """
    if behind is not None and (place := behind()) is not None:
        raise CheckpointError(
            f"results were read before input {place} has come to where it stood at the checkpoint, when "
            'they are other than they were: read them later, or take new_input(resume="continue")'
        )
