"""Connectors: where records come from and where they go.

`Source` and `Sink` are the protocol; `scope.read(source)` and `stream.write(sink)` are its two uses. Optional
packages are imported at first use.
"""

from pointstamp.connectors.databases import DuckDBSink, SQLiteSink
from pointstamp.connectors.files import CSVSource, JSONLinesSource, ParquetSource
from pointstamp.connectors.parquet import ParquetSink
from pointstamp.connectors.protocol import PartitionReader, Sink, SinkWriter, Source
from pointstamp.connectors.queues import QueueSource
from pointstamp.connectors.rejecting import Rejected, unreadable

__all__ = [
    "CSVSource",
    "DuckDBSink",
    "JSONLinesSource",
    "ParquetSink",
    "ParquetSource",
    "PartitionReader",
    "QueueSource",
    "Rejected",
    "SQLiteSink",
    "Sink",
    "SinkWriter",
    "Source",
    "unreadable",
]
