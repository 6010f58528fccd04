"""The contents of the extension module; `make lint` compares this with the module (`mypy.stubtest`)."""

# ruff: noqa: F403, F405  (a part of the stub is imported whole)

from collections.abc import Callable, Hashable, Iterable, Sequence
from types import GenericAlias
from typing import Any, Generic, TypeVar, final

from typing_extensions import Self, disjoint_base

from pointstamp._core_collections import *
from pointstamp._core_events import (
    EventFeed as EventFeed,
)
from pointstamp._core_events import (
    EventQueue as EventQueue,
)
from pointstamp._core_events import (
    EventSink as EventSink,
)
from pointstamp._core_events import (
    replay as replay,
)
from pointstamp._core_kinds import (
    CollectionStageKind as CollectionStageKind,
)
from pointstamp._core_kinds import (
    Frame as Frame,
)
from pointstamp._core_kinds import (
    How as How,
)
from pointstamp._core_kinds import (
    JoinKind as JoinKind,
)
from pointstamp._core_kinds import (
    PactKind as PactKind,
)
from pointstamp._core_kinds import (
    ProgressMode as ProgressMode,
)
from pointstamp._core_kinds import (
    Reduction as Reduction,
)
from pointstamp._core_kinds import (
    Resume as Resume,
)
from pointstamp._core_kinds import (
    StageKind as StageKind,
)
from pointstamp._core_kinds import (
    StreamKind as StreamKind,
)
from pointstamp._core_kinds import (
    WindowFunction as WindowFunction,
)
from pointstamp._core_library import *
from pointstamp._core_observability import *
from pointstamp._core_order import (
    Antichain as Antichain,
)
from pointstamp._core_order import (
    Graph as Graph,
)
from pointstamp._core_order import (
    MutableAntichain as MutableAntichain,
)
from pointstamp._core_order import (
    Scheduler as Scheduler,
)
from pointstamp._core_order import (
    Tracker as Tracker,
)
from pointstamp._core_order import (
    followed_by as followed_by,
)
from pointstamp._core_order import (
    less_equal as less_equal,
)
from pointstamp._core_order import (
    results_in as results_in,
)
from pointstamp.api.scope import Scope as _PyScope
from pointstamp.api.stream import Stream as _PyStream
from pointstamp.checkpoint import Position
from pointstamp.types import Summary, Time

