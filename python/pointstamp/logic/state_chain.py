"""State by key as checkpoints write it: a base, and the keys that have changed since.

Owns `StateChain`. A checkpoint refers to the pieces that an earlier one wrote, so that it writes only
changes. Invariant: the pieces of a cut, read in order, have for each key the operator's state at that cut.

A cut does not copy state. It notes which keys it has to write, and a thread of checkpoints pickles them, some
at a time, while the dataflow runs. Logic may change a state in place. So the keys that it is about to touch
are pickled first, and while it runs nothing else reads its state.

Costs: a set of the keys that have changed since the last cut; while a base is written, a list of all keys.
Written pieces are dropped from memory once a checkpoint has them. A chain is rewritten, as a base, when more
bytes are behind the base than in it. Then, on average, two bytes are written for a byte that has changed, and
at most twice the state is kept. Where memory is bounded, parts wait for the checkpoint on disk.
"""

from __future__ import annotations

import pickle
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any

from pointstamp._core import Piece, pairs_with_one_nan
from pointstamp.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from types import TracebackType

    from pointstamp._core import Disk, PiecesOnDisk
    from pointstamp.logic.declared_state import WaitingByKey

__all__ = ["StateChain", "read_link"]

_FEWEST_BYTES, _MOST_BYTES = 2**15, 2**17
"""The size of a part, which is pickled in a millisecond or less. Meanwhile nothing else has the GIL."""

_LENGTH = 8
"""The bytes of the length that is in front of each part."""


class StateChain:
    """The pieces that hold the keyed state of an operator.

    Logic works inside of ``with chain:``, and calls `changes` before it touches a key.

    Args:
        name: The operator's name.
        source: Its state.
        disk: The place for parts that are not in a checkpoint yet; None where memory is not bounded.
    """

    __slots__ = ("_changed", "_disk", "_links", "_lock", "_name", "_open", "_source")

    def __init__(self, name: str, source: WaitingByKey, disk: Disk | None = None) -> None:
        self._name = name
        self._source = source
        self._disk = disk
        self._lock = Lock()
        self._links: list[_Link] = []
        # The keys that were touched since the last cut; not noted before the first.
        self._changed: set[Any] = set()
        # Links with keys that are not pickled yet.
        self._open: list[_Link] = []

    def __enter__(self) -> None:
        # No limit: the other holder pickles one part, which takes a millisecond, and releases it.
        self._lock.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()

    def changes(self, keys: Iterable[Any]) -> None:
        """Notes that the state of some keys is about to change. Called while the lock is held."""
        for link in self._open:
            link.write_first(keys)
        if self._links:
            self._changed.update(keys)

    def resume(self, pieces: list[Piece], sizes: list[int]) -> None:
        """Continues with the pieces of the checkpoint, of these lengths in bytes."""
        self._links = [_Link(self, piece, size) for piece, size in zip(pieces, sizes, strict=True)]

    def take(self) -> list[Piece]:
        """Returns the pieces that have all state, of which at most one is new. Called at a cut."""
        with self._lock:
            changed, self._changed = self._changed, set()
            keys = self._source.keys()
            behind = sum(link.size for link in self._links[1:])
            if not self._links or behind > self._links[0].size or 2 * len(changed) > len(keys):
                self._links = [_Link(self)]
                self._links[0].write_all(iter(keys))
            elif changed:
                self._links.append(_Link(self))
                self._links[-1].write_these(changed)
            # Earlier attempts have ended: nothing writes a piece that is no link any more.
            self._open = [link for link in self._links if link.is_open()]
            return [link.piece for link in self._links]

    def written(self, keys: Collection[Any], *, gone: bool) -> bytes:
        """Pickles the entries of some keys; where `gone`, also of keys without state.

        Raises:
            CheckpointError: If one cannot be pickled.
        """
        entries = [pair for pair in self._source.entries(keys) if gone or pair[1] is not None]
        try:
            part = pickle.dumps(entries, 5)
            return len(part).to_bytes(_LENGTH, "little") + part
        except Exception as error:
            raise CheckpointError(
                f"the state of operator '{self._name}' cannot be pickled: {type(error).__name__}: {error}. "
                "Keep plain data, or write an operator of your own with a snapshot() that returns some"
            ) from error


class _Link:
    """One piece of a chain: the contents that `Piece.of_parts` reads.

    Args:
        chain: The chain.
        piece: A piece that a checkpoint has already.
        size: Its length in bytes.
    """

    __slots__ = ("_chain", "_count", "_done", "_keys", "_left", "_many", "_parts", "piece", "size")

    def __init__(self, chain: StateChain, piece: Piece | None = None, size: int = 0) -> None:
        self._chain = chain
        self.piece = Piece.of_parts(self) if piece is None else piece
        self.size = size
        self._parts: list[bytes] | PiecesOnDisk = [] if chain._disk is None else chain._disk.pieces()
        self._count = 0
        # The keys that are still to be looked at, in order; None once all are pickled.
        self._keys: Any = None
        # Of a base the keys that were pickled out of turn; of changes those that are not pickled.
        self._done: set[Any] = set()
        self._left: set[Any] | None = None
        self._many = 64

    def write_all(self, keys: Iterator[Any]) -> None:
        """Has all keys written. Of two keys that are equal one is enough."""
        self._keys = keys

    def write_these(self, keys: set[Any]) -> None:
        """Has some keys written, and also that nothing is kept of them."""
        self._keys = iter(list(keys))
        self._left = keys

    def is_open(self) -> bool:
        """Whether there are keys that are not pickled."""
        return self._keys is not None

    def write_first(self, keys: Iterable[Any]) -> None:
        """Pickles the entries of some keys that are still to be written, before they change."""
        if self._left is None:
            first = set(keys) - self._done
            self._done |= first
        else:
            first = self._left.intersection(keys)
            self._left -= first
        if first:
            self._add(first)

    def _add(self, keys: Collection[Any]) -> int:
        part = self._chain.written(keys, gone=self._left is not None)
        self._parts.append(part)
        self._count += 1
        self.size += len(part)
        return len(part)

    def part(self, number: int) -> bytes | None:
        """Returns a part of the contents; None behind the last. Called on a thread of checkpoints."""
        with self._chain._lock:
            while number >= self._count and self._keys is not None:
                self._pickle_some()
            if number >= self._count:
                return None
            return self._parts[number] if isinstance(self._parts, list) else self._parts.read(number)

    def _pickle_some(self) -> None:
        keys = list(islice(self._keys, self._many))
        if not keys:
            self._keys, self._left = None, None
            self._done.clear()
            self._chain._open = [link for link in self._chain._open if link is not self]
            return
        if self._left is None:
            keys = [key for key in keys if key not in self._done]
        else:
            keys = [key for key in keys if key in self._left]
            self._left.difference_update(keys)
        if keys:
            length = self._add(keys)
            if length < _FEWEST_BYTES:
                self._many *= 2
            elif length > _MOST_BYTES:
                self._many = max(self._many // 2, 1)

    def settle(self) -> None:
        """A checkpoint has the contents: they are dropped."""
        with self._chain._lock:
            self._parts, self._count = [], 0


def read_link(piece: Piece, take: Callable[[list[tuple[Any, Any]]], None]) -> int:
    """Passes the entries of a piece to a function, some at a time, and returns the length of the piece.

    The entry of a key of which nothing is kept is None. Pieces are read in order: of two entries of a key the
    later holds.
    """
    return piece.split_into(lambda part: take(pairs_with_one_nan(pickle.loads(part))))
