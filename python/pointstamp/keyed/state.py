"""State by key, of one operator on one worker.

Owns `KeyedState`: plain data in a dict, which can be listed, written as bytes and read back. It is as of a
frontier: it has taken in every record before it, and none after. With a time to live, a key is forgotten
when no record of it has come for so long, in event time; a heap has one entry for each key, so that
forgetting follows the keys that are due.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import islice
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp._core import decode_batch, encode_batch, stable_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["KeyedState"]

SAMPLE = 32
"""Keys whose size is measured for an estimate of all."""

K = TypeVar("K")
S = TypeVar("S")


class KeyedState(Generic[K, S]):
    """What an operator keeps for each key of this worker: `KeyedStream.scan` and its kin take one.

    It may be read where the worker does not step: in `main`, between steps, or after the run.

    Attributes:
        frontier: Every record before this time is taken in, and none at or after it, in units of the
            stream's times (of datetimes, microseconds since 1970); None when no more can come.

    Examples:
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     state = ps.KeyedState()
        ...     with worker.dataflow() as scope:
        ...         sales = scope.to_stream([("ann", 5), ("bob", 2), ("ann", 3)])
        ...         by_name = sales.key_by(lambda sale: sale[0], lambda sale: sale[1])
        ...         by_name.scan(int, lambda total, amount: total + amount, state=state)
        ...     worker.run()
        ...     return dict(state.items())
        >>> ps.execute(main)
        [{'ann': 8, 'bob': 2}]
    """

    __slots__ = ("__weakref__", "_due", "_entries", "_seen", "_taken", "frontier", "states", "ttl")

    def __init__(self) -> None:
        self.frontier: int | None = 0
        self.states: dict[K, S] = {}
        self.ttl: int | None = None
        self._seen: dict[K, int] = {}
        self._due: list[tuple[int, int, K]] = []
        self._entries = 0
        self._taken = False

    def __getitem__(self, key: K) -> S:
        return self.states[key]

    def get(self, key: K, default: Any = None) -> Any:
        """The state of a key; `default` where there is none."""
        return self.states.get(key, default)

    def items(self) -> Iterator[tuple[K, S]]:
        """Each key with its state."""
        return iter(list(self.states.items()))

    def __len__(self) -> int:
        return len(self.states)

    def __contains__(self, key: object) -> bool:
        return key in self.states

    def size(self) -> tuple[int, int]:
        """How many keys there are, and about how many bytes they take with their states, by a sample."""
        rows = len(self.states)
        some = list(islice(self.states.items(), SAMPLE))
        measured = sum(getsizeof(key) + getsizeof(state) for key, state in some)
        return rows, getsizeof(self.states) + measured * rows // max(1, len(some))

    # ------------------------------------------------------------ snapshots

    def snapshot(self) -> bytes:
        """The state as bytes, as of `frontier`."""
        entries = [(key, state, self._seen.get(key)) for key, state in self.states.items()]
        return encode_batch([("keyed state", 1, self.frontier), *entries])

    @classmethod
    def restore(cls, snapshots: Iterable[bytes], *, index: int = 0, peers: int = 1) -> KeyedState[Any, Any]:
        """The state of a worker, from the snapshots of all workers of a run, of however many.

        Reading a snapshot can run code, as unpickling does: restore what you wrote.

        Args:
            snapshots: What `snapshot` returned on each worker, at one frontier.
            index: The worker's number.
            peers: How many workers there are now.

        Raises:
            ValueError: If they are of different frontiers.
            CodecError: For bytes that are no snapshot.
        """
        made: KeyedState[Any, Any] = cls()
        frontiers = set()
        for snapshot in snapshots:
            (_, _, frontier), *entries = decode_batch(snapshot)
            frontiers.add(frontier)
            for key, state, seen in entries:
                if stable_hash(key) % peers == index:
                    made.states[key] = state
                    if seen is not None:
                        made._seen[key] = seen
        if len(frontiers) > 1:
            raise ValueError(f"these snapshots are not of one frontier, but {sorted(frontiers, key=str)}")
        made.frontier = frontiers.pop() if frontiers else 0
        return made

    # ------------------------------------------------------------ for operators

    def claim(self, ttl: int | None) -> KeyedState[K, S]:
        """Makes it the state of an operator.

        Raises:
            ValueError: If it is another's already.
        """
        if self._taken:
            raise ValueError("this KeyedState is another operator's already: make one for each")
        self._taken = True
        self.ttl = ttl
        if ttl is not None:
            for key in self.states:
                self._due_after(key, self._seen.setdefault(key, self.frontier or 0))
        return self

    def _due_after(self, key: K, time: int) -> None:
        assert self.ttl is not None
        self._entries += 1
        heappush(self._due, (time + self.ttl, self._entries, key))

    def touch(self, key: K, time: int) -> None:
        """Notes a record of a key, whose state is gone if it has been silent for too long."""
        assert self.ttl is not None
        seen = self._seen.get(key)
        if seen is None:
            self._due_after(key, time)
        elif time - seen >= self.ttl:
            self.states.pop(key, None)
        self._seen[key] = time

    def forget_until(self, until: int | None) -> None:
        """Takes note of the frontier, and forgets the keys that are due by then."""
        self.frontier = until
        due = self._due
        while until is not None and due and due[0][0] <= until:
            then, _, key = heappop(due)
            seen = self._seen[key]
            if self.ttl is not None and seen + self.ttl > then:
                self._due_after(key, seen)
            else:
                self.states.pop(key, None)
                del self._seen[key]
