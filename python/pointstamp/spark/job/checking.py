"""Checks of the arguments of a call that runs a dataflow on Spark. They result in a plan.

`build` is tried: it is called once in the driver, with inputs that stay empty, on a cluster of one worker
that never runs. So the call itself raises an error for a mistake in `build`, a missing column or a schema
that does not fit, before Spark starts a task. The trial also gives the schemas of the streams that `build`
returns.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.config import Config
from pointstamp.errors import GraphError, add_note
from pointstamp.plan import shape
from pointstamp.runtime.execution import execute
from pointstamp.spark import compat
from pointstamp.spark.captures.sink import trying
from pointstamp.spark.job.collections import is_collection
from pointstamp.spark.job.feeding import Feed
from pointstamp.spark.job.in_place import InPlace, in_place, watched
from pointstamp.spark.job.outputs import ONE, Declared, named, undeclared
from pointstamp.spark.job.plan import Plan, packed, what
from pointstamp.spark.packing import schemas
from pointstamp.spark.packing.naming import INPUT, OUTPUT, Named, name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from pointstamp.runtime.worker import Worker

__all__ = ["Planned", "planned"]

_GIVE = (
    "raised in the driver, where build is called once to learn the schema of its results: give the "
    "schema, if only the executors have that module"
)


class Planned(NamedTuple):
    """A plan, and its description for Spark.

    Attributes:
        plan: The plan to build.
        schemas: Of each output, by name, with the column of times.
        in_place: Whether every row can be worked off where it is; see `in_place`.
    """

    plan: Plan
    schemas: dict[str, StructType]
    in_place: InPlace


def planned(
    session: SparkSession,
    inputs: dict[str, StructType],
    build: Callable[..., Any],
    schema: Any,
    *,
    keyword: bool,
    time_column: str | None,
    name: str | None = None,
    travels: bool = True,
    capturing: bool = False,
    changes: str | None = None,
    ends: bool = True,
) -> Planned:
    """Checks the arguments, tries `build`, and converts the schemas.

    Args:
        session: The session whose settings determine Arrow's types for Spark's.
        inputs: The schema of each input, by name.
        build: The user's function.
        schema: Of the output, or a dict; None for the schemas of `build`.
        keyword: Whether `build` takes the inputs by name.
        time_column: The column for the times of output rows, or None.
        name: The name of the dataflow; None for the name of `build`.
        travels: Whether `build` is going to be pickled. A copy of it is tried, where it can be copied: its
            effects on the values that it refers to are then not repeated on the workers' copies.
        capturing: Whether the dataflow may capture into folders.
        changes: The column for the diffs of collections that `build` returns; None for their rows at the end.
        ends: Whether the dataflow has an end.

    Raises:
        GraphError: If an argument is invalid.
        BaseException: An exception of `build`.
    """
    if not callable(build):
        raise GraphError(f"build is a function that is given a scope and streams, not {build!r}")
    called = Named(name_of(build, name), secrets.token_hex(3))
    timezone, large = _settings(session)
    case_sensitive = compat.is_case_sensitive(session)
    for name, one in inputs.items():
        if keyword and not str(name).isidentifier():
            raise GraphError(f"an input's name is an argument of build, and {name!r} cannot be one")
        schemas.check_names(one.names, what(name, keyword))
        if not one.names:
            raise GraphError(
                f"{what(name, keyword)} has no columns, and Spark sends no rows without columns to Python: "
                "add one, such as withColumn('row', lit(0))"
            )
    arrow = {
        name: schemas.to_arrow(one, timezone, large, what(name, keyword)) for name, one in inputs.items()
    }

    def declared(given: dict[str, StructType], single: bool) -> Declared:
        converted = {}
        for name, one in given.items():
            output = named(name, single)
            schemas.check_columns(one.names, output)
            if _has(one.names, time_column, case_sensitive):
                raise GraphError(
                    f"time_column adds the column '{time_column}' to {output}, whose schema has "
                    "one of that name"
                )
            converted[name] = schemas.to_arrow(one, timezone, large, output)
        return Declared(converted, single, time_column)

    given = None if schema is None else _given(schema)
    promised = None if given is None else declared(given, not isinstance(schema, dict))
    if changes is not None and not isinstance(changes, str):
        raise GraphError(f"changes is the name of a column for the diffs of collections, not {changes!r}")
    trial = _Trial(Plan(_copy(build, travels), arrow, keyword, promised, called, changes))
    with trying(capturing):
        trial.run()
    if trial.collections and changes is None and not ends:
        raise GraphError(
            f"{trial.collections[0]} is a collection, and this dataflow has no end: changes='diff' gives its "
            "changes in each micro-batch, with a column of that name for their diffs"
        )
    if trial.collections and changes is None and time_column is not None:
        raise GraphError(
            f"{trial.collections[0]} is a collection, and its rows at the end have no times: changes='diff' "
            f"gives its changes with their times; or leave out time_column={time_column!r}"
        )
    if given is None:
        given = {
            name: schemas.inferred(one, named(name, trial.single), inputs.values())
            for name, one in trial.found.items()
        }
        promised = declared(given, trial.single)
    assert promised is not None
    return Planned(
        Plan(build, arrow, keyword, promised, called.of(trial.operators), changes),
        _with_times(given, time_column),
        trial.in_place,
    )


class _Trial:
    """A call of `build` that leads to nothing.

    Attributes:
        found: The schema of each stream that it returned.
        single: Whether that was one stream, and not a dict.
        operators: The names of the operators of `build`, from the program or its methods, in order.
        in_place: Whether every row can be worked off where it is.
        collections: The outputs that are collections, as messages name them.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.found: dict[str, pa.Schema] = {}
        self.single = True
        self.operators: list[str] = []
        self.in_place = InPlace.NO
        self.collections: list[str] = []

    def run(self) -> None:
        """Raises the error of `build`, or of its result."""
        try:
            execute(self._main, config=Config(workers=1), stall_report=False)
        except ModuleNotFoundError as error:
            if self._plan.declared is None:
                add_note(error, _GIVE)
                raise
            # The executors may have it, and if they have not, a task says so.

    def _main(self, worker: Worker) -> None:
        feed = Feed(list(self._plan.inputs.values()), 1)
        with worker.dataflow("Spark") as scope:
            streams = self._plan.streams(scope, feed)
            with watched(scope) as reads:
                built = self._plan.called(scope, streams, self._see)
            if self._plan.declared is not None:
                self._plan.declared.streams(built)
            else:
                returned, self.single = undeclared(built)
                self.found = {name: stream.schema for name, stream in returned.items()}
        # Installed, because the engine has looked at its loops then.
        nodes = scope._building.plan.nodes
        moves = (shape.ENTER, shape.LEAVE)
        titles = [node.title for node in nodes if node.outputs and node.kind not in moves]
        self.operators = [title for title in titles if not title.startswith((INPUT, OUTPUT))]
        if not reads:
            self.in_place = in_place(node for node in nodes if not node.title.startswith((INPUT, OUTPUT)))
        for number in worker.installed_dataflows():
            worker.drop_dataflow(number)

    def _see(self, built: Any) -> None:
        """Notes which results of `build` are collections."""
        outputs = built if isinstance(built, dict) else {ONE: built}
        single = not isinstance(built, dict)
        self.collections = [named(name, single) for name, one in outputs.items() if is_collection(one)]


