"""Of the extension module: what is recorded of a worker.

There is no such module when a program runs: `_core.pyi` has these names.
"""

from typing import Any, final

@final
class Recorder:
    def __new__(cls, keeps: bool) -> Recorder: ...
    @property
    def lost(self) -> int: ...
    def take(self, worker: int) -> Any: ...