__all__ = [
    "HIGH_WATER",
    "Activator",
    "Aggregate",
    "Antichain",
    "Arrangement",
    "Budget",
    "Builder",
    "Capability",
    "CapabilityRef",
    "Checkpoints",
    "Cluster",
    "CollectionStageKind",
    "Connections",
    "EventFeed",
    "EventQueue",
    "EventSink",
    "Expr",
    "Frame",
    "FrontieredInput",
    "Graph",
    "Guard",
    "How",
    "InputHandle",
    "InputPort",
    "Installed",
    "JoinKind",
    "Kernel",
    "Line",
    "Loop",
    "LoopEnd",
    "MessageLink",
    "MutableAntichain",
    "OutputPort",
    "PactKind",
    "Piece",
    "ProbeHandle",
    "ProgressMode",
    "Recorder",
    "Recording",
    "Reduction",
    "Resume",
    "Retaining",
    "Retention",
    "Scheduler",
    "Schema",
    "Scope",
    "Session",
    "Shows",
    "Simulation",
    "Sketch",
    "Sources",
    "StageKind",
    "Stream",
    "StreamKind",
    "Trace",
    "Tracker",
    "UnorderedInput",
    "WindowFunction",
    "Worker",
    "WriterTurns",
    "__version__",
    "aggregate_columns",
    "aggregate_expr",
    "aggregate_schema",
    "arrange",
    "arrangement_updates",
    "at_event_times",
    "branch_columns_when",
    "call_expr",
    "chain",
    "check_columns",
    "check_fields",
    "check_filter",
    "check_join_fields",
    "check_pairs",
    "check_record",
    "check_records",
    "check_summaries",
    "check_updates",
    "checkpoints_list",
    "checkpoints_prune",
    "checkpoints_show",
    "checkpoints_verify",
    "collect_columns",
    "collect_schema",
    "collection_chain",
    "column_expr",
    "column_updates",
    "column_updates_schema",
    "consolidate",
    "count",
    "counts",
    "decode_batch",
    "decode_term",
    "delay",
    "delay_batch",
    "delay_columns",
    "digest",
    "distinct",
    "distinct_columns",
    "distinct_so_far_columns",
    "encode_batch",
    "encode_term",
    "enter_arrangement",
    "enter_at",
    "exchange_columns",
    "expr_type",
    "extract_column_updates",
    "extract_updates",
    "filter_batch",
    "filter_columns",
    "filter_fields",
    "follow",
    "followed_by",
    "give_timed",
    "import_trace",
    "in_time_order",
    "inspect_columns",
    "join_arranged",
    "join_columns",
    "join_schema",
    "join_so_far_columns",
    "keep_diagnostics",
    "less_equal",
    "literal_expr",
    "loop_difference",
    "map_batches",
    "negate",
    "order_columns",
    "own_times_schema",
    "pairs_with_one_nan",
    "partition_columns",
    "play_columns",
    "play_updates",
    "project",
    "reduce_arranged",
    "refuse_negative_counts",
    "replay",
    "results_in",
    "rows_at",
    "rows_in_order",
    "rows_where",
    "running",
    "select_batch",
    "select_columns",
    "select_schema",
    "send_columns",
    "send_updates",
    "set_collections_fuel",
    "source_expr",
    "stable_hash",
    "tagged_hash",
    "take_diagnostics",
    "time_column_of",
    "to_collection",
    "to_records",
    "to_updates",
    "total_updates",
    "trace_of",
    "update_columns",
    "update_input",
    "window_columns",
    "window_schema",
    "with_one_nan",
    "with_own_times",
    "without_views",
    "worker_of_key",
]

_T = TypeVar("_T")
_R = TypeVar("_R")
_W = TypeVar("_W")

__version__: str
HIGH_WATER: int

def stable_hash(key: Hashable) -> int: ...
def worker_of_key(key: Hashable, peers: int) -> int: ...
def check_record(call: str, many: str, record: object) -> None: ...
def check_records(call: str, records: object) -> None: ...
def tagged_hash(tag: bytes, bytes: bytes) -> int: ...

# The engine: the objects of a running operator, and those of `main`.

@final
class Activator:
    def activate(self) -> None: ...
    def activate_after(self, seconds: float) -> None: ...

@final
class Capability:
    @property
    def time(self) -> Time: ...
    @property
    def _output(self) -> int: ...
    @property
    def _revoked(self) -> bool: ...
    def delayed(self, time: Time, output: int | None = None) -> Capability: ...
    def downgrade(self, time: Time) -> None: ...
    def clone(self) -> Capability: ...
    def drop(self) -> None: ...
    def __enter__(self) -> Capability: ...
    def __exit__(self, _kind: object, _error: object, _traceback: object) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class CapabilityRef:
    @property
    def time(self) -> Time: ...
    def retain(self, output: int = 0) -> Capability: ...
    def delayed(self, time: Time, output: int = 0) -> Capability: ...

@disjoint_base
class InputHandle(Generic[_T]):
    def __new__(cls) -> Self: ...
    @property
    def time(self) -> Time: ...
    @property
    def closed(self) -> bool: ...
    @property
    def place(self) -> str | None: ...
    @property
    def position(self) -> Position: ...
    def to_stream(self, scope: _PyScope, *, name: str | None = None) -> _PyStream[_T]: ...
    def send(self, record: _T) -> None: ...
    def send_batch(self, records: Iterable[_T]) -> None: ...
    def advance_to(self, time: Time) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, _kind: object, _error: object, _traceback: object) -> None: ...
    @classmethod
    def __class_getitem__(cls, item: Any) -> GenericAlias: ...

@final
class UnorderedInput(Generic[_T]):
    def session(self, capability: Capability) -> Session[_T]: ...
    @classmethod
    def __class_getitem__(cls, item: Any) -> GenericAlias: ...

