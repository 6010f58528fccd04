"""The connection of this thread to Spark's Java, after a call that was interrupted.

An exception that a signal raises while Py4J waits for an answer, such as the limit of a test, leaves the
answer on the connection, which stays in use while something refers to the exception. The next call takes the
answer for its own, and so on: every later test on the session fails, each in another way.
"""

from typing import Any


def renew() -> None:
    """Closes the connection of this thread: the next call opens another."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    connection = None if gateway is None else gateway._gateway_client.get_thread_connection()
    if connection is not None:
        connection.close()
