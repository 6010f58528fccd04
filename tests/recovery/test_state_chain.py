"""Keyed state in checkpoints: states that change while they are written, and read back."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from effort import examples
from pointstamp._core import Budget, Piece, Reduction
from pointstamp.event_time.clock import Clock
from pointstamp.expr.reducers import Aggregate, Collect
from pointstamp.logic.assigning import Aligned, Counted, Sessions
from pointstamp.logic.joins_in_time import AsOf, Interval, Table
from pointstamp.logic.process import Process
from pointstamp.logic.state import KeyedState
from pointstamp.logic.state_chain import StateChain, read_link
from pointstamp.logic.state_settings import StateSettings
from pointstamp.logic.stateful import Dedup, Largest, Running, Scan, StateMachine
from pointstamp.logic.timed_rows import Results, Rows


class Plain:
    """A state that is a dict."""

    def __init__(self, states: dict[Any, Any]) -> None:
        self.states = states

    def keys(self) -> Any:
        return list(self.states)

    def entries(self, keys: Any) -> Any:
        return [(key, (self.states[key],) if key in self.states else None) for key in keys]


def chain_of(states: dict[Any, Any]) -> StateChain:
    plain: Any = Plain(states)
    return StateChain("totals", plain)


def written(pieces: list[Piece]) -> list[bytes]:
    """Writes pieces as a checkpoint does."""
    return [piece.read() for piece in pieces]


def settled(chain: StateChain, pieces: list[Piece]) -> list[bytes]:
    """Writes pieces into a checkpoint that has them then."""
    contents = written(pieces)
    for link in chain._links:
        link.settle()
    return contents


def read_into(contents: bytes, entries: dict[Any, Any]) -> None:
    """Brings entries up to date with the contents of a piece."""

    def take(pairs: list[tuple[Any, Any]]) -> None:
        for key, entry in pairs:
            if entry is None:
                entries.pop(key, None)
            else:
                entries[key] = entry

    assert read_link(Piece(contents), take) == len(contents)


def read_back(contents: list[bytes]) -> dict[Any, Any]:
    entries: dict[Any, Any] = {}
    for one in contents:
        read_into(one, entries)
    return entries


def test_a_cut_adds_the_keys_that_have_changed_and_what_is_gone() -> None:
    states = {number: [number] for number in range(1000)}
    chain = chain_of(states)
    first = settled(chain, chain.take())
    assert read_back(first) == {number: ([number],) for number in range(1000)}
    with chain:
        chain.changes([1, 2, 1000, 2000])
        states[1].append(5)
        del states[2]
        states[1000] = [0]
    pieces = chain.take()
    [base, changes] = pieces
    assert base is chain._links[0].piece
    [change] = written([changes])
    assert len(change) < len(first[0]) // 50
    found = read_back([*first, change])
    assert found == {key: (state,) for key, state in states.items()}
    assert chain.take() == pieces, "nothing has changed"


def test_what_is_written_follows_what_has_changed() -> None:
    """Two bytes, on average, for a byte that has changed; and at most twice the state is kept."""
    states = {f"key {number}": number for number in range(10_000)}
    chain = chain_of(states)
    known: dict[Piece, int] = {}
    whole = sum(map(len, settled(chain, chain.take())))
    known = {link.piece: link.size for link in chain._links}
    drawn = random.Random(25)
    changed = all_written = folds = 0
    for _ in range(300):
        keys = drawn.sample(sorted(states), 100)
        with chain:
            chain.changes(keys)
            for key in keys:
                states[key] += 1
        changed += len(pickle.dumps([(key, (states[key],)) for key in keys], 5))
        pieces = chain.take()
        new = [piece for piece in pieces if piece not in known]
        all_written += sum(map(len, written(new)))
        known = {link.piece: link.size for link in chain._links}
        folds += len(known) == 1
        assert sum(known.values()) < 2.1 * whole
    assert folds > 1
    assert all_written < 2.2 * changed


def test_a_key_that_is_touched_before_it_is_written_is_written_as_it_was() -> None:
    states: dict[int, list[int]] = {number: [number] for number in range(5000)}
    chain = chain_of(states)
    for _ in range(2):
        before = {key: (list(state),) for key, state in states.items()}
        pieces = chain.take()
        link = chain._links[-1]
        parts = [link.part(0)]
        with chain:
            chain.changes([*range(4990, 5000), 9999])
            for number in range(4990, 5000):
                states[number].append(0)
            states[9999] = [1]
        assert parts[0] is not None
        [*_, last] = written(pieces)
        assert last.startswith(parts[0])
        entries = dict(before)
        read_into(last, entries)
        assert entries == before
        for link in chain._links:
            link.settle()


def test_a_piece_is_the_same_each_time_until_a_checkpoint_has_it() -> None:
    states = {number: [number] for number in range(3000)}
    chain = chain_of(states)
    pieces = chain.take()
    half = chain._links[0].part(1)
    with chain:
        chain.changes(range(3000))
        states.clear()
    whole = written(pieces)
    assert half is not None
    assert half in whole[0]
    again = chain.take()
    assert len(again) == 1, "all that was has gone"
    assert again != pieces
    assert read_back(written(again)) == {}
    assert written(pieces) == whole, "the attempt that failed is made again"


def test_what_was_written_is_not_kept_once_a_checkpoint_has_it() -> None:
    chain = chain_of({1: bytes(10_000)})
    settled(chain, chain.take())
    assert chain._links[0]._parts == []


def test_what_cannot_be_pickled_is_named() -> None:
    chain = chain_of({1: lambda: 0})
    [piece] = chain.take()
    with pytest.raises(ps.CheckpointError, match="the state of operator 'totals' cannot be pickled"):
        piece.read()
    listed: dict[int, list[Any]] = {1: [], 2: []}
    chain = chain_of(listed)
    chain.take()
    listed[1].append(lambda: 0)
    with chain, pytest.raises(ps.CheckpointError, match="'totals' cannot be pickled"):
        chain.changes([1])


def test_nan_is_one_key() -> None:
    nan = float("nan")
    states = {nan: 1, 2: 2}
    chain = chain_of(states)
    first = settled(chain, chain.take())
    with chain:
        chain.changes([nan])
        states[nan] = 5
    entries = read_back([*first, *written(chain.take()[1:])])
    assert len(entries) == 2
    assert sorted(entry[0] for entry in entries.values()) == [2, 5]


# ---------------------------------------------------------------- the logic of each operator


def _append(_key: str, value: int, state: list[int]) -> list[int]:
    state.append(value)
    return state


def _some(_key: str, value: int, state: list[int]) -> tuple[list[int] | None, list[int]]:
    state.append(value)
    return (None if len(state) > 3 else state), [sum(state)]


def _on_record(context: Any, value: int) -> None:
    context.state = [*(context.state or ()), value]
    context.set_timer(context.time + 1 + value % 5)
    if value % 3 == 0:
        context.cancel_timer(context.time + 1 + value % 4)
    if value % 5 == 0:
        context.state = None


def _on_timer(context: Any) -> None:
    if context.state is not None:
        context.state.append(-1)
    if not context.ended and context.time % 3 == 0:
        context.set_timer(context.time + 4)


def _clock() -> Clock:
    return Clock(datetimes=False)


Make = Callable[[KeyedState[Any, Any]], Any]


def _windows(make: Callable[[], Any]) -> Make:
    def made(state: KeyedState[Any, Any]) -> Any:
        logic = make()
        logic.keeps(state)
        return logic

    return made


LOGICS: dict[str, tuple[Make, bool, bool]] = {
    # By name: the logic, whether it has two sides, whether keys can have a time to live.
    "scan": (lambda state: Scan(state, _append, list), False, True),
    "running": (lambda state: Running(state, Reduction.MEAN, None), False, True),
    "state_machine": (lambda state: StateMachine(state, _some, list), False, True),
    "dedup": (Dedup, False, True),
    "top_k": (lambda state: Largest(state, 2, None), False, True),
    "process": (lambda state: Process(state, _clock(), _on_record, _on_timer), False, True),
    "tumbling": (_windows(lambda: Aligned((5, 5, 0), Collect(), _clock(), None)), False, False),
    "sliding, early": (
        _windows(lambda: Aligned((6, 2, 1), Aggregate(_append, list), _clock(), 3)),
        False,
        False,
    ),
    "sessions": (_windows(lambda: Sessions(3, Aggregate(_append, list), _clock())), False, False),
    "counted": (_windows(lambda: Counted(3, Aggregate(_append, list), _clock())), False, False),
    "interval": (lambda state: Interval(state, -2, 3, "full"), True, False),
    "asof": (lambda state: AsOf(state, 4, left=True), True, False),
    "table": (lambda state: Table(state, 5, left=True), True, False),
}


class Source:
    """The state of an operator, as `KeptInOrder` gives it."""

    def __init__(self, state: KeyedState[Any, Any]) -> None:
        self.keys, self.entries = state._keys, state._entries_of


def entries_of(state: KeyedState[Any, Any]) -> dict[Any, Any]:
    kept = state._entries_of(state._keys())
    return copy.deepcopy({key: entry for key, entry in kept if entry is not None})


def _rows(drawn: random.Random, now: int, until: int, sides: bool) -> Rows:
    times = sorted(drawn.randrange(now, until) for _ in range(drawn.randrange(8)))
    values: list[Any] = [drawn.randrange(20) for _ in times]
    if sides:
        values = [(drawn.randrange(2), value) for value in values]
    return Rows([(times, [drawn.randrange(12) for _ in times], values)])


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize(
    ("name", "ttl"), [(name, ttl) for ttl in (None, 4) for name in LOGICS if ttl is None or LOGICS[name][2]]
)
def test_what_is_read_back_is_what_the_operator_kept(
    name: str, ttl: int | None, on_disk: bool, tmp_path: Path
) -> None:
    """Records come, and times close, while a cut is written; attempts fail."""
    make, sides, _ = LOGICS[name]
    most = 0
    budget = Budget(64, str(tmp_path))
    for seed in range(examples(15)):
        drawn = random.Random(f"{name} {seed}")
        state: KeyedState[Any, Any] = KeyedState()
        state._claim(StateSettings(name, {}, 0, 1), ttl)
        disk = budget.disk(name) if on_disk else None
        state._states.spill_to(disk)
        logic = make(state)
        source: Any = Source(state)
        state._chain = chain = StateChain(name, source, disk)
        pieces: list[Piece] = []
        expected: dict[Any, Any] = {}
        before: dict[Piece, bytes] = {}
        now = 0
        for step in range(60):
            if drawn.random() < 0.3:
                contents = [before[piece] if piece in before else piece.read() for piece in pieces]
                assert read_back(contents) == expected, (seed, step)
                if drawn.random() < 0.7:  # it has become a checkpoint
                    before = dict(zip(pieces, contents, strict=True))
                    for link in chain._links:
                        link.settle()
                pieces, expected = chain.take(), entries_of(state)
                most = max(most, len(pieces))
            elif chain._open and drawn.random() < 0.5:
                for link in chain._links:
                    link._many = 1
                    if link.is_open():
                        link.part(link._count)
            until = now + drawn.randrange(1, 3)
            rows = _rows(drawn, now, until, sides)
            with chain:
                for _, keys, _ in rows.parts():
                    chain.changes(keys)
                logic.run(rows, until, Results())
            now = until
    assert most > 1, "a chain has more than its base"
    assert (budget.written > 0) == on_disk
