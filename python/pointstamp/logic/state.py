"""State by key, of one operator on one worker.

Owns `KeyedState`: the one kind of state that operators by key have, whether they keep a state of the user's,
windows, or records that wait for their match. It is plain data that can be listed, written as bytes and read
back. It is as of a frontier: it has taken in every record before it, and none after. With a time to live, a
key is forgotten when no record of it has come for so long, in event time; a heap has one entry for each key,
so that forgetting follows the keys that are due.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pointstamp._core import with_one_nan, worker_of_key
from pointstamp._validation import suggesting
from pointstamp.errors import CheckpointError, CodecError
from pointstamp.logic import keyed_state_format as written
from pointstamp.logic.state_settings import StateSettings, whole_run
from pointstamp.logic.states import NO_STATE, Keys, States

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from pointstamp.logic.state_chain import StateChain

__all__ = ["Keeper", "KeyedState", "claimed"]

FEW = 64
"""The number of entries of a heap below which past ones are not searched for."""

PART = 1024
"""The number of keys that are brought into memory together."""

K = TypeVar("K")
S = TypeVar("S")


class Keeper(Protocol):
    """Logic that keeps its state by key in a form of its own, or more than a state for each key."""

    def keys(self) -> Collection[Any]:
        """Returns the keys of which it keeps something.

        An iterator over them has those that there were when it was made.
        """

    def entries(self, keys: Collection[Any]) -> Iterable[tuple[Any, Any, Any]]:
        """Returns each of some keys, with its state and a note that a snapshot needs besides.

        The state is plain data that is not changed any more; `NO_STATE` for none. The note is None for none.
        """

    def put(self, key: Any, state: Any, note: Any) -> None:
        """Takes a key of a snapshot: its state, and its note; None where it has none."""


class Tabular(Protocol):
    """Logic that keeps rows: a snapshot has them as columns."""

    def listed(self) -> dict[Any, Any]:
        """The state of each key, as plain data that is not changed any more."""

    def tables(self) -> list[Any]:
        """Returns record batches of the state, one of each kind."""

    def put_tables(self, tables: list[list[Any]], index: int, peers: int) -> None:
        """Takes the batches of all workers of a run, and keeps this worker's part."""


