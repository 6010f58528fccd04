"""Settings of restarts: when the processes of a computation are started again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pointstamp.errors import ConfigError

__all__ = ["Restart"]


@dataclass(frozen=True, init=False)
class Restart:
    """Starts all processes again from the last checkpoint when one of them is lost.

    A process is lost when it ends without its workers' results: it was killed, or ran out of memory. An
    exception of the program ends the computation, as without restarts, unless `retry_on` names its class.
    Between a loss and the next start there is a wait: 0.1 seconds, and twice as long after each further loss,
    at most 30 seconds.

    Args:
        times: The maximum number of restarts of the processes within a period.
        within: The while, in seconds.
        retry_on: Classes of exceptions of the program that count as a loss.

    Raises:
        ConfigError: If a value cannot work.

    Examples:
        >>> import pointstamp as ps
        >>> ps.Restart(times=3).within
        600.0
    """

    times: int
    """The number of restarts, at most, within a while."""
    within: float
    """The while, in seconds."""
    retry_on: tuple[type[BaseException], ...]
    """Classes of exceptions of the program that count as a loss."""

    def __init__(
        self,
        *,
        times: int = 5,
        within: float = 600.0,
        retry_on: tuple[type[BaseException], ...] = (),
    ) -> None:
        given: Any = times
        if isinstance(given, bool) or not isinstance(given, int) or given < 0:
            raise ConfigError(f"times is a number of restarts from 0 on, and is {times!r}")
        given = within
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < float("inf"):
            raise ConfigError(f"within is a number of seconds above 0, and is {within!r}")
        given = retry_on
        if not isinstance(given, tuple) or not all(
            isinstance(kind, type) and issubclass(kind, BaseException) for kind in given
        ):
            raise ConfigError(f"retry_on is a tuple of classes of exceptions, and is {retry_on!r}")
        object.__setattr__(self, "times", times)  # it is frozen
        object.__setattr__(self, "within", float(within))
        object.__setattr__(self, "retry_on", given)
