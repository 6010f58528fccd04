"""The inputs of collections, which `main` drives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from pointstamp import _core
from pointstamp._validation import suggesting
from pointstamp.api.driven_input import DrivenInput

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pointstamp._core import InputHandle, ProbeHandle
    from pointstamp.types import Time

__all__ = ["Changing", "CollectionInput"]

T = TypeVar("T")


class Changing(DrivenInput):
    """An input that changes a collection of some kind. Subclasses have the methods of their kind."""

    __slots__ = ("_strict",)

    def __init__(self, handle: InputHandle[Any], *, strict: bool = False) -> None:
        super().__init__(handle)
        self._strict = strict
        if strict:
            _core.refuse_negative_counts(handle)

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"at {self.time}"
        return f"<{type(self).__name__} {self._handle.place} {state}>"


@suggesting
class CollectionInput(Changing, Generic[T]):
    """Changes a collection, at its current time. `Scope.new_collection` makes it.

    Changes wait until a batch is full, the time advances, `flush()` is called, or the worker steps. Until the
    input advances past a time or is closed, that time stays open downstream, on every worker.

    A call that raises an error for its argument has changed nothing, also a call with many changes: it
    applies its changes after it has read and checked the last one. `play` makes each change as it is read,
    and takes an iterable without an end.

    Examples:
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         words, collection = scope.new_collection()
        ...         counts = collection.value_counts().capture()
        ...     words.insert("tick")
        ...     words.insert("tock")
        ...     words.advance_to(1)
        ...     words.update("tick", 2)
        ...     words.remove("tock")
        ...     words.close()
        ...     return counts
        >>> [counts] = ps.execute(main)
        >>> for time, changes in counts.extract():
        ...     print(time, changes)
        0 [(('tick', 1), 1), (('tock', 1), 1)]
        1 [(('tick', 1), -1), (('tick', 3), 1), (('tock', 1), -1)]
    """

    __slots__ = ()

    def insert(self, record: T) -> None:
        """Adds one of a record.

        Raises:
            TypeError: If a collection cannot keep the record: it cannot be hashed.
            OverflowError: If the input is strict, and has added 2**63 - 1 of the record before.
            PointstampError: If the input is closed.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words, collection = scope.new_collection()
            ...         captured = collection.capture()
            ...     words.insert("tick")
            ...     words.insert("tick")
            ...     words.close()
            ...     worker.run()
            ...     return captured.extract()
            >>> ps.execute(main)
            [[(0, [('tick', 2)])]]
        """
        _core.update_input(self._handle, record, 1)

    def remove(self, record: T) -> None:
        """Takes one of a record away. A count may be below zero, unless the input is strict.

        Raises:
            TypeError: If a collection cannot keep the record: it cannot be hashed.
            ValueError: If the input is strict, and has added fewer.
            PointstampError: If the input is closed.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words, collection = scope.new_collection()
            ...         captured = collection.capture()
            ...     words.insert("tick")
            ...     words.advance_to(1)
            ...     words.remove("tick")
            ...     words.close()
            ...     worker.run()
            ...     return captured.extract()
            >>> ps.execute(main)
            [[(0, [('tick', 1)]), (1, [('tick', -1)])]]
        """
        _core.update_input(self._handle, record, -1)

    def update(self, record: T, diff: int) -> None:
        """Adds so many of a record; takes them away where `diff` is negative.

        Raises:
            TypeError: If a collection cannot keep the record, or `diff` is not an int.
            ValueError: If `diff` is 0, or the input is strict and has added fewer.
            OverflowError: If the input is strict, and has added so many that the count leaves 64 bits.
            PointstampError: If the input is closed.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words, collection = scope.new_collection()
            ...         captured = collection.capture()
            ...     words.update("tick", 3)
            ...     words.update("tick", -1)
            ...     words.close()
            ...     worker.run()
            ...     return captured.extract()
            >>> ps.execute(main)
            [[(0, [('tick', 2)])]]
        """
        _core.update_input(self._handle, record, diff)

    def update_many(self, updates: Iterable[tuple[T, int]]) -> None:
        """Makes every change of an iterable of pairs ``(record, diff)``; after an error, none of them.

        Raises:
            TypeError: If an element is no such pair, or a collection cannot keep its record.
            ValueError: If a diff is 0, or the input is strict and has added fewer of a record.
            PointstampError: If the input is closed.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words, collection = scope.new_collection()
            ...         captured = collection.capture()
            ...     words.update_many([("tick", 3), ("tock", 1), ("tick", -1)])
            ...     words.close()
            ...     worker.run()
            ...     return captured.extract()
            >>> ps.execute(main)
            [[(0, [('tick', 2), ('tock', 1)])]]
        """
        _core.send_updates(self._handle, updates)

    def insert_many(self, records: Iterable[T]) -> None:
        """Adds one of each record of an iterable; after an error, none of them.

        Raises:
            TypeError: If a collection cannot keep a record.
            PointstampError: If the input is closed.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words, collection = scope.new_collection()
            ...         captured = collection.capture()
            ...     words.insert_many(["tick", "tock", "tick"])
            ...     words.close()
            ...     worker.run()
            ...     return captured.extract()
            >>> ps.execute(main)
            [[(0, [('tick', 2), ('tock', 1)])]]
        """
        _core.send_updates(self._handle, records, 1)

    def remove_many(self, records: Iterable[T]) -> None:
        """Takes one of each record of an iterable away, as `remove`; after an error, none of them.

        Raises:
            TypeError: If a collection cannot keep a record.
            ValueError: If the input is strict, and has added fewer.
            PointstampError: If the input is closed.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words, collection = scope.new_collection()
            ...         captured = collection.capture()
            ...     words.insert_many(["tick", "tock"])
            ...     words.advance_to(1)
            ...     words.remove_many(["tick", "tock"])
            ...     words.close()
            ...     worker.run()
            ...     return captured.extract()
            >>> ps.execute(main)
            [[(0, [('tick', 1), ('tock', 1)]), (1, [('tick', -1), ('tock', -1)])]]
        """
        _core.send_updates(self._handle, records, -1)

    def play(self, changes: Iterable[tuple[T, Time, int]], *, probe: ProbeHandle | None = None) -> None:
        """Makes changes that bring their times along, in the order of times, as ``(record, time, diff)``.

        Its argument has the form of `Collection.updates`. The result at every time is that of
        `advance_to(time)` and `update(record, diff)` for each change. It takes less time, because nothing
        returns to Python between two times, and changes of many times travel together. `time` follows when
        they are sent. In the end it is the time of the last change, which stays open.

        Args:
            changes: The changes. An iterable without an end is taken as far as the worker keeps up
                (`Config(high_water=)`).
            probe: The probe that each time has to pass before the next is sent: for effects that are to be
                seen time by time. None where several times may be processed together.

        Raises:
            TypeError: If an element is no such triple, or a collection cannot keep its record.
            TimeError: If a time is not at or after the one before it and `self.time`, or the probe's times
                have another number of coordinates.
            ValueError: If a diff is 0, or the input is strict and has added fewer of a record.
            PointstampError: If the input is closed. After each of these, the changes before are made.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words, collection = scope.new_collection()
            ...         counts = collection.value_counts().capture()
            ...     words.play([("tick", 0, 1), ("tock", 0, 1), ("tick", 3, 2), ("tock", 7, -1)])
            ...     print(words.time)
            ...     words.close()
            ...     return counts
            >>> [counts] = ps.execute(main)
            7
            >>> for time, changes in counts.extract():
            ...     print(time, changes)
            0 [(('tick', 1), 1), (('tock', 1), 1)]
            3 [(('tick', 1), -1), (('tick', 3), 1)]
            7 [(('tock', 1), -1)]
        """
        _core.play_updates(self._handle, changes, probe)
