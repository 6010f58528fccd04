"""Timely dataflow for Python: iterative, low-latency, data-parallel, with exact progress tracking.

Importing this package starts no thread, opens no file and does not import pyarrow.
"""

from pointstamp._core import __version__, stable_hash
from pointstamp._errors import (
    CapabilityError,
    ClusterError,
    CodecError,
    ConfigError,
    GraphError,
    PointstampError,
    TimeError,
)
from pointstamp._types import Summary, Time
from pointstamp.config import Config

__all__ = [
    "CapabilityError",
    "ClusterError",
    "CodecError",
    "Config",
    "ConfigError",
    "GraphError",
    "PointstampError",
    "Summary",
    "Time",
    "TimeError",
    "__version__",
    "stable_hash",
]
