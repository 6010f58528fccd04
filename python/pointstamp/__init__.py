"""Timely dataflow for Python: iterative, low-latency, data-parallel, with exact progress tracking.

Importing this package starts no thread, opens no file and does not import pyarrow. It loads the modules that
every program needs. The rest (collections, columns, keys and windows, sources and sinks) is loaded at the
first use of its names, or of methods that need it.
"""

from pointstamp import _interrupts  # noqa: F401  # before all else

# isort: split
from typing import TYPE_CHECKING

from pointstamp._core import (
    Activator,
    Capability,
    CapabilityRef,
    FrontieredInput,
    InputHandle,
    InputPort,
    OutputPort,
    ProbeHandle,
    UnorderedInput,
    __version__,
    stable_hash,
)
from pointstamp._core import Session as OutputSession
from pointstamp._lazy_import import later
from pointstamp.api.loops import LoopHandle
from pointstamp.api.operator_builder import OperatorBuilder, Retention
from pointstamp.api.scope import Scope
from pointstamp.api.stream import Stream
from pointstamp.capture.events import Capture, EventReader, EventWriter
from pointstamp.config import Config
from pointstamp.errors import (
    CapabilityError,
    CheckpointError,
    ClusterError,
    CodecError,
    ConfigError,
    GraphError,
    NotAcknowledged,
    PointstampError,
    StallError,
    TimeError,
    TruncatedWarning,
    UsageWarning,
    WrittenBefore,
)
from pointstamp.info import OperatorInfo, Traffic
from pointstamp.pacts import Broadcast, ByKey, Exchange, Pact, Pipeline
from pointstamp.runtime.execution import example, execute, execute_from_args
from pointstamp.runtime.worker import Sequencer, Worker
from pointstamp.tls import TLS
from pointstamp.types import Summary, Time

if TYPE_CHECKING:
    from pointstamp.api.arrow_stream import ArrowInput, ArrowStream
    from pointstamp.api.collection import Arranged, Collection, Trace, Variable
    from pointstamp.api.collection_input import CollectionInput
    from pointstamp.api.column_collection import ColumnCollection
    from pointstamp.api.column_input import ColumnInput
    from pointstamp.api.keyed_stream import KeyedStream
    from pointstamp.api.windowed_stream import WindowedStream
    from pointstamp.checkpoint import Checkpoint, CheckpointHandle, Position, Resumed
    from pointstamp.encoders import register_encoder
    from pointstamp.expr.expressions import Aggregate, Expr, col, count, key, left, lit, record, right
    from pointstamp.expr.functions import case, coalesce, dense_rank, rank, row_number
    from pointstamp.expr.windows import Count, Session, Sliding, Tumbling, Window
    from pointstamp.keys import register_key
    from pointstamp.logic.capability_set import CapabilitySet
    from pointstamp.logic.notify import FrontierNotificator, Notificator
    from pointstamp.logic.state import KeyedState
    from pointstamp.logic.vertex import Vertex
    from pointstamp.observability.progress_bar import progress_bar
    from pointstamp.queries.answers import sql
    from pointstamp.restart import Restart
    from pointstamp.runtime.interactive.session import Interactive
