"""Callbacks that do random things to their worker: step it, drop its dataflows, collect garbage, raise.

A run ends in time and does not panic; where nothing was dropped and nothing raised, no record is lost.
"""

from __future__ import annotations

import gc
import random
import threading
from typing import Any

import pointstamp as ps

__all__ = ["make_trouble"]


class _Trouble:
    """A record whose every method does something."""

    def __init__(self, n: int, act: Any) -> None:
        self.n, self._act = n, act

    def __eq__(self, other: object) -> bool:
        self._act()
        return isinstance(other, _Trouble) and self.n == other.n

    def __hash__(self) -> int:
        self._act()
        return self.n

    def __index__(self) -> int:
        self._act()
        return self.n

    def __del__(self) -> None:
        self._act()

    def __reduce__(self) -> Any:
        self._act()
        return int, (self.n,)


class _Odd(BaseException):
    """No `Exception`: `except Exception` lets it pass."""


def make_trouble(seed: int, workers: int) -> str:
    """Runs a dataflow whose callbacks misbehave.

    Args:
        seed: Determines their actions.
        workers: The number of workers.

    Returns:
        The lost records where something was dropped; an `AssertionError` where nothing was.
    """
    swallow = random.Random(seed).random() < 0.5
    results = ps.execute(lambda worker: _main(worker, seed, swallow), workers=workers)
    sent, there = (sum(result[i] for result in results) for i in range(2))
    if any(dropped for _, _, dropped in results):
        return "dropped"
    assert there >= sent, f"{sent} were sent, {there} came"
    return "whole"


def _main(worker: ps.Worker, seed: int, swallow: bool) -> tuple[int, int, bool]:
    chance = random.Random(seed * 100 + worker.index)
    a, b = ps.InputHandle[Any](), ps.InputHandle[Any]()
    probe = ps.ProbeHandle()
    kept: list[Any] = []
    left = 40
    unordered: Any
    cap: Any
    stream: Any
    dropped = False

    def drop() -> None:
        nonlocal dropped
        for number in worker.installed_dataflows()[:1]:
            worker.drop_dataflow(number)
            dropped = True

    def at_odds(one_in: int, act: Any) -> Any:
        return lambda: act() if chance.randrange(one_in) == 0 else None

    def fail(error: BaseException) -> Any:
        raise error

    acts: list[Any] = [
        worker.step,
        lambda: worker.step_or_park(0.0),
        lambda: worker.step_while(lambda: bool(act())),
        lambda: a.send_batch([1, 2]),
        a.flush,
        lambda: b.send(_Trouble(2, act)),
        lambda: a.advance_to(_Trouble(a.time + 1, act)),  # type: ignore[arg-type, operator]
        lambda: b.advance_to(b.time + 1),  # type: ignore[operator]
        at_odds(10, lambda: chance.choice([a, b]).close()),
        lambda: cap.downgrade(_Trouble(cap.time + 1, act)),
        lambda: kept.append(cap.clone()),
        kept.clear,
        lambda: unordered.session(cap).give(_Trouble(3, act)),
        lambda: probe.less_than(_Trouble(3, act)),  # type: ignore[arg-type]
        at_odds(5, gc.collect),
        at_odds(5, drop if worker.peers == 1 else kept.clear),
        at_odds(60, lambda: fail(ZeroDivisionError("trouble"))),
        at_odds(60, lambda: fail(_Odd("trouble"))),
        at_odds(60, lambda: fail(SystemExit(3))),
        at_odds(60, lambda: fail(GeneratorExit())),
        at_odds(60, lambda: fail(StopIteration())),
        lambda: stream.map(str),
        at_odds(10, lambda: ps.example(lambda scope: scope.to_stream([1]).map(act).capture())),
        at_odds(20, lambda: ps.execute(lambda inner: inner.barrier(), workers=2)),
        at_odds(10, lambda: threading.Thread(target=kept.clear).start()),
    ]

    def act(_: Any = None) -> Any:
        nonlocal left
        if left <= 0:
            return None
        left -= 1
        try:
            chance.choice(acts)()
        except ps.PointstampError:
            pass
        except BaseException:
            if not swallow:
                raise
        return None

    def key(record: Any) -> int:
        act()
        return record.n if isinstance(record, _Trouble) else int(record)

    def build(capability: Any, _info: Any) -> Any:
        capability.drop()

        def logic(port: Any, out: Any) -> None:
            for message, records in port:
                act()
                with out.session(message) as session:
                    act()
                    session.give_all(records)

        return logic

    with worker.dataflow() as scope:
        unordered, cap, stream = scope.new_unordered_input()
        mixed = a.to_stream(scope).concat(b.to_stream(scope), stream)
        out = mixed.exchange(key).inspect(act).unary(ps.Pipeline(), "op", build).probe_with(probe)
        counted = out.map(lambda _: 1).capture()
    with worker.dataflow() as scope:
        a.to_stream(scope).exchange(key).map(lambda r: (act(), r)[1])
    sent = 0
    for turn in range(30):
        try:
            a.send(turn)
        except ps.PointstampError:
            break
        sent += not dropped
        act()
    cap.drop()
    kept.clear()
    a.close()
    b.close()
    for number in worker.installed_dataflows() if dropped else []:
        worker.drop_dataflow(number)
    worker.run()
    return sent, sum(len(records) for _, records in counted.extract()), dropped
