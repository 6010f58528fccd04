"""Of the extension module: what is recorded of a worker.

There is no such module when a program runs: `_core.pyi` has these names.
"""

from typing import Any, final

@final
class Recorder:
    def __new__(cls, keeps: bool, keeps_totals: bool = False) -> Recorder: ...
    def take_totals(self) -> list[tuple[list[int], str, tuple[int, int, int, int, int, int]]]: ...
    @property
    def lost(self) -> int: ...
    def take(self, worker: int) -> Any: ...
