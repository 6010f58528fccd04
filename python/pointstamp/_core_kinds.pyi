"""The part of the extension module with choices among a few names.

`label` is a member's name in messages. There is no such module when a program runs: `_core.pyi` has these
names.
"""

from typing import ClassVar, final

@final
class StageKind:
    MAP: ClassVar[StageKind]
    FLAT_MAP: ClassVar[StageKind]
    FILTER: ClassVar[StageKind]
    INSPECT: ClassVar[StageKind]
    INSPECT_TIME: ClassVar[StageKind]
    INSPECT_BATCH: ClassVar[StageKind]
    MAP_IN_PLACE: ClassVar[StageKind]
    MAP_BATCHES: ClassVar[StageKind]
    MAP_TIMED: ClassVar[StageKind]
    TRY_MAP: ClassVar[StageKind]
    OK_ERR: ClassVar[StageKind]
    PARTITION: ClassVar[StageKind]
    BRANCH: ClassVar[StageKind]
    BRANCH_WHEN: ClassVar[StageKind]
    @property
    def label(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __int__(self) -> int: ...

@final
class CollectionStageKind:
    MAP: ClassVar[CollectionStageKind]
    FLAT_MAP: ClassVar[CollectionStageKind]
    FILTER: ClassVar[CollectionStageKind]
    INSPECT: ClassVar[CollectionStageKind]
    @property
    def label(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __int__(self) -> int: ...

@final
class PactKind:
    PIPELINE: ClassVar[PactKind]
    BROADCAST: ClassVar[PactKind]
    EXCHANGE: ClassVar[PactKind]
    EXCHANGE_FIRST: ClassVar[PactKind]
    EXCHANGE_GROUP: ClassVar[PactKind]
    EXCHANGE_KEYS: ClassVar[PactKind]
    EXCHANGE_COLUMNS: ClassVar[PactKind]
    EXCHANGE_COLUMN_GROUPS: ClassVar[PactKind]
    GATHER: ClassVar[PactKind]
    @property
    def label(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __int__(self) -> int: ...

@final
class How:
    INNER: ClassVar[How]
    LEFT: ClassVar[How]
    RIGHT: ClassVar[How]
    FULL: ClassVar[How]
    SEMI: ClassVar[How]
    ANTI: ClassVar[How]
    @property
    def label(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __int__(self) -> int: ...

@final
class JoinKind:
    PAIRS: ClassVar[JoinKind]
    LEFT: ClassVar[JoinKind]
    FIELDS: ClassVar[JoinKind]
    FUNCTION: ClassVar[JoinKind]
    @property
    def label(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __int__(self) -> int: ...

@final
class Reduction:
    DISTINCT: ClassVar[Reduction]
    THRESHOLD: ClassVar[Reduction]
    COUNT: ClassVar[Reduction]
    COUNT_BY_KEY: ClassVar[Reduction]
    MIN: ClassVar[Reduction]
    MAX: ClassVar[Reduction]
    TOP_K: ClassVar[Reduction]
    RANKED: ClassVar[Reduction]
    OVER: ClassVar[Reduction]
    SUM: ClassVar[Reduction]
    MEAN: ClassVar[Reduction]
    SUM_OF_FLOATS: ClassVar[Reduction]
    MEAN_OF_FLOATS: ClassVar[Reduction]
    VARIANCE: ClassVar[Reduction]
    VARIANCE_OF_ALL: ClassVar[Reduction]
    DEVIATION: ClassVar[Reduction]
    DEVIATION_OF_ALL: ClassVar[Reduction]
    COLLECTED: ClassVar[Reduction]
    AGGREGATE: ClassVar[Reduction]
    ACCUMULATED: ClassVar[Reduction]
    OF_COLUMNS: ClassVar[Reduction]
    REDUCE: ClassVar[Reduction]
    @property
    def label(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __int__(self) -> int: ...

@final
class Frame:
    RANGE: ClassVar[Frame]
    ROWS: ClassVar[Frame]
    ALL: ClassVar[Frame]
    @property
    def label(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __int__(self) -> int: ...

@final
class WindowFunction:
    NUMBER: ClassVar[WindowFunction]
    RANK: ClassVar[WindowFunction]
    DENSE_RANK: ClassVar[WindowFunction]
    LAG: ClassVar[WindowFunction]
    FIRST: ClassVar[WindowFunction]
    LAST: ClassVar[WindowFunction]
    COUNT: ClassVar[WindowFunction]
    SUM: ClassVar[WindowFunction]
    SUM_OF_FLOATS: ClassVar[WindowFunction]
    MIN: ClassVar[WindowFunction]
    MAX: ClassVar[WindowFunction]
    @property
    def label(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __int__(self) -> int: ...

@final
class StreamKind:
    RECORDS: ClassVar[StreamKind]
    COLUMNS: ClassVar[StreamKind]
    UPDATES: ClassVar[StreamKind]
    @property
    def label(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __int__(self) -> int: ...

@final
class Resume:
    REPEAT: ClassVar[Resume]
    CONTINUE: ClassVar[Resume]
    FOLLOW: ClassVar[Resume]
    @property
    def label(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __int__(self) -> int: ...

@final
class ProgressMode:
    DEMAND: ClassVar[ProgressMode]
    EAGER: ClassVar[ProgressMode]
    TREE: ClassVar[ProgressMode]
    @property
    def label(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __int__(self) -> int: ...
