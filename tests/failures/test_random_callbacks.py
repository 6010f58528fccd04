"""Callbacks do random things to their worker: runs end in time, do not panic, and lose nothing in silence."""

import random

import pytest

from clusters import Cluster
from reentrant import PRELUDE, output

PROGRAM = """
import random
def main(worker):
    chance = random.Random(SEED * 100 + worker.index)
    a, b = ps.InputHandle(), ps.InputHandle()
    probe, kept, sent = ps.ProbeHandle(), [], [0]
    left = [40]
    dropped = set()

    class Trouble:
        def __init__(self, n): self.n = n
        def __eq__(self, other): act(); return self.n == other.n
        def __hash__(self): act(); return self.n
        def __index__(self): act(); return self.n
        def __del__(self): act()
        def __reduce__(self): act(); return (int, (self.n,))

    def drop():
        for number in worker.installed_dataflows()[:1]:
            worker.drop_dataflow(number)
            dropped.add(number)

    acts = [
        worker.step,
        lambda: worker.step_or_park(0.0),
        lambda: (a.send(1), a.flush()),
        lambda: b.send(Trouble(2)),
        lambda: a.advance_to(Trouble(a.time + 1)),
        lambda: b.advance_to(b.time + 1),
        lambda: (a if chance.random() < 0.5 else b).close() if chance.random() < 0.1 else None,
        lambda: cap.downgrade(Trouble(cap.time + 1)),
        lambda: kept.append(cap.clone()),
        lambda: kept.clear(),
        lambda: unordered.session(cap).give(Trouble(3)),
        lambda: probe.less_than(Trouble(3)),
        lambda: gc.collect() if chance.random() < 0.2 else None,
        lambda: drop() if worker.peers == 1 and chance.random() < 0.2 else None,
        lambda: 1 // 0 if chance.random() < 0.02 else None,
        lambda: stream.map(str),
        lambda: threading.Thread(target=kept.clear).start() if chance.random() < 0.1 else None,
    ]

    def act(_=None):
        if left[0] <= 0:
            return
        left[0] -= 1
        try:
            chance.choice(acts)()
        except ps.PointstampError:
            pass

    def key(record):
        act()
        return record.n if isinstance(record, Trouble) else int(record)

    def build(capability, info):
        capability.drop()
        def logic(port, out):
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
        counted = out.map(lambda r: 1).capture()
    with worker.dataflow() as scope:
        a.to_stream(scope).exchange(key).map(lambda r: (act(), r)[1])
    for turn in range(30):
        try:
            a.send(turn)
            if not dropped:
                sent[0] += 1
        except ps.PointstampError:
            break
        act()
    cap.drop()
    kept.clear()
    a.close()
    b.close()
    for number in worker.installed_dataflows() if dropped else []:
        worker.drop_dataflow(number)
    worker.run()
    return sent[0], sum(len(records) for _, records in counted.extract()), bool(dropped)
"""

CHECK = """
def check(results):
    if not any(dropped for _, _, dropped in results):
        assert sum(there for _, there, _ in results) >= sum(sent for sent, _, _ in results), results
"""

SEEDS = range(8)


@pytest.mark.parametrize("workers", [1, 2])
def test_whatever_callbacks_do_on_threads(workers: int) -> None:
    program = "\n".join(
        f"SEED = {seed}\ntry:\n    check(ps.execute(main, workers={workers}))\n"
        "except (ps.PointstampError, ZeroDivisionError) as error:\n    pass"
        for seed in SEEDS
    )
    said = output(PROGRAM + CHECK + program + '\nsay("ended")\n')
    assert "ended" in said.splitlines(), said


@pytest.mark.parametrize("seed", [random.Random(0).randrange(10**6), 7])
def test_whatever_callbacks_do_in_processes(seed: int) -> None:
    with Cluster(f"{PRELUDE}\nSEED = {seed}\n{PROGRAM}") as cluster:
        cluster.end(30)
        for process in cluster.processes.values():
            assert "panic" not in process.err, cluster.processes
            if process.code != 0:
                assert "ZeroDivisionError" in process.err or "pointstamp." in process.err, cluster.processes