@suggesting
class KeyedState(Generic[K, S]):
    """The state that an operator keeps for each key of this worker: methods of keyed streams take one.

    The type of a key's state depends on the operator, whose documentation describes it. It may be read where
    the worker does not step: in `main`, between steps, or after the run.

    Attributes:
        frontier: Every record before this time is taken in, and none at or after it, in units of the
            stream's times (of datetimes, microseconds since 1970); None when no more can come.
        left_out: The number of records before the frontier of the initial snapshot, which has them already.

    Examples:
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     state = ps.KeyedState()
        ...     with worker.dataflow() as scope:
        ...         sales = scope.to_stream([("ann", 5), ("bob", 2), ("ann", 3)])
        ...         by_name = sales.key_by(lambda sale: sale[0], lambda sale: sale[1])
        ...         by_name.scan(lambda _, amount, total: total + amount, default=int, state=state)
        ...     worker.run()
        ...     return dict(state.items())
        >>> ps.execute(main)
        [{'ann': 8, 'bob': 2}]
    """

    __slots__ = (
        "__weakref__",
        "_begins",
        "_born",
        "_born_in_order",
        "_chain",
        "_claimed",
        "_due",
        "_entries",
        "_keeper",
        "_notes",
        "_rows",
        "_seen",
        "_settings",
        "_snapshot_at",
        "_states",
        "_tables",
        "_ttl",
        "_wake",
        "frontier",
        "left_out",
    )

    def __init__(self) -> None:
        self.frontier: int | None = 0
        # Earlier records were taken by the run of the snapshot.
        self._begins = 0
        self.left_out = 0
        self._states: States[K, S] = States()
        self._ttl: int | None = None
        self._keeper: Keeper | None = None
        self._rows: Tabular | None = None
        # Where checkpoints are made: the receiver of keys that change.
        self._chain: StateChain | None = None
        self._notes: dict[K, Any] = {}
        self._seen: dict[K, int] = {}
        # With a time to live: the time of the first record of each key that is known.
        self._born: dict[K, int] = {}
        # A heap of the times in `_born`, `(time, number, key)`, and of some that are not valid any more.
        self._born_in_order: list[tuple[int, int, K]] = []
        # The frontier of the latest snapshot; before there is one, the initial snapshot's, or 0.
        self._snapshot_at = 0
        # Called when a snapshot is taken.
        self._wake: Callable[[], None] | None = None
        self._due: list[tuple[int, int, K]] = []
        self._entries = 0
        # The operator's settings; before it has one, the snapshot's.
        self._settings: StateSettings | None = None
        self._claimed = False
        # From a snapshot of rows: for each kind the batches, the number of this worker, and of all.
        self._tables: tuple[list[list[Any]], int, int] | None = None

    def __repr__(self) -> str:
        until = "at the end" if self.frontier is None else f"before {self.frontier}"
        return f"<KeyedState {until}: {len(self)} keys>"

    def _listed(self) -> Iterator[tuple[K, S]]:
        """All of it. Where the operator keeps it in another form, it is made when it is asked for."""
        if self._rows is not None:
            return iter(self._rows.listed().items())
        if self._keeper is None:
            return self._states.every()
        entries = self._keeper.entries(self._keeper.keys())
        return iter([(key, state) for key, state, _ in entries if state is not NO_STATE])

    def _state_of(self, key: Any) -> Any:
        """Returns the state of a key; `NO_STATE` for none."""
        if self._rows is not None:
            return self._rows.listed().get(key, NO_STATE)
        if self._keeper is None:
            return self._states.find(key)
        ((_, state, _),) = self._keeper.entries((key,))
        return state

    def __getitem__(self, key: K) -> S:
        state: S = self._state_of(key)
        if state is NO_STATE:
            raise KeyError(key)
        return state

    def get(self, key: K, default: Any = None) -> Any:
        """The state of a key; `default` where there is none.

        Examples:
            >>> import pointstamp as ps
            >>> ps.KeyedState().get("ann", 0)
            0
        """
        state = self._state_of(key)
        return default if state is NO_STATE else state

    def items(self) -> Iterator[tuple[K, S]]:
        """Each key with its state.

        Examples:
            >>> import pointstamp as ps
            >>> state = ps.KeyedState()
            >>> def build(scope):
            ...     keyed = scope.to_stream([5, 6, 7]).key_by(lambda n: n % 2)
            ...     return keyed.scan(lambda _, n, total: total + n, default=int, state=state)
            >>> ps.example(build) and dict(state.items())
            {1: 12, 0: 6}
        """
        return self._listed()

    def __len__(self) -> int:
        if self._rows is None and self._keeper is None:
            return self._states.count()
        return sum(1 for _ in self._listed())

    def __contains__(self, key: object) -> bool:
        return self._state_of(key) is not NO_STATE

    def size(self) -> tuple[int, int] | None:
        """Returns the number of keys, and an estimate of their bytes with their states, by a sample.

        States on disk count among the keys, and not among the bytes. None where the operator keeps them in
        another form: listing that takes long.

        Examples:
            >>> import pointstamp as ps
            >>> state = ps.KeyedState()
            >>> state.size()[0]
            0
        """
        sizes = self._sizes()
        return None if sizes is None else sizes[:2]

    def _sizes(self) -> tuple[int, int, int] | None:
        """Returns the number of keys, and the bytes of their states in memory and on disk."""
        if self._rows is not None or (self._keeper is not None and not self._states.count()):
            return None
        return self._states.sizes()

    # ------------------------------------------------------------ snapshots

    def snapshot(self) -> bytes:
        """Returns the state as bytes, as of `frontier`: its settings, and its contents.

        Raises:
            ValueError: If it is no operator's yet.
            CodecError: If a key or a state cannot be pickled. Then offsets do not move on, either.

        Examples:
            >>> import pointstamp as ps
            >>> state = ps.KeyedState()
            >>> def build(scope):
            ...     keyed = scope.to_stream([5, 6, 7]).key_by(lambda n: n % 2)
            ...     return keyed.scan(lambda _, n, total: total + n, default=int, state=state)
            >>> ps.example(build) and dict(ps.KeyedState.restore([state.snapshot()]).items())
            {1: 12, 0: 6}
        """
        if self._settings is None:
            raise ValueError("this KeyedState is no operator's yet: give it to one as state=")
        made = self._as_bytes(self._settings.now())
        # Not before: state without a snapshot is still needed, and `_as_bytes` may raise.
        if self.frontier is not None:
            self._snapshot_at = self.frontier
        if self._wake is not None:
            self._wake()
        return made

    def _as_bytes(self, of: StateSettings) -> bytes:
        """Returns the state as bytes, for settings."""
        header = (self.frontier, of.operator, dict(of.given), of.index, of.peers)
        if self._rows is not None:
            return written.write(
                [(*header, True), *[written.write_table(batch) for batch in self._rows.tables()]]
            )
        kept = self._entries_of(self._keys())
        entries = [(key, *entry[:4]) for key, entry in kept if entry is not None]
        return written.write([(*header, False), *entries])

    def _keys(self) -> Collection[K]:
        """The keys that are known. One that has no state may be known all the same: it has a timer."""
        kept: Collection[K] = Keys([self._states]) if self._keeper is None else self._keeper.keys()
        return dict.fromkeys([*kept, *self._seen, *self._notes]) if self._seen or self._notes else kept

    def _entries_of(self, keys: Collection[K]) -> Iterator[tuple[K, Any]]:
        """Yields each of some keys with all that is kept of it; with None where nothing is.

        That is whether it has a state, the state, the time of its last record, its note, and the time of its
        first record.
        """
        kept: Iterable[tuple[K, Any, Any]]
        if self._keeper is not None:
            kept = self._keeper.entries(keys)
        else:
            kept = ((key, self._states.find(key), self._notes.get(key)) for key in keys)
        for key, state, note in kept:
            seen, born = self._seen.get(key), self._born.get(key)
            if state is not NO_STATE:
                yield key, (True, state, seen, note, born)
            elif seen is None and note is None:
                yield key, None
            else:
                yield key, (False, None, seen, note, born)

    @classmethod
    def restore(cls, snapshots: Iterable[bytes], *, index: int = 0, peers: int = 1) -> KeyedState[Any, Any]:
        """The state of a worker, from the snapshots of all workers of a run, of however many.

        It is for the operator from which it was taken: one of the same kind, with the same settings and
        functions. The operator leaves out records before the snapshot's frontier, and counts them in
        `left_out`, so that a source may begin earlier. A snapshot of a run that had ended resumes at the
        beginning of time. Reading a snapshot can run code, as unpickling does: restore only snapshots that
        you wrote.

        Args:
            snapshots: The results of `snapshot` on each worker, at one frontier; none of them is an empty
                state.
            index: The worker's number.
            peers: The number of workers now.

        Raises:
            TypeError: For one snapshot that is not in a list, and for an object that is not bytes.
            ValueError: If they are of different frontiers or operators, or not one of each worker of a run.
            CodecError: For bytes that are no snapshot, or a damaged one, or one of an earlier version.

        Examples:
            A second run continues where the first one ended:

            >>> import pointstamp as ps
            >>> def build(scope, numbers, state):
            ...     keyed = scope.to_stream(numbers).key_by(lambda n: n % 2)
            ...     return keyed.scan(lambda _, n, total: total + n, default=int, state=state).capture()
            >>> first = ps.KeyedState()
            >>> _ = ps.example(lambda scope: build(scope, [5, 6, 7], first))
            >>> second = ps.KeyedState.restore([first.snapshot()])
            >>> ps.example(lambda scope: build(scope, [1], second)).extract()
            [(0, [(1, 13)])]
        """
        if not 0 <= index < peers:
            raise ValueError(f"there is no worker {index} of {peers}")
        if isinstance(snapshots, bytes | bytearray | memoryview):
            raise TypeError(
                "restore takes a list of the snapshots of all workers: of one worker, restore([snapshot])"
            )
        made: KeyedState[Any, Any] = cls()
        frontiers = set()
        tables: list[list[Any]] = []
        of: list[StateSettings] = []
        for snapshot in snapshots:
            frontier, settings, of_rows, entries = _parts(snapshot)
            frontiers.add(frontier)
            of.append(settings)
            if of_rows:
                tables += [[] for _ in range(len(entries) - len(tables))]
                for kind, table in zip(tables, entries, strict=True):
                    kind.append(written.read_table(table))
                continue
            keys = with_one_nan([entry[0] for entry in entries])
            for key, (_, has_state, state, seen, note) in zip(keys, entries, strict=True):
                if worker_of_key(key, peers) == index:
                    if has_state:
                        made._states[key] = state
                    if seen is not None:
                        made._seen[key] = seen
                    if note is not None:
                        made._notes[key] = note
        made._settings = whole_run(of, index, peers)
        if len(frontiers) > 1:
            raise ValueError(f"these snapshots are not of one frontier, but {sorted(frontiers, key=str)}")
        made.frontier = frontiers.pop() if frontiers else 0
        made._tables = (tables, index, peers) if tables else None
        return made

    # ------------------------------------------------------------ for checkpoints

    def _head(self) -> tuple[Any, ...]:
        """Returns the part that is not by key, as plain data."""
        assert self._settings is not None
        unit = None if self._settings.clock is None else self._settings.clock.described()
        return (self._settings.operator, dict(self._settings.given)), self.frontier, unit

    def _take_head(self, head: tuple[Any, ...], name: str) -> None:
        """Takes back the part that is not by key, of one worker.

        Raises:
            CheckpointError: If that is of another operator, or of other arguments.
        """
        (operator, given), frontier, unit = head
        assert self._settings is not None
        was, now = (
            StateSettings(operator, given, 0, 0),
            StateSettings(self._settings.operator, self._settings.given, 0, 0),
        )
        if was != now:
            raise CheckpointError(
                f"operator '{name}' is {now}, and in the checkpoint {was}: give it another name, "
                "and say what becomes of the state: Checkpoint(..., new=, drop=)"
            )
        self.frontier = frontier
        if unit is not None and self._settings.clock is not None:
            self._settings.clock.restore(unit)

    def _take_entries(self, entries: Iterable[tuple[K, Any]]) -> None:
        """Takes back the state of keys, as `_entries_of` returned it.

        Of two entries of a key the later holds.
        """
        some = list(entries)
        self._states.bring([key for key, _ in some])
        for key, entry in some:
            state: Any
            has_state, state, seen, note, born = (False, None, None, None, None) if entry is None else entry
            if has_state:
                self._states[key] = state
            else:
                self._states.pop(key, None)
            for known, value in ((self._notes, note), (self._seen, seen), (self._born, born)):
                if value is None:
                    known.pop(key, None)
                else:
                    known[key] = value
        self._states.settle()

    def _has_all_entries(self) -> None:
        """Has the time to live go on, once all entries are back."""
        if self._ttl is not None:
            self._due, self._born_in_order = [], []
            for key, seen in self._seen.items():
                self._due_after(key, seen)
                self._is_born(key, self._born.get(key, seen))

    def _bring(self, keys: Collection[K]) -> None:
        """Brings the states of some keys into memory, before logic touches them."""
        self._states.bring(keys)

    def _settle(self) -> None:
        """Has states go to disk where there is no room for them. Logic calls it when it touches none."""
        self._states.settle()

    def _changes(self, keys: Collection[K]) -> None:
        """Notes that the state of some keys is about to change. Logic calls it for keys without records."""
        if self._chain is not None:
            self._chain.changes(keys)
        self._states.bring(keys)

    # ------------------------------------------------------------ for operators

    def _claim(self, settings: StateSettings, ttl: int | None) -> KeyedState[K, S]:
        """Makes it the state of an operator.

        Raises:
            ValueError: If it belongs to another operator already, or the restored state has other settings.
        """
        if self._claimed:
            raise ValueError("this KeyedState is another operator's already: make one for each")
        if self._settings is not None:
            settings.accept(self._settings)
        self._settings = settings
        self._claimed = True
        self._ttl = ttl
        if self.frontier is None:
            self.frontier = 0  # that run had ended: this one has all its records before it
        self._begins = self._snapshot_at = self.frontier
        if ttl is None:
            self._seen = {}  # it is not brought up to date
            return self
        # A key that has been seen and has no state is due, too.
        for key in dict.fromkeys([*self._states.every_key(), *self._seen]):
            self._due_after(key, self._seen.setdefault(key, self.frontier))
            self._is_born(key, self.frontier)
        return self

    def _another(self) -> KeyedState[K, S]:
        """A state without keys for an operator of the same settings."""
        assert self._settings is not None
        made: KeyedState[K, S] = KeyedState()
        made._states = self._states.another()
        return made._claim(self._settings, self._ttl)

    def _on_snapshot(self, wake: Callable[[], None]) -> None:
        """Has a function called when a snapshot is taken."""
        self._wake = wake

    def _is_born(self, key: K, time: int) -> None:
        """Notes the first record of a key that was not known."""
        self._born[key] = time
        self._entries += 1
        heappush(self._born_in_order, (time, self._entries, key))
        if len(self._born_in_order) > 2 * len(self._born) + FEW:  # most are not valid any more
            self._born_in_order = [born for born in self._born_in_order if self._born.get(born[2]) == born[0]]
            heapify(self._born_in_order)

    def _oldest(self) -> tuple[int, K] | None:
        """Returns the key that has been known for longest, with the time of its first record."""
        heap, born = self._born_in_order, self._born
        while heap and born.get(heap[0][2]) != heap[0][0]:
            heappop(heap)
        return (heap[0][0], heap[0][2]) if heap else None

    def _known_since(self, until: int) -> int | None:
        """Returns the time of the first record of the key that has been known for longest.

        That is `until` where no key is known, and None without a time to live.
        """
        if self._ttl is None:
            return None
        oldest = self._oldest()
        return until if oldest is None else min(oldest[0], until)

    def _never_silent(self, until: int, ttls: int) -> K | None:
        """Returns a key that has been known for many times its time to live; None where there is none."""
        oldest = None if self._ttl is None else self._oldest()
        if oldest is None or self._ttl is None or until - oldest[0] < ttls * self._ttl:
            return None
        return oldest[1]

    def _keep_in(self, keeper: Keeper) -> None:
        """Passes the restored state to the logic that keeps it afterwards.

        Raises:
            TypeError: If rows were restored.
        """
        if self._tables is not None:
            raise TypeError("this snapshot is of an operator on columns: restore it for one of those")
        states, notes = self._states, self._notes
        self._states, self._notes = states.another(), {}
        self._keeper = keeper
        for number, (key, state) in enumerate(states.every()):
            keeper.put(key, state, notes.pop(key, None))
            if number % PART == 0:
                self._states.settle()
        for key, note in notes.items():
            keeper.put(key, None, note)

    def _keep_rows_in(self, rows: Tabular) -> None:
        """Passes the restored rows to the logic that keeps them afterwards.

        Raises:
            TypeError: If something else was restored.
        """
        if self._states.count() or self._notes:
            raise TypeError("this snapshot is of an operator on records: restore it for one of those")
        self._rows = rows
        tables, self._tables = self._tables, None
        if tables is not None:
            rows.put_tables(*tables)

    def _due_after(self, key: K, time: int) -> None:
        assert self._ttl is not None
        self._entries += 1
        heappush(self._due, (time + self._ttl, self._entries, key))

    def _touch(self, key: K, time: int) -> None:
        """Notes an event that touches a key. Forgets its state if it was silent for too long before."""
        if self._is_past(key, time):
            self._drop(key)

    def _is_past(self, key: K, time: int) -> bool:
        """Notes an event that touches a key. Returns whether it was silent for too long before."""
        assert self._ttl is not None
        seen = self._seen.get(key)
        self._seen[key] = time
        if seen is None:
            self._due_after(key, time)
            self._is_born(key, time)
            return False
        if time - seen < self._ttl:
            return False
        self._is_born(key, time)
        return True

    def _expire(self, key: K, time: int) -> None:
        """Forgets the state of a key that has been silent for too long at a time, which does not touch it."""
        assert self._ttl is not None
        seen = self._seen.get(key)
        if seen is not None and time - seen >= self._ttl:
            self._drop(key)

    def _drop(self, key: K) -> None:
        self._states.bring((key,))
        self._states.pop(key, None)

    def _stands_at(self, until: int | None) -> None:
        """Notes the frontier. Restored state keeps its own frontier until the input has reached it."""
        if until is None or (self.frontier is not None and until > self.frontier):
            self.frontier = until

    def _forget_until(self, until: int | None) -> None:
        """Takes note of the frontier, and forgets the keys that are due by then."""
        self._stands_at(until)
        due = self._due
        while until is not None and due and due[0][0] <= until:
            past: list[K] = []
            while due and due[0][0] <= until and len(past) < PART:
                then, _, key = heappop(due)
                seen = self._seen[key]
                if self._ttl is not None and seen + self._ttl > then:
                    self._due_after(key, seen)
                else:
                    past.append(key)
            self._changes(past)
            for key in past:
                self._states.pop(key, None)
                del self._seen[key], self._born[key]
        self._states.settle()


def claimed(
    state: KeyedState[Any, Any] | None, settings: StateSettings, ttl: int | None = None
) -> KeyedState[Any, Any]:
    """Returns the state of an operator: the given one, or a new one.

    Raises:
        ValueError: If it is another's already, or of other settings.
    """
    kept: KeyedState[Any, Any] = KeyedState() if state is None else state
    return kept._claim(settings, ttl)


def _parts(snapshot: bytes) -> tuple[int | None, StateSettings, bool, list[Any]]:
    """Returns the parts of a snapshot: frontier, settings, whether its entries are tables, and the entries.

    Raises:
        CodecError: For bytes that are no snapshot, or a damaged one, or one of an earlier version.
    """
    parts = written.read(snapshot)
    try:
        header, *entries = parts
        frontier, operator, given, index, peers, of_rows = header
    except (TypeError, ValueError):
        raise CodecError("this snapshot has a right checksum and says nothing: no run wrote it") from None
    return frontier, StateSettings(operator, given, index, peers), of_rows, entries