@disjoint_base
class InputPort(Generic[_T]):
    # of an ArrowStream: (CapabilityRef, pyarrow.RecordBatch)
    def next(self) -> tuple[CapabilityRef, list[_T]] | None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> tuple[CapabilityRef, list[_T]]: ...
    @classmethod
    def __class_getitem__(cls, item: Any) -> GenericAlias: ...

@final
class FrontieredInput(InputPort[_T]):
    @property
    def frontier(self) -> Antichain: ...

@final
class OutputPort(Generic[_T]):
    def session(self, capability: Capability | CapabilityRef) -> Session[_T]: ...
    @classmethod
    def __class_getitem__(cls, item: Any) -> GenericAlias: ...

@final
class Session(Generic[_T]):
    def give(self, record: _T) -> None: ...
    def give_all(self, records: Iterable[_T]) -> None: ...
    def flush(self) -> None: ...
    def __enter__(self) -> Session[_T]: ...
    def __exit__(self, kind: object, _error: object, _traceback: object) -> None: ...
    @classmethod
    def __class_getitem__(cls, item: Any) -> GenericAlias: ...

@final
class ProbeHandle:
    def __new__(cls) -> ProbeHandle: ...
    @property
    def frontier(self) -> Antichain: ...
    def less_than(self, time: Time) -> bool: ...
    def less_equal(self, time: Time) -> bool: ...
    def done(self) -> bool: ...
    def _expect(self, dims: int) -> None: ...
    def _unexpect(self, dims: int) -> None: ...
    def _places(self) -> list[tuple[int, int]]: ...

@final
class LoopEnd:
    def connect(self, stream: Stream) -> None: ...

def check_summaries(summaries: Any, dims: int) -> list[Any]: ...
def loop_difference(own: Schema | None, given: Schema | None) -> str | None: ...

# The engine, as the classes of the same names in Python hold it: not for programs.

@final
class Builder:
    @property
    def address(self) -> tuple[int, ...]: ...
    def new_input(
        self, stream: Stream, kind: PactKind, key: Callable[[Any], Hashable] | list[int] | None = None
    ) -> InputPort[Any]: ...
    def new_frontiered_input(
        self, stream: Stream, kind: PactKind, key: Callable[[Any], Hashable] | list[int] | None = None
    ) -> FrontieredInput[Any]: ...
    def new_output(
        self, schema: Schema | None = None, *, timed: bool = False
    ) -> tuple[OutputPort[Any], Stream, Capability]: ...
    def set_summary(self, input: int, output: int, summary: Summary | Iterable[Summary] | None) -> None: ...
    def activator(self) -> Activator: ...
    def retention(self, streams: Sequence[Stream]) -> Retention | None: ...
    def retains_forever(self) -> None: ...
    def note_kept(self, size: Callable[[], tuple[int, int] | None]) -> None: ...
    def stateless(self) -> None: ...
    def functions(self, maker: str, digest: str) -> None: ...
    def keeps(self, division: str, take: Callable[[], list[Piece]]) -> None: ...
    def restored(self) -> tuple[list[Piece], list[Capability]] | None: ...
    def sources(self) -> Sources: ...
    def build(
        self, logic: Callable[..., None], arguments: tuple[Any, ...], notify: bool, start: bool
    ) -> None: ...

@final
class Retention:
    def asked(self) -> tuple[str, tuple[str, int] | None] | None: ...
    def take(self, time: int, latest: int) -> None: ...
    def keep(self, until: int | None, least: int) -> None: ...
    def settle(self, sent: int, needed: int | None) -> None: ...

@final
class Retaining:
    def operators(self) -> list[tuple[str, tuple[str, int] | None]]: ...

@final
class Sources:
    def hold(self) -> None: ...
    def let_go(self) -> None: ...

@final
class Stream:
    def forward(self, name: str, kind: PactKind, key: Callable[[Any], Hashable] | None = None) -> Stream: ...
    def probe_with(self, handle: ProbeHandle) -> Stream: ...
    def capture(self, queue: EventQueue) -> None: ...
    def leave(self) -> Stream: ...

