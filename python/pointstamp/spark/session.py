"""What Spark must offer before anything is started: a session that can run a barrier stage of so many tasks.

Spark itself would say some of this late, in words of its own, or never: a stage with more tasks than slots
waits without end.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pointstamp._errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["is_connect", "is_dataframe", "session_of", "tasks"]

_REGISTERING = 10.0
"""Seconds that executors of a new session have to register before there are too few."""


def is_connect(thing: object) -> bool:
    """Whether a DataFrame or session is one of Spark Connect's. Does not import it, which takes grpc."""
    return any(kind.__module__.startswith("pyspark.sql.connect") for kind in type(thing).__mro__)


def is_dataframe(thing: object) -> bool:
    """Whether it is a DataFrame of Spark, of either kind."""
    from pyspark.sql import DataFrame

    return isinstance(thing, DataFrame) or (is_connect(thing) and type(thing).__name__ == "DataFrame")


def session_of(dataframe: DataFrame) -> SparkSession:
    """The session that a DataFrame is of."""
    session: SparkSession = dataframe.sparkSession
    return session


def tasks(session: SparkSession, asked: Any) -> int:
    """How many tasks the barrier stage gets.

    Args:
        session: Where it will run.
        asked: How many the caller wants; None for as many as there are slots.

    Raises:
        ConfigError: If the session cannot run a barrier stage, or not one of so many tasks.
    """
    if asked is not None and (isinstance(asked, bool) or not isinstance(asked, int) or asked < 1):
        raise ConfigError(f"num_workers is a number of tasks, 1 or more, not {asked!r}")
    if str(session.conf.get("spark.dynamicAllocation.enabled", "false")).lower() == "true":
        raise ConfigError(
            "spark.dynamicAllocation.enabled is true, and Spark runs no barrier stage with it: start the "
            "session with it set to false and spark.executor.instances set to how many executors you want"
        )
    if is_connect(session):
        if asked is None:
            raise ConfigError(
                "over Spark Connect the number of free slots cannot be asked for: say num_workers=, at most "
                "the server's executors times their cores"
            )
        return asked
    slots = _slots(session)
    deadline = time.monotonic() + _REGISTERING
    while slots < (asked or 1) and time.monotonic() < deadline and not _is_local(session):
        time.sleep(0.1)
        slots = _slots(session)
    if slots < (asked or 1):
        raise ConfigError(
            f"a barrier stage of {asked or 1} tasks needs as many slots at once, and Spark has {slots} "
            f"(master {session.sparkContext.master}, spark.task.cpus "
            f"{session.conf.get('spark.task.cpus', '1')}): say num_workers={max(slots, 1)} or less, or give "
            "the session more cores"
        )
    return asked or slots


def _is_local(session: SparkSession) -> bool:
    return bool(session.sparkContext._jsc.sc().isLocal())


def _slots(session: SparkSession) -> int:
    """How many tasks can run at once; Spark's defaultParallelism is another number."""
    context: Any = session.sparkContext._jsc.sc()
    profile = context.resourceProfileManager().defaultResourceProfile()
    return int(context.maxNumConcurrentTasks(profile))
