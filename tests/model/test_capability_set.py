"""`CapabilitySet` against an antichain of times."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp.order import Antichain, less_equal

TIMES = st.tuples(st.integers(0, 4), st.integers(0, 4))


def with_capability(check: Callable[[ps.Capability], None]) -> Antichain:
    """Runs a check with a capability at (0, 0); returns the frontier after it."""
    left: list[list[ps.Time]] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow(dims=2) as scope:
            handle, capability, stream = scope.new_unordered_input()
            probe = stream.probe()
        check(capability)
        for _ in range(3):
            worker.step()
        left.append(probe.frontier.elements)
        del handle

    ps.execute(main)
    return Antichain(left[0])


@given(times=st.lists(TIMES, max_size=8), other=TIMES)
def test_it_holds_the_least_of_what_is_inserted(times: list[tuple[int, int]], other: tuple[int, int]) -> None:
    keep: list[ps.CapabilitySet] = []

    def check(capability: ps.Capability) -> None:
        held = ps.CapabilitySet(capability.delayed(time) for time in times)
        capability.drop()
        expected = Antichain(times)
        assert held.times == expected.elements == sorted(cap.time for cap in held)
        assert len(held) == len(expected)
        if expected.less_equal(other):
            with held.delayed(other) as delayed:
                assert delayed.time == other
        else:
            with pytest.raises(ps.TimeError, match="no capability of the set"):
                held.delayed(other)
        keep.append(held)

    assert with_capability(check) == Antichain(times)


@given(times=st.lists(TIMES, min_size=1, max_size=4), frontier=st.lists(TIMES, max_size=4))
def test_downgrade_moves_all_or_nothing(times: Any, frontier: Any) -> None:
    keep: list[ps.CapabilitySet] = []
    possible = all(any(less_equal(a, b) for a in times) for b in Antichain(frontier))

    def check(capability: ps.Capability) -> None:
        held = ps.CapabilitySet(capability.delayed(time) for time in times)
        capability.drop()
        if possible:
            held.downgrade(frontier)
        else:
            with pytest.raises(ps.TimeError):
                held.downgrade(frontier)
        keep.append(held)

    assert with_capability(check) == Antichain(frontier if possible else times)


def test_what_is_superfluous_is_dropped() -> None:
    def check(capability: ps.Capability) -> None:
        held = ps.CapabilitySet([capability.delayed((1, 1))])
        late = capability.delayed((2, 1))
        held.insert(late)
        with pytest.raises(ps.CapabilityError, match="dropped"):
            late.delayed((3, 3))
        held.insert(capability)
        assert held.times == [(0, 0)]
        assert repr(held) == "CapabilitySet(times=[(0, 0)])"
        held.downgrade([])

    assert with_capability(check) == Antichain()
