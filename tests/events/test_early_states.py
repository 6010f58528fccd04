"""Early results stand as they were sent, and numbers that make no sense are refused where they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pointstamp as ps


def _append(state: list[int], value: int) -> list[int]:
    state.append(value)
    return state


@pytest.mark.parametrize("how", ["aggregate", "reduce", "collect"])
def test_early_results_are_not_changed_by_later_records(how: str) -> None:
    """A fold may change its state, and a reader its result: neither sees the other."""

    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream(range(10)).event_time(lambda n: n)
        window = on_time.map(lambda n: [n]).window(ps.Tumbling(10), early=3)
        made: dict[str, Callable[[], ps.Stream[Any]]] = {
            "aggregate": lambda: window.aggregate(
                lambda _, value, state: _append(state, value[0]), default=list
            ),
            "reduce": lambda: window.reduce(lambda a, b: _append(a, b[0])),
            "collect": lambda: window.collect(lambda value: value[0]),
        }

        def spoilt(result: Any) -> Any:
            copied = list(result[1])
            result[1].append("spoilt")
            return copied

        return made[how]().map(spoilt).capture()

    assert ps.example(build).extract() == [
        (2, [[0, 1, 2]]),
        (5, [[0, 1, 2, 3, 4, 5]]),
        (8, [[0, 1, 2, 3, 4, 5, 6, 7, 8]]),
        (9, [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]]),
    ]


@pytest.mark.parametrize("ttl", [0, -1])
def test_a_time_to_live_is_more_than_none(ttl: Any) -> None:
    with pytest.raises(ValueError, match="ttl is how long"):
        ps.example(lambda scope: scope.to_stream([1]).key_by(lambda n: n).dedup(ttl=ttl).capture())


@pytest.mark.parametrize("k", [0, -1, 1.5])
def test_the_greatest_are_a_whole_number(k: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="at least 1"):
        ps.example(lambda scope: scope.to_stream([1]).key_by(lambda n: n).top_k_so_far(k).capture())
