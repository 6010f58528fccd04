"""Timely dataflow for Python: iterative, low-latency, data-parallel, with exact progress tracking.

Importing this package starts no thread, opens no file and does not import pyarrow. It loads what every
program needs. The rest (collections, columns, keys and windows, sources and sinks) is loaded with the first
use of its names, or of the methods that lead to it.
"""

from pointstamp import _early  # noqa: F401  # before all else

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
from pointstamp._errors import (
    CapabilityError,
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
from pointstamp._later import later
from pointstamp._types import Summary, Time
from pointstamp.capture.events import Capture, EventReader, EventWriter
from pointstamp.config import Config
from pointstamp.custom.builder import OperatorBuilder, Retention
from pointstamp.execution import example, execute, execute_from_args
from pointstamp.info import OperatorInfo, Traffic
from pointstamp.pacts import Broadcast, Exchange, Pact, Pipeline
from pointstamp.scope import Scope
from pointstamp.streams.loops import LoopHandle
from pointstamp.streams.records import Stream
from pointstamp.tls import TLS
from pointstamp.worker import Sequencer, Worker

if TYPE_CHECKING:
    from pointstamp.collections import (
        Arranged,
        Collection,
        CollectionInput,
        ColumnCollection,
        ColumnInput,
        Trace,
        Variable,
    )
    from pointstamp.custom.capability_set import CapabilitySet
    from pointstamp.custom.notify import FrontierNotificator, Notificator
    from pointstamp.custom.vertex import Vertex
    from pointstamp.encoders import register_encoder
    from pointstamp.event_times.windows import Count, Session, Sliding, Tumbling, Window
    from pointstamp.interactive.session import Interactive
    from pointstamp.keyed import KeyedState, KeyedStream, WindowedStream
    from pointstamp.keys import register_key
    from pointstamp.seeing.bar import progress_bar
    from pointstamp.streams.arrow import ArrowStream
    from pointstamp.streams.arrow_input import ArrowInput
else:
    __getattr__ = later(
        __name__,
        {
            "Arranged": "pointstamp.collections",
            "ArrowInput": "pointstamp.streams.arrow_input",
            "ArrowStream": "pointstamp.streams.arrow",
            "CapabilitySet": "pointstamp.custom.capability_set",
            "Collection": "pointstamp.collections",
            "CollectionInput": "pointstamp.collections",
            "ColumnCollection": "pointstamp.collections",
            "ColumnInput": "pointstamp.collections",
            "Count": "pointstamp.event_times.windows",
            "FrontierNotificator": "pointstamp.custom.notify",
            "Interactive": "pointstamp.interactive.session",
            "KeyedState": "pointstamp.keyed",
            "KeyedStream": "pointstamp.keyed",
            "Notificator": "pointstamp.custom.notify",
            "Session": "pointstamp.event_times.windows",
            "Sliding": "pointstamp.event_times.windows",
            "Trace": "pointstamp.collections",
            "Tumbling": "pointstamp.event_times.windows",
            "Variable": "pointstamp.collections",
            "Vertex": "pointstamp.custom.vertex",
            "Window": "pointstamp.event_times.windows",
            "WindowedStream": "pointstamp.keyed",
            "connectors": "pointstamp.connectors",
            "cluster": "pointstamp.cluster",
            "event_times": "pointstamp.event_times",
            "fields": "pointstamp.fields",
            "graphs": "pointstamp.graphs",
            "interactive": "pointstamp.interactive",
            "keyed": "pointstamp.keyed",
            "order": "pointstamp.order",
            "progress_bar": "pointstamp.seeing.bar",
            "register_encoder": "pointstamp.encoders",
            "progress": "pointstamp.progress",
            "register_key": "pointstamp.keys",
            "seeing": "pointstamp.seeing",
            "spark": "pointstamp.spark",
            "testing": "pointstamp.testing",
        },
    )

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "TLS",
    "Activator",
    "Arranged",
    "ArrowInput",
    "ArrowStream",
    "Broadcast",
    "Capability",
    "CapabilityError",
    "CapabilityRef",
    "CapabilitySet",
    "Capture",
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
    "ProbeHandle",
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
    "example",
    "execute",
    "execute_from_args",
    "progress_bar",
    "register_encoder",
    "register_key",
    "stable_hash",
]
