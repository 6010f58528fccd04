"""`setup_cluster` and `shutdown_cluster`: the one resident cluster that a process has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp.config import Config, checked_stall_report
from pointstamp.errors import ConfigError
from pointstamp.spark.calls.explaining import answer_signals
from pointstamp.spark.compat import is_connect
from pointstamp.spark.job.slots import tasks
from pointstamp.spark.packing.exceptions import listen
from pointstamp.spark.resident.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["setup_cluster", "shutdown_cluster"]

_current: Cluster | None = None


def setup_cluster(
    num_workers: int | None = None,
    *,
    session: SparkSession | None = None,
    stall_report: float | None = None,
    dashboard: int | str | None = None,
) -> Cluster:
    """Starts a resident cluster.

    Args:
        num_workers: The number of its tasks. By default, all of Spark's slots but one.
        session: Where; left out: the active session.
        stall_report: The seconds without movement, while a call waits for a dataflow, after which the driver
            reports the reason on standard error.
        dashboard: The driver's port for the live page, or ``"host:port"``; 0 takes a free one. The page and
            its metrics have the memory of the cluster's processes. `Cluster.dashboard` is its address.

    Raises:
        ConfigError: If there are too few slots, there is one already, there is no session of the kind,
            `stall_report` is no number of seconds, or the page cannot be at `dashboard`.
        ClusterError: If its tasks do not start, or do not find each other.

    Examples:
        >>> import pointstamp.spark
        >>> numbers = spark.createDataFrame([(1,), (5,)], "n bigint")
        >>> with pointstamp.spark.setup_cluster(1) as cluster:
        ...     cluster.run(numbers, lambda scope, numbers: numbers.limit(1)).count()
        1
    """
    global _current
    from pyspark.sql import SparkSession

    session = session or SparkSession.getActiveSession()
    if session is None:
        raise ConfigError("there is no active session of Spark: make one, or pass session=")
    if is_connect(session):
        raise ConfigError(
            "a resident cluster takes its orders from the driver, which over Spark Connect is on the server: "
            "use run(), or a session without Connect"
        )
    checked_stall_report(stall_report)
    page = Config(dashboard=dashboard).dashboard
    if _current is not None and not _current.closed:
        raise ConfigError("there is a resident cluster already: call shutdown_cluster() first")
    shutdown_cluster()  # a failed one
    slots = tasks(session, None if num_workers is None else num_workers + 1)
    if slots < 2:
        raise ConfigError(
            "a resident cluster leaves one slot to the tasks that bring it rows, and Spark has only one: "
            "give the session more cores"
        )
    listen(session)
    answer_signals(session)
    _current = Cluster(session, num_workers or slots - 1, stall_report, page)
    return _current


def shutdown_cluster() -> None:
    """Ends the resident cluster, if there is one.

    Examples:
        >>> import pointstamp.spark
        >>> cluster = pointstamp.spark.setup_cluster(1)
        >>> pointstamp.spark.shutdown_cluster()
        >>> cluster.closed
        True
    """
    global _current
    if _current is not None:
        _current.shutdown()
        _current = None
