"""The states of an operator's keys, or times: in memory, and on disk where memory has no room for them.

Owns `States`, a dict of the states that are in memory, which has the others on disk as pickles
(`StatesOnDisk`). Logic calls `bring` with the keys that it is about to touch, and `settle` after that. In
between it reads and writes a dict, and may change states in place. So a state is written
whenever it leaves memory, and is in one place at a time. Without a budget all states are in memory, and both
methods return at once.

The states that leave memory are those that were not brought since the last time that some left, in the order
in which they came, or the other way round where later ones are needed later; then others. An eighth of them
leaves at once, at least, so that looking for them costs a few look-ups for each.

The bytes of states in memory are an estimate, by the sizes of some that are drawn at random.
"""

from __future__ import annotations

from itertools import chain, filterfalse, islice
from random import Random
from sys import getsizeof
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pointstamp._core import Disk, StatesOnDisk

__all__ = ["NO_STATE", "Keys", "States", "size_of"]

SAMPLE = 64
"""The number of states whose size is measured for an estimate of all."""

MOST = 256
"""The number of objects of a state that are measured."""

PART = 1024
"""The number of states that are written at once."""

K = TypeVar("K")
S = TypeVar("S")

NO_STATE: Any = object()
"""No state of a key; None can be one."""


class States(dict[K, S]):
    """States by key. The dict itself has those that are in memory.

    Args:
        latest_first: Whether those that came last leave memory first.
    """

    __slots__ = (
        "_disk",
        "_drawn",
        "_each",
        "_latest_first",
        "_left",
        "_measured",
        "_on",
        "_recent",
        "_spilled",
        "_unmeasured",
    )

    def __init__(self, *, latest_first: bool = False) -> None:
        super().__init__()
        self._latest_first = latest_first
        self._on: Disk | None = None
        self._disk: StatesOnDisk | None = None
        # Whether some have left memory: then the keys that were brought since are noted.
        self._spilled = False
        self._recent: set[K] = set()
        # The keys whose states cannot be pickled.
        self._left: set[K] = set()
        # The bytes of a state and its key, the number of states when that was measured, and the number that
        # were brought since.
        self._each = 0
        self._measured = 0
        self._unmeasured = 0
        self._drawn = Random(26)

    def spill_to(self, disk: Disk | None) -> None:
        """Lets states go to disk; None where memory is not bounded."""
        self._on = disk
        self._disk = None if disk is None else disk.states()

    def another(self) -> States[Any, Any]:
        """Returns an empty one of the same operator."""
        made: States[Any, Any] = States(latest_first=self._latest_first)
        made.spill_to(self._on)
        return made

    def is_unbounded(self) -> bool:
        """Whether all states stay in memory."""
        return self._disk is None

    def drop(self) -> None:
        """Forgets all states."""
        self.clear()
        self.spill_to(self._on)
        self._spilled = False

    def bring(self, keys: Collection[K]) -> None:
        """Brings the states of some keys into memory, those that have one."""
        if self._disk is None:
            return
        self._unmeasured += len(keys)
        if self._spilled:
            self._recent.update(keys)
            # The difference of a set and a dict of this class would go through all of the dict.
            missing = list(filterfalse(self.__contains__, keys))
            if missing:
                self._disk.take(self, list(dict.fromkeys(missing)))

    def settle(self) -> None:
        """Has states leave memory if there is too much in it. To be called when logic keeps no state."""
        disk = self._disk
        if disk is not None and (excess := disk.settle(self.bytes())) and self:
            self._leave(disk, excess)

    def _leave(self, disk: StatesOnDisk, excess: int) -> None:
        recent, left = self._recent, self._left
        each = max(1, self.bytes() // len(self))
        many = min(len(self), excess // each + len(self) // 8 + 1)
        came = reversed(self) if self._latest_first else iter(self)
        keys = [key for key in came if key not in recent]
        if len(keys) < many:
            keys += [key for key in self if key in recent]
        if left:
            left.intersection_update(self)
            keys = [key for key in keys if key not in left]
        del keys[many:]
        for first in range(0, len(keys), PART):
            left.update(disk.put(self, keys[first : first + PART]))
        self._recent = set()
        self._spilled = True
        if len(keys) > 4 * len(self):  # a dict keeps the memory of keys that have left it
            kept = dict(self)
            self.clear()
            self.update(kept)
        disk.settle(self.bytes())

    def bytes(self) -> int:
        """Returns the estimated bytes of the states that are in memory, and of their keys."""
        count = len(self)
        if not count:
            return 0
        changed = self._unmeasured + abs(count - self._measured)
        if changed > max(count, self._measured) // 2 + (16 * SAMPLE if self._each else 0):
            self._unmeasured, self._measured = 0, count
            if len(self._recent) > 2 * count:
                self._recent.intersection_update(self)
            keys = list(self)
            if count > SAMPLE:
                keys = self._drawn.choices(keys, k=SAMPLE)
            self._each = sum(size_of(key) + size_of(self[key]) for key in keys) // len(keys)
        return count * self._each + getsizeof(self) + getsizeof(self._recent)

    def sizes(self) -> tuple[int, int, int]:
        """Returns the number of states, the estimated bytes of those in memory, and the bytes on disk."""
        if self._disk is None:
            self._each = self._measured = 0  # nothing measures it otherwise
            return len(self), self.bytes(), 0
        memory, on_disk = self._disk.sizes()
        return self.count(), self.bytes() + memory, on_disk

    def find(self, key: Any, default: Any = NO_STATE) -> Any:
        """Returns the state of a key wherever it is; of one on disk a copy."""
        state = self.get(key, NO_STATE)
        if state is NO_STATE and self._spilled and self._disk is not None:
            found = self._disk.get(key)
            return default if found is None else found[0]
        return default if state is NO_STATE else state

    def count(self) -> int:
        """Returns the number of states, in memory and on disk."""
        return len(self) + len(self._disk) if self._spilled and self._disk is not None else len(self)

    def every(self) -> Iterator[tuple[K, S]]:
        """Iterates over each key with its state, as they are now; of those on disk, copies."""
        return chain(list(self.items()), self._on_disk())

    def every_key(self) -> Iterator[K]:
        """Iterates over the keys that have a state now."""
        return chain(list(self), (key for key, _ in self._on_disk()))

    def _on_disk(self) -> Iterator[tuple[K, S]]:
        if not self._spilled or self._disk is None:
            return iter(())
        scan = self._disk.scan()  # here, so that it is of this moment
        return chain.from_iterable(iter(scan.some, []))


class Keys:
    """The keys of states, and some more: those that there are when it is iterated over.

    Args:
        parts: States, whose keys may overlap.
        more: Further keys. One of these whose state is on disk may come twice.
    """

    __slots__ = ("_more", "_parts")

    def __init__(self, parts: Sequence[States[Any, Any]], more: Collection[Any] = ()) -> None:
        self._parts = parts
        self._more = more

    def __len__(self) -> int:
        return sum(part.count() for part in self._parts) + len(self._more)

    def __contains__(self, key: object) -> bool:
        return key in self._more or any(part.find(key) is not NO_STATE for part in self._parts)

    def __iter__(self) -> Iterator[Any]:
        here = dict.fromkeys(chain(self._more, *self._parts))
        return chain(here, *[self._on_disk(at, here) for at in range(len(self._parts))])

    def _on_disk(self, at: int, here: dict[Any, None]) -> Iterator[Any]:
        """Iterates over the keys of a part that are on disk, and are not in an earlier part."""
        earlier = self._parts[:at]
        scan = self._parts[at]._on_disk()  # here, so that it is of this moment
        return (
            key for key, _ in scan if key not in here and all(part.find(key) is NO_STATE for part in earlier)
        )


def size_of(value: Any) -> int:
    """Returns the bytes of an object with all that it has, estimated by some of it where that is much."""
    if type(value) in _PLAIN:
        return getsizeof(value)
    total, looked_at = 0, 0
    seen: set[int] = set()
    # Objects that are to be measured, and the number of similar ones that each stands for.
    ahead: list[tuple[Any, float]] = [(value, 1.0)]
    while ahead and looked_at < MOST:
        one, times = ahead.pop()
        looked_at += 1
        total += int(getsizeof(one) * times)
        if type(one) in _PLAIN or id(one) in seen:
            continue
        seen.add(id(one))
        parts = _parts(one)
        if parts:
            some = list(islice(parts, MOST // 8))
            times *= len(parts) / len(some)
            ahead += [(part, times) for part in some]
    return total


_PLAIN = frozenset((int, float, str, bytes, bool, type(None), complex, bytearray, range, type))
"""Types of objects that have no others."""


def _parts(value: Any) -> Collection[Any]:
    """Returns the objects that an object has."""
    if isinstance(value, dict):
        return _Pairs(value)
    if isinstance(value, list | tuple | set | frozenset) or type(value).__name__ == "deque":
        return value  # type: ignore[no-any-return]
    parts = [getattr(value, "__dict__", None)]
    parts += [getattr(value, name, None) for kind in type(value).__mro__ for name in _slots(kind)]
    return [part for part in parts if part is not None]


def _slots(kind: type) -> Iterable[str]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else slots


class _Pairs:
    """The keys and the values of a dict."""

    __slots__ = ("_of",)

    def __init__(self, of: dict[Any, Any]) -> None:
        self._of = of

    def __len__(self) -> int:
        return 2 * len(self._of)

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._of.items())

    def __contains__(self, part: object) -> bool:
        return False