@final
class Scope:
    @property
    def name(self) -> str: ...
    @property
    def address(self) -> tuple[int, ...]: ...
    @property
    def dims(self) -> int: ...
    @property
    def index(self) -> int: ...
    @property
    def peers(self) -> int: ...
    def line(self) -> Line: ...
    def lowering(self, title: str, name: str | None, line: Line | None, form: str | None = None) -> None: ...
    def lowered(self) -> None: ...
    @property
    def recording(self) -> Recording | None: ...
    def behind(self) -> str | None: ...
    def input_from(
        self, handle: InputHandle[Any], kind: StreamKind, resume: Resume = Resume.REPEAT
    ) -> Stream: ...
    def unordered_input(self) -> tuple[UnorderedInput[Any], Capability, Stream]: ...
    def to_stream(self, items: Iterable[Any]) -> Stream: ...
    def empty(self) -> Stream: ...
    def concatenate(self, streams: Sequence[Stream]) -> Stream: ...
    def enter(self, stream: Stream) -> Stream: ...
    def operator(self, name: str) -> Builder: ...
    def acknowledges(self) -> None: ...
    def retaining_forever(self, stream: Stream) -> Retaining: ...
    def watch_downstream(
        self, stream: Stream, probe: ProbeHandle, reader: Activator, retained: bool
    ) -> None: ...
    def feedback(
        self, summary: Summary, schema: Schema | None = None, retains: bool = False
    ) -> tuple[LoopEnd, Stream]: ...
    def nested(self, name: str, appended: int) -> Scope: ...
    def close(self) -> None: ...
    def activator_for(self, address: Sequence[int]) -> Activator: ...

@final
class Worker:
    @property
    def index(self) -> int: ...
    @property
    def peers(self) -> int: ...
    def begin_dataflow(self, name: str, dims: int) -> Scope: ...
    def install(self, scope: Scope, described: Sequence[str] = ...) -> Installed: ...
    def discard(self, scope: Scope) -> None: ...
    def step(self) -> bool: ...
    def step_or_park(self, timeout: float | None = None) -> bool: ...
    def step_while(
        self,
        condition: Callable[[], object],
        timeout: float | None = None,
        lasting: tuple[float, Callable[[], object]] | None = None,
    ) -> bool: ...
    def record(self, recorder: Recorder) -> None: ...
    def answer(self) -> None: ...
    def ask(self, cluster: Cluster, seconds: float) -> list[dict[str, Any] | str | None]: ...
    def run(self, lasting: tuple[float, Callable[[], object]] | None = None) -> None: ...
    @property
    def recording(self) -> Recording | None: ...
    def begun(self) -> int: ...
    def unrestored(self) -> list[int]: ...
    def changed(self) -> list[str]: ...
    def installed_dataflows(self) -> list[int]: ...
    def drop_dataflow(self, dataflow: int) -> None: ...
    def traffic(self) -> tuple[int, int, int, int]: ...

@final
class Cluster:
    def __new__(
        cls,
        workers: int,
        progress_mode: ProgressMode,
        high_water: int,
        connections: Connections | None = None,
        budget: Budget | None = None,
    ) -> Cluster: ...
    @property
    def stopped(self) -> bool: ...
    def run(
        self,
        index: int,
        wrap: Callable[[Worker], _W],
        main: Callable[[_W], _R],
        thread: int,
        signals: bool,
        interrupted: Callable[[BaseException], object] | None = None,
        simulation: Simulation | None = None,
        checkpoints: Checkpoints | None = None,
    ) -> _R | None: ...
    def records(self, checkpoints: Checkpoints) -> None: ...
    def ask(self, seconds: float) -> list[dict[str, Any] | str | None]: ...
    def at_work(self) -> list[str | None]: ...
    def running(self) -> list[int | None]: ...
    def wake(self, index: int) -> None: ...
    def say(self, what: bytes) -> None: ...
    def listen(self, handler: Callable[[int, bytes], object]) -> None: ...
    def interrupt(self) -> None: ...
    def abandon(self, reason: str) -> None: ...
    def leave(self) -> None: ...
    def wait_for_others(self, seconds: float) -> bool: ...
    def close(self) -> None: ...
    def traffic(self) -> tuple[int, int, int, int]: ...
    def fail(self, index: int, error: BaseException) -> None: ...
    def raise_failure(self) -> None: ...