else:
    __getattr__ = later(
        __name__,
        {
            "Arranged": "pointstamp.api.collection",
            "ArrowInput": "pointstamp.api.arrow_stream",
            "ArrowStream": "pointstamp.api.arrow_stream",
            "CapabilitySet": "pointstamp.logic.capability_set",
            "Checkpoint": "pointstamp.checkpoint",
            "CheckpointHandle": "pointstamp.checkpoint",
            "Position": "pointstamp.checkpoint",
            "Restart": "pointstamp.restart",
            "Resumed": "pointstamp.checkpoint",
            "Collection": "pointstamp.api.collection",
            "CollectionInput": "pointstamp.api.collection_input",
            "ColumnCollection": "pointstamp.api.column_collection",
            "ColumnInput": "pointstamp.api.column_input",
            "Count": "pointstamp.expr.windows",
            "FrontierNotificator": "pointstamp.logic.notify",
            "Interactive": "pointstamp.runtime.interactive.session",
            "KeyedState": "pointstamp.logic.state",
            "KeyedStream": "pointstamp.api.keyed_stream",
            "Notificator": "pointstamp.logic.notify",
            "Session": "pointstamp.expr.windows",
            "Sliding": "pointstamp.expr.windows",
            "Trace": "pointstamp.api.collection",
            "Tumbling": "pointstamp.expr.windows",
            "Variable": "pointstamp.api.collection",
            "Vertex": "pointstamp.logic.vertex",
            "Window": "pointstamp.expr.windows",
            "WindowedStream": "pointstamp.api.windowed_stream",
            "connectors": "pointstamp.connectors",
            "cluster": "pointstamp.cluster",
            "case": "pointstamp.expr.functions",
            "coalesce": "pointstamp.expr.functions",
            "dense_rank": "pointstamp.expr.functions",
            "rank": "pointstamp.expr.functions",
            "row_number": "pointstamp.expr.functions",
            "col": "pointstamp.expr.expressions",
            "count": "pointstamp.expr.expressions",
            "key": "pointstamp.expr.expressions",
            "left": "pointstamp.expr.expressions",
            "lit": "pointstamp.expr.expressions",
            "record": "pointstamp.expr.expressions",
            "right": "pointstamp.expr.expressions",
            "Aggregate": "pointstamp.expr.expressions",
            "Expr": "pointstamp.expr.expressions",
            "graphs": "pointstamp.graphs",
            "observability": "pointstamp.observability",
            "order": "pointstamp.order",
            "progress_bar": "pointstamp.observability.progress_bar",
            "register_encoder": "pointstamp.encoders",
            "progress": "pointstamp.progress",
            "register_key": "pointstamp.keys",
            "spark": "pointstamp.spark",
            "sql": "pointstamp.queries.answers",
            "testing": "pointstamp.testing",
        },
    )

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "TLS",
    "Activator",
    "Aggregate",
    "Arranged",
    "ArrowInput",
    "ArrowStream",
    "Broadcast",
    "ByKey",
    "Capability",
    "CapabilityError",
    "CapabilityRef",
    "CapabilitySet",
    "Capture",
    "Checkpoint",
    "CheckpointError",
    "CheckpointHandle",
    "ClusterError",
    "CodecError",
    "Collection",
    "CollectionInput",
    "ColumnCollection",
    "ColumnInput",
    "Config",
    "ConfigError",
    "Count",
    "EventReader",
    "EventWriter",
    "Exchange",
    "Expr",
    "FrontierNotificator",
    "FrontieredInput",
    "GraphError",
    "InputHandle",
    "InputPort",
    "Interactive",
    "KeyedState",
    "KeyedStream",
    "LoopHandle",
    "NotAcknowledged",
    "Notificator",
    "OperatorBuilder",
    "OperatorInfo",
    "OutputPort",
    "OutputSession",
    "Pact",
    "Pipeline",
    "PointstampError",
    "Position",
    "ProbeHandle",
    "Restart",
    "Resumed",
    "Retention",
    "Scope",
    "Sequencer",
    "Session",
    "Sliding",
    "StallError",
    "Stream",
    "Summary",
    "Time",
    "TimeError",
    "Trace",
    "Traffic",
    "TruncatedWarning",
    "Tumbling",
    "UnorderedInput",
    "UsageWarning",
    "Variable",
    "Vertex",
    "Window",
    "WindowedStream",
    "Worker",
    "WrittenBefore",
    "__version__",
    "case",
    "coalesce",
    "col",
    "count",
    "dense_rank",
    "example",
    "execute",
    "execute_from_args",
    "key",
    "left",
    "lit",
    "progress_bar",
    "rank",
    "record",
    "register_encoder",
    "register_key",
    "right",
    "row_number",
    "sql",
    "stable_hash",
]
