"""`explain`: the reasons why the dataflows that run in Spark wait, asked on the driver at any moment."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from pointstamp.errors import ClusterError, ConfigError
from pointstamp.spark import compat
from pointstamp.spark.job.pending_stages import computing, waiting
from pointstamp.spark.monitoring import monitor_server
from pointstamp.spark.monitoring.signals import Asked
from pointstamp.spark.resident import cluster as resident

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["answer_signals", "explain"]

_lock = threading.Lock()
_asked: dict[str, Asked] = {}
"""By Spark's identity of the application."""


def explain(*, session: SparkSession | None = None, timeout: float = 10.0) -> str:
    """Explains why the dataflows that run in Spark wait, as text.

    The explanation has, for each running one (`run`'s and those of a resident cluster), the text of
    `Worker.explain`; for a stage that has not begun, the slots that it waits for; and other running stages,
    in which inputs may still be computed. It is called from another thread than the one that waits for an
    action. ``kill -USR1`` of the driver writes the same to standard error. So does Ctrl-C while an action
    runs, for running dataflows.

    Args:
        session: The session whose stages are explained; by default the active one, or the one that runs
            dataflows.
        timeout: Seconds that dataflows have to answer.

    Raises:
        ConfigError: Over Spark Connect, where the driver is on the server.

    Examples:
        ::

            action = threading.Thread(target=counts.collect)
            action.start()
            print(pointstamp.spark.explain())

    Examples:
        >>> import pointstamp.spark
        >>> print(pointstamp.spark.explain())
        no dataflow runs in Spark, and none waits for slots
    """
    session = session or _session()
    if session is not None and compat.is_connect(session):
        raise ConfigError(
            "over Spark Connect the driver is on the server, and cannot be asked what dataflows wait for"
        )
    reported = monitor_server.explanations(timeout)
    texts = [*reported.values(), *_resident(timeout)]
    if session is not None:
        texts += waiting(session, reported)
        texts += computing(session)
    return "\n\n".join(texts) or "no dataflow runs in Spark, and none waits for slots"


def answer_signals(session: SparkSession) -> None:
    """Answers signals until its context is stopped; the first call counts."""
    if compat.is_connect(session):
        return
    context = session.sparkContext
    application = str(context.applicationId)
    with _lock:
        if application in _asked or threading.current_thread() is not threading.main_thread():
            return
        _asked[application] = asked = Asked(explain, _briefly)

    def end() -> None:
        with _lock:
            _asked.pop(application, None)
        asked.end()

    compat.when_stopped(context, end)


def _briefly(seconds: float) -> str:
    """Explains why the running dataflows wait."""
    return "\n\n".join([*monitor_server.explanations(seconds).values(), *_resident(seconds)])


def _resident(seconds: float) -> list[str]:
    """Explains why the dataflows of resident clusters wait."""
    texts = []
    for cluster in list(resident.running):
        with suppress(ClusterError):  # it has just ended
            texts.append(f"the resident cluster: {cluster.explain(timeout=seconds)}")
    return texts


def _session() -> SparkSession | None:
    from pyspark.sql import SparkSession

    known = [*monitor_server.sessions(), *(cluster.session for cluster in resident.running)]
    return SparkSession.getActiveSession() or next(iter(known), None)