def _has(names: list[str], name: str | None, case_sensitive: bool) -> bool:
    """Whether a column of this name is among others, as Spark resolves names."""
    if name is None or case_sensitive:
        return name in names
    return name.lower() in (one.lower() for one in names)


def _copy(build: Callable[..., Any], travels: bool) -> Callable[..., Any]:
    from pyspark import cloudpickle

    try:
        copy: Callable[..., Any] = cloudpickle.loads(packed(build))
    except Exception:
        if travels:
            raise
        return build
    return copy


def _given(schema: Any) -> dict[str, StructType]:
    """The schemas that were given, by name.

    Raises:
        GraphError: If one is no schema, or there is none.
    """
    given = schema if isinstance(schema, dict) else {ONE: schema}
    if not given:
        raise GraphError("schema is an empty dict: a dataflow in Spark has one output or more")
    return {
        name: schemas.to_struct(one, named(name, not isinstance(schema, dict))) for name, one in given.items()
    }


def _with_times(given: dict[str, StructType], time_column: str | None) -> dict[str, StructType]:
    from pyspark.sql.types import LongType, StructField, StructType

    if time_column is None:
        return given
    return {
        name: StructType([*one.fields, StructField(time_column, LongType())]) for name, one in given.items()
    }


def _settings(session: SparkSession) -> tuple[str, bool]:
    """The session's time zone, and whether it sends strings with long offsets."""
    large = session.conf.get("spark.sql.execution.arrow.useLargeVarTypes")
    return str(session.conf.get("spark.sql.session.timeZone")), str(large).lower() == "true"
