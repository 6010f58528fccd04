"""`register_captures`: captures as a format that Spark reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp.errors import ConfigError
from pointstamp.spark.packing.exceptions import key, listen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register_captures"]

_PUSHING = "spark.sql.python.filterPushdown.enabled"
"""Spark's setting: whether data sources in Python get filters."""


def register_captures(session: SparkSession) -> None:
    """Makes captures a format of Spark, as in ``spark.read.format("pointstamp").load(path)``.

    The path is a capture, a folder of captures, or a pattern such as ``"/data/*.events"``; tasks read it, so
    on several machines it is on a shared file system. The schema is the schema of the captured columns. A
    capture that is still written, or was truncated, is read up to its last complete event.

    Options:

    - ``timeColumn``: adds each row's timestamp under this name, as the last column: a bigint, or where times
      have several coordinates an array of them;
    - ``allowPickle``: ``"true"`` reads captures of Python records, which can run code of their author. They
      have no schema, so one is given with ``.schema(...)``: a record is a tuple or a dict of its columns, or,
      where there is one column, the value.

    A schema given with ``.schema(...)`` may have fewer columns: only those are read. Where the session's
    setting ``spark.sql.python.filterPushdown.enabled`` is true at this call, conditions on integers,
    booleans, text and `timeColumn` leave out rows before Spark gets them.

    ``spark.readStream.format("pointstamp")`` follows captures that grow, and new ones in the folder.

    ``df.write.format("pointstamp").mode("append").save(folder)`` writes a folder of captures, one for each
    partition with rows, and ``mode("overwrite")`` replaces the folder. The option ``timeColumn`` names the
    column of the rows' times. It is no captured column, and each partition is in its order.

    ``df.writeStream.format("pointstamp").option("checkpointLocation", place).start(folder)`` adds to a folder
    of its own the captures of each micro-batch, in the folder ``batch-N``, once. A partition's rows of a
    micro-batch are sorted by `timeColumn` in memory. The output mode is ``append``. It needs Spark 4.1.

    Args:
        session: Where; again for each session.

    Raises:
        ConfigError: If this version of Spark has no data sources in Python.

    Examples:
        >>> import os, tempfile
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> import pointstamp.spark
        >>> path = os.path.join(tempfile.mkdtemp(), "rain.events")
        >>> rain = pa.table({"city": ["Ulm"], "mm": [3]})
        >>> ps.example(lambda scope: scope.to_stream(rain).capture_into(ps.EventWriter(path)))
        >>> pointstamp.spark.register_captures(spark)
        >>> [tuple(row) for row in spark.read.format("pointstamp").load(path).collect()]
        [('Ulm', 3)]
    """
    if not hasattr(session, "dataSource"):
        raise ConfigError("data sources in Python need Spark 4: pip install 'pyspark>=4.0'")
    from pointstamp.spark.captures.source import CaptureSource

    listen(session)
    # It travels by value with the key that its exceptions are signed with; all else is found in the package.
    pushing = session.conf.get(_PUSHING, "false") == "true"
    of_class = {"signing": key(), "pushing": pushing, "__module__": "__main__"}
    registered = type("Registered", (CaptureSource,), of_class)
    session.dataSource.register(registered)
