"""`register_captures`: captures as a format that Spark reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp.errors import ConfigError
from pointstamp.spark.packing.exceptions import key, listen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register_captures"]


def register_captures(session: SparkSession) -> None:
    """Makes captures readable: ``spark.read.format("pointstamp").load(path)``, and `spark.readStream` so.

    The path is a capture, a folder of captures, or a pattern such as ``"/data/*.events"``; tasks read it, so
    on several machines it is on a shared file system. The schema is the schema of the captured columns. A
    capture that is still written, or was truncated, is read up to its last complete event.

    Options:

    - ``timeColumn``: adds each row's timestamp under this name, as the last column: a bigint, or where times
      have several coordinates an array of them;
    - ``allowPickle``: ``"true"`` reads captures of Python records, which can run code of their author. They
      have no schema, so one is given with ``.schema(...)``: a record is a tuple or a dict of its columns, or,
      where there is one column, the value.

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
    registered = type("Registered", (CaptureSource,), {"signing": key(), "__module__": "__main__"})
    session.dataSource.register(registered)
