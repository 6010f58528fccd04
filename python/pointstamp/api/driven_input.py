"""Inputs that `main` drives by an `InputHandle`: their time and their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from pointstamp._core import InputHandle
    from pointstamp.checkpoint import Position
    from pointstamp.types import Time

__all__ = ["DrivenInput"]


class DrivenInput:
    """The time and the end of an input. Subclasses send records.

    A subclass is a context manager that closes its input.
    """

    __slots__ = ("_handle",)

    def __init__(self, handle: InputHandle[Any]) -> None:
        self._handle = handle

    @property
    def time(self) -> Time:
        """The time of records that are sent now."""
        return self._handle.time

    @property
    def position(self) -> Position:
        """The place where the input stands, where checkpoints are made. See `InputHandle.position`."""
        return self._handle.position

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent any more."""
        return self._handle.closed

    def advance_to(self, time: Time) -> None:
        """Moves to a later time: nothing will be sent before it any more.

        Raises:
            TimeError: Unless `time` is at or after `self.time`.
            PointstampError: If the input is closed.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words, collection = scope.new_collection()
            ...         captured = collection.capture()
            ...     words.insert("tick")
            ...     words.advance_to(3)
            ...     words.remove("tick")
            ...     words.close()
            ...     worker.run()
            ...     return captured.extract()
            >>> ps.execute(main)
            [[(0, [('tick', 1)]), (3, [('tick', -1)])]]
        """
        self._handle.advance_to(time)

    def flush(self) -> None:
        """Sends the buffered records.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words, collection = scope.new_collection()
            ...         collection.inspect(lambda word, time, diff: print(word, time, diff))
            ...     words.insert("tick")
            ...     words.flush()
            ...     worker.step()
            >>> ps.execute(main) and None
            tick 0 1
        """
        self._handle.flush()

    def close(self) -> None:
        """Closes the input: nothing will be sent any more. Closing it twice does nothing.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words, collection = scope.new_collection()
            ...     words.close()
            ...     return words.closed
            >>> ps.execute(main)
            [True]
        """
        self._handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
