"""Checks of Spark before anything is started: a session that can run a barrier stage of so many tasks.

Spark itself would report some of this late, in words of its own, or never: it compares a barrier stage with
all of its slots, and one that is left with too few of them waits without end. So the slots of a resident
cluster are noted here, for the whole process.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pointstamp._validation import count_of
from pointstamp.errors import ConfigError
from pointstamp.spark.compat import is_connect, is_local, slots

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["held", "hold", "is_dataframe", "session_of", "tasks", "too_few"]

_STARTING = 60.0
"""Seconds that a new session has to get its first executor, which is a process to be started,"""

_REGISTERING = 10.0
"""and, once there are some, seconds without another after which there are too few."""


def is_dataframe(thing: object) -> bool:
    """Whether it is a DataFrame of Spark, of either kind."""
    from pyspark.sql import DataFrame

    return isinstance(thing, DataFrame) or (is_connect(thing) and type(thing).__name__ == "DataFrame")


def session_of(dataframe: DataFrame) -> SparkSession:
    """The session that a DataFrame is of."""
    session: SparkSession = dataframe.sparkSession
    return session


def tasks(session: SparkSession, num_workers: Any) -> int:
    """Returns the number of tasks of the barrier stage.

    Args:
        session: Where it will run.
        num_workers: The number that the caller wants; None for as many as there are slots.

    Raises:
        ConfigError: If the session cannot run a barrier stage, or not one of so many tasks.
        TypeError: If `num_workers` is no integer.
    """
    asked = None
    if num_workers is not None:
        asked = count_of("num_workers is a number of tasks", num_workers, error=ConfigError)
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
    context = session.sparkContext
    there = slots(context) if is_local(session) else _awaited(context, asked or 1)
    if there < (asked or 1):
        raise ConfigError(
            f"a barrier stage of {asked or 1} tasks needs as many slots at once, and Spark has {there} "
            f"(master {context.master}, spark.task.cpus "
            f"{session.conf.get('spark.task.cpus', '1')}): say num_workers={max(there, 1)} or less, or give "
            "the session more cores"
        )
    if there - held(context) < (asked or there):
        raise too_few(context, asked or there, there)
    return asked or there


def _awaited(context: SparkContext, enough: int) -> int:
    """Returns the number of slots, once there are enough or no more come."""
    there, since = slots(context), time.monotonic()
    while there < enough and time.monotonic() - since < (_REGISTERING if there else _STARTING):
        time.sleep(0.1)
        before, there = there, slots(context)
        if there != before:
            since = time.monotonic()
    return there


# ---------------------------------------------------------------- slots of a resident cluster

_held: dict[str, int] = {}
"""Slots that a resident cluster of this process holds, by Spark's identity of the application."""


def hold(context: SparkContext, count: int) -> Callable[[], None]:
    """So many slots are not given back while a resident cluster stays; a context's sessions share them.

    Returns:
        The call that releases them.
    """
    application = context.applicationId
    _held[application] = _held.get(application, 0) + count

    def release() -> None:
        left = _held.pop(application) - count
        if left:
            _held[application] = left

    return release


def held(context: SparkContext) -> int:
    """Returns the number of slots that no other job can get."""
    return _held.get(context.applicationId, 0)


def too_few(context: SparkContext, wanted: int, there: int) -> ConfigError:
    """Returns the error of a barrier stage that would wait without end, with the holder, and the remedy."""
    free = there - held(context)
    fewer = f"; or say num_workers={free} or less" if free > 0 else ""
    return ConfigError(
        f"a barrier stage of {wanted} tasks needs as many slots at once, and of Spark's {there} the resident "
        f"cluster holds {held(context)} until it is shut down: use its own run(), or call shutdown_cluster() "
        f"first{fewer}"
    )