@final
class Budget:
    def __new__(cls, limit: int, folder: str) -> Budget: ...
    @property
    def written(self) -> int: ...

@final
class Checkpoints:
    def __new__(
        cls,
        place: str,
        *,
        every: float | None,
        keep: int,
        at: int | None,
        new: Sequence[str],
        drop: Sequence[str],
        drain: float,
        tolerate: int,
        process: int,
        turns: WriterTurns | None = None,
    ) -> Checkpoints: ...
    def stop(self) -> None: ...
    def end(self, whole: bool) -> None: ...

def checkpoints_list(place: str) -> list[tuple[int, int, int, int, int, int, str | None]]: ...
def checkpoints_show(place: str, number: int | None = None) -> list[tuple[str, str, int]]: ...
def checkpoints_verify(place: str) -> tuple[list[int], int, int, list[str]]: ...
def checkpoints_prune(place: str) -> int: ...
def digest(time: Time, records: Iterable[Any]) -> int: ...

@final
class Recording:
    @property
    def resumed(self) -> tuple[int, int, int] | None: ...
    @property
    def covered(self) -> int: ...
    @property
    def answered(self) -> int: ...
    @property
    def failed(self) -> str | None: ...
    @property
    def lineage(self) -> str: ...
    def ask(self) -> int: ...
    def stop(self) -> None: ...
    def subscribe(self, activator: Activator) -> None: ...
    def sink(self, activator: Activator) -> Shows: ...

@final
class Shows:
    @property
    def committed(self) -> int: ...
    def show(self, number: int) -> None: ...
    def ask(self) -> None: ...

@final
class Piece:
    def __new__(cls, contents: bytes) -> Piece: ...
    @staticmethod
    def of_parts(contents: Any) -> Piece: ...
    def read(self) -> bytes: ...

@final
class MessageLink:
    @staticmethod
    def connect(
        host: str, port: int, secret: bytes, context: dict[str, str], patience: float
    ) -> MessageLink: ...
    @staticmethod
    def accept(
        descriptor: int,
        secret: bytes,
        context: dict[str, str],
        patience: float,
        fresh: Callable[[bytes], bool],
    ) -> MessageLink: ...
    @staticmethod
    def inherited(descriptor: int) -> MessageLink: ...
    def send(self, message: bytes) -> None: ...
    def receive(self, most: int) -> bytes | None: ...
    def close(self) -> None: ...

@final
class WriterTurns: ...

@final
class Simulation:
    def __new__(
        cls, processes: int, workers: int, seed: int, loses: bool, patience: float, stalled: object
    ) -> Simulation: ...
    def ask(self) -> None: ...
    def asked(self) -> None: ...
    def connections(self, process: int) -> Connections: ...
    def lost(self) -> int | None: ...
    def records(self, kill: int | None) -> None: ...
    def turns(self, process: int) -> WriterTurns: ...
    @property
    def killed(self) -> bool: ...
    def enter(self, worker: int) -> None: ...
    def leave(self, worker: int) -> None: ...

@final
class Connections:
    def __new__(
        cls,
        *,
        process: int,
        addresses: Sequence[str],
        secret: bytes,
        tls: tuple[bytes, bytes, bytes] | None,
        facts: Sequence[tuple[str, str]],
        connect_timeout: float,
        stall_timeout: float,
        listener: int | None,
        log: Callable[[str], object],
    ) -> Connections: ...

# Batches as they are sent to other processes: a list of records, or a record batch.

def encode_batch(batch: Any) -> bytes: ...
def give_timed(
    output: OutputPort[Any], capability: Capability | CapabilityRef, columns: tuple[Any, ...]
) -> None: ...
def decode_batch(bytes: bytes) -> Any: ...

# Arrow: the schema of a stream of record batches.

@final
class Schema:
    def __new__(cls, schema: Any) -> Schema: ...
    def to_pyarrow(self) -> Any: ...
    def __arrow_c_schema__(self) -> Any: ...
    def key(self, names: list[str]) -> list[int]: ...
    def difference(self, other: Schema) -> str | None: ...
