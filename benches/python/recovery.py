"""Checkpoints: what they cost and write, and how soon a killed computation goes on.

    python benches/python/recovery.py [--states N] [--records N] [--pairs N] [--changes N] [--megabytes N]
        [--every SECONDS] [--turns N] [--pathway PYTHON] [PART...]

Parts: states, off, pairs, sizes, late, kill, bytewax, pathway, spark; all where none is named. A figure with
an aim in its unit, such as 50 ms, has the aim as its other side. The work is a state for each key, by a
Python closure, or pairs in an arrangement; at each moment 1 % of the keys change, and the next second another
1 %. Bytewax, Pathway and Spark do the same work with states, where they are installed.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from figures import leave

import pointstamp as ps
from pointstamp.connectors import PartitionReader, Source, SQLiteSink

SUBJECT = "recovery"
BATCH = 1000
LENGTH = 1000
"""Bytes of a large state."""

NOISE = random.Random(25).randbytes(1 << 20)
"""Bytes that do not compress, from which large states are cut."""

LIMIT = 600
"""Seconds after which something hangs."""


def noise(drawn: random.Random) -> bytes:
    """A large state."""
    at = drawn.randrange(len(NOISE) - LENGTH)
    return NOISE[at : at + LENGTH]


class Feed(PartitionReader[tuple[int, int, Any]]):
    """Records ``(time, key, value)``: each key once, and then as many as are asked for.

    Args:
        states: How many keys there are.
        large: Whether values are large.
    """

    def __init__(self, states: int, *, large: bool = False) -> None:
        self._states = states
        self._large = large
        self._drawn = random.Random(7)
        self._next = 0
        self.batches = 0
        """How many batches were read: the time of the next one."""
        self.keys: set[int] | None = None
        """Where it is wanted, the keys that were drawn."""
        self.until = states
        """How many records there are so far."""
        self.ended = False

    def read(self) -> list[tuple[int, int, Any]] | None:
        """The next batch; empty where no more are asked for yet."""
        first, end = self._next, min(self._next + BATCH, self.until)
        if first == end:
            return None if self.ended else []
        self._next = end
        if end <= self._states:
            keys: Any = range(first, end)
        else:
            some = max(1, self._states // 100)
            base = int(time.monotonic()) % 100 * some
            draw = self._drawn.random
            keys = [base + int(draw() * some) for _ in range(end - first)]
            if self.keys is not None:
                self.keys.update(keys)
        at, self.batches = self.batches, self.batches + 1
        if self._large:
            return [(at, key, noise(self._drawn)) for key in keys]
        return [(at, key, 1) for key in keys]

    @property
    def offset(self) -> list[int]:
        """The number of records that were read, and of batches."""
        return [self._next, self.batches]

    def seek(self, offset: list[int]) -> None:
        """Goes on behind so many."""
        self._next, self.batches = offset
        self.until = max(self.until, self._next)

    def begin_again(self) -> None:
        """Has each key come once more."""
        self._next, self.until = 0, 0


class Feeding(Source[tuple[int, int, Any]]):
    """The source of a feed."""

    waits = False

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def partitions(self) -> list[str]:
        """The feed."""
        return ["feed"]

    def open(self, _partition: str) -> Feed:
        """The feed."""
        return self._feed


class Pauses:
    """Makes checkpoints in `main`, and notes the longest time without a result during each.

    Args:
        worker: The worker.
        every: The seconds from one to the next.
        moments: When there were results, in order.
    """

    def __init__(self, worker: ps.Worker, every: float, moments: list[float]) -> None:
        self._worker = worker
        self._every = every
        self._moments = moments
        self._made: ps.CheckpointHandle | None = None
        self._first = 0
        self._due = time.perf_counter() + every / 2
        self.found: list[float] = []
        """In milliseconds."""

    def look(self) -> None:
        """To be called between two steps."""
        now = time.perf_counter()
        if self._made is not None:
            if self._made.done:
                during = [*self._moments[self._first :], now]
                self.found.append(longest_gap(during))
                self._made = None
                self._due = now + self._every
        elif now >= self._due and self._moments:
            self._first = len(self._moments) - 1
            self._made = self._worker.checkpoint()


def most(found: list[float]) -> float:
    """Returns the 99th percentile."""
    return sorted(found)[len(found) * 99 // 100] if found else 0.0


class Run:
    """A dataflow with a state for each key, in `main`.

    Args:
        worker: The worker.
        feed: Its records.
        target: Where results are written; None for nowhere.
    """

    def __init__(self, worker: ps.Worker, feed: Feed, target: Path | None = None) -> None:
        self.worker = worker
        self.feed = feed
        self.moments: list[float] = []
        """When there were results."""
        with worker.dataflow() as scope:
            records = scope.read(Feeding(feed), time=_time, name="feed")
            states = records.key_by(_key, _value).scan(_next, default=_none, name="states")
            self.final = states.inspect_batch(self._see).probe()
            if target is not None:
                counts = states.map(_counted)
                self.shown = counts.write(SQLiteSink(target, "states", columns=["key"])).probe()

    def _see(self, _time: Any, _records: list[Any]) -> None:
        self.moments.append(time.perf_counter())

    def take(self, more: int, pauses: Pauses | None = None) -> float:
        """Has more records worked on, while checkpoints are made; returns the seconds that it takes."""
        begin = time.perf_counter()
        self.feed.until += more

        def goes_on() -> bool:
            if pauses is not None:
                pauses.look()
            return self.feed._next < self.feed.until

        self.worker.step_while(goes_on)
        self.feed.until += 1  # a batch that closes the time of the one before
        self.settle(self.final)
        return time.perf_counter() - begin

    def settle(self, probe: ps.ProbeHandle) -> None:
        """Steps until the times of all batches but the last are closed."""
        feed = self.feed
        self.worker.step_while(lambda: feed._next < feed.until or probe.less_than(feed.batches - 1))

    def checkpoint(self) -> float:
        """Makes a checkpoint; returns the seconds that it takes."""
        begin = time.perf_counter()
        made = self.worker.checkpoint()
        self.worker.step_while(lambda: not made.done)
        return time.perf_counter() - begin


def _time(record: tuple[int, int, Any]) -> int:
    return record[0]


def _key(record: tuple[int, int, Any]) -> int:
    return record[1]


def _value(record: tuple[int, int, Any]) -> Any:
    return record[2]


def _none() -> None:
    return None


def _next(_key: Any, value: Any, state: Any) -> Any:
    return value if state is None or isinstance(value, bytes) else state + value


def _counted(pair: tuple[int, Any]) -> tuple[int]:
    return (pair[0],)


def settings(folder: Path | None, every: float | None) -> ps.Config:
    """Settings with checkpoints in a folder; without any where there is none."""
    return ps.Config(checkpoint=None if folder is None else ps.Checkpoint(folder, every=every, keep=1))


class Steady(NamedTuple):
    """The result of a run in which all states are there.

    Attributes:
        seconds: That the records take.
        gap: The longest time between two results, in milliseconds.
        pauses: During each checkpoint the longest time without a result, in milliseconds.
    """

    seconds: float
    gap: float
    pauses: list[float]


def longest_gap(moments: list[float]) -> float:
    """Returns the longest time between two moments, in milliseconds."""
    return 1000 * max(moments[at + 1] - moments[at] for at in range(len(moments) - 1))


def steady(states: int, records: int, folder: Path | None, every: float) -> Steady:
    """Has records change states, with or without checkpoints."""

    def main(worker: ps.Worker) -> Steady:
        run = Run(worker, Feed(states))
        run.take(0)
        if folder is not None:
            run.checkpoint()
        run.moments.clear()
        pauses = None if folder is None else Pauses(worker, every, run.moments)
        seconds = run.take(records, pauses)
        run.feed.ended = True
        return Steady(seconds, longest_gap(run.moments), [] if pauses is None else pauses.found)

    return ps.execute(main, config=settings(folder, None))[0]


def changed(pairs: int, changes: int, folder: Path | None, every: float) -> Steady:
    """Has pairs of an arrangement change, 1,000 at a time, with or without checkpoints."""

    def main(worker: ps.Worker) -> Steady:
        with worker.dataflow() as scope:
            handle, collection = scope.new_collection()
            probe = collection.count().probe()
        for start in range(0, pairs, 100 * BATCH):
            handle.update_many(((key, 0), 1) for key in range(start, min(start + 100 * BATCH, pairs)))
            worker.step()
        handle.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        if folder is not None:
            made = worker.checkpoint()
            worker.step_while(lambda: not made.done)
        drawn, values, some = random.Random(7), dict[int, int](), max(1, pairs // 100)
        moments: list[float] = []
        pauses = None if folder is None else Pauses(worker, every, moments)
        begin = time.perf_counter()
        for at in range(2, 2 + changes // BATCH):
            base = int(time.monotonic()) % 100 * some
            for key in {base + drawn.randrange(some) for _ in range(BATCH)}:
                value = values.get(key, 0)
                values[key] = value + 1
                handle.update_many([((key, value), -1), ((key, value + 1), 1)])
            handle.advance_to(at)
            worker.step_while(lambda at=at: probe.less_than(at))
            moments.append(time.perf_counter())
            if pauses is not None:
                pauses.look()
        seconds = time.perf_counter() - begin
        handle.close()
        return Steady(seconds, longest_gap(moments), [] if pauses is None else pauses.found)

    return ps.execute(main, config=settings(folder, None))[0]


def throughput(what: str, count: int, measure: Callable[[Path | None], Steady], turns: int) -> None:
    """Measures the cost of checkpoints while the dataflow runs, and the longest time without a result."""
    plain, kept = [], []
    for _ in range(turns):
        plain.append(measure(None))
        with tempfile.TemporaryDirectory() as folder:
            kept.append(measure(Path(folder)))
    ours, theirs = (count / median(one.seconds for one in all_of) for all_of in (kept, plain))
    figure = leave(SUBJECT, what, ours, "without", theirs, unit="/s", aim=1 / 0.95, rate=True)
    print(f"{what}: {ours:,.0f} a second, {1 / (figure.ratio or 1):.3f} of without checkpoints", flush=True)
    pauses = [pause for one in kept for pause in one.pauses]
    gap, plain_gap = (max(one.gap for one in all_of) for all_of in (kept, plain))
    leave(SUBJECT, f"{what}: longest time without a result", gap, "without", plain_gap, unit="ms")
    if pauses:
        pause = f"{what}: longest pause of a checkpoint, 99th percentile"
        leave(SUBJECT, pause, most(pauses), "the aim", 50, unit="ms", aim=1)
    print(
        f"longest time without a result: {gap:.0f} ms; without checkpoints {plain_gap:.0f} ms; pauses of "
        f"{len(pauses)} checkpoints: {most(pauses):.0f} ms (99th percentile)",
        flush=True,
    )


def off(records: int, turns: int) -> None:
    """Measures the cost of being able to make checkpoints, where none is made.

    Without a location, a step looks at fewer flags than with one where no checkpoint is made. So what this
    shows is more than what a computation without checkpoints pays.
    """

    def main(worker: ps.Worker) -> float:
        feed = Feed(0)
        with worker.dataflow() as scope:
            numbers = scope.read(Feeding(feed), time=_time).map(_value).filter(bool)
            numbers.exchange(hash).inspect_batch(lambda _time, _batch: None)
        feed.until += records
        begin = time.process_time()
        worker.step_while(lambda: feed._next < feed.until)
        feed.ended = True
        worker.run()
        return time.process_time() - begin

    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(max(turns, 5)):
        with tempfile.TemporaryDirectory() as folder:
            for place, seconds in zip((None, Path(folder)), found, strict=True):
                seconds += ps.execute(main, config=settings(place, None))
    plain, able = map(median, found)
    what = f"{records:,} records without state, a location and no checkpoint"
    leave(SUBJECT, what, able, "no location", plain, aim=1.01)
    print(f"{what}: {able / plain:.3f} of the processor time without a location", flush=True)


def packs(folder: Path) -> dict[str, int]:
    """The packs of a location, with their lengths."""
    return {path.name: path.stat().st_size for path in (folder / "packs").iterdir()}


def sizes(megabytes: int, rounds: int) -> None:
    """Measures a checkpoint of changes: seconds, files, and bytes."""
    states = 3 * megabytes * 10**6 // LENGTH
    some = states // 3

    def main(worker: ps.Worker) -> tuple[float, int]:
        feed = Feed(states, large=True)
        run = Run(worker, feed)
        run.take(0)
        run.checkpoint()
        before, logs = packs(place), len(list((place / "log").iterdir()))
        feed.begin_again()
        run.take(some)
        seconds = run.checkpoint()
        # One entry of the log is kept, and the one before is removed.
        files = len(packs(place).keys() - before.keys()) + len(list((place / "log").iterdir())) - logs + 1
        feed.ended = True
        return seconds, files

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        [(seconds, files)] = ps.execute(main, config=settings(place, None))
    what = f"a checkpoint of {megabytes} MB of changes to {3 * megabytes} MB"
    leave(SUBJECT, what, seconds, "the aim", megabytes / 100, aim=1)
    leave(SUBJECT, f"{what}: files", files, "workers + 1", 2, unit="files", aim=1)
    print(f"{what}: {seconds:.2f} s, {files} files", flush=True)
    written(max(100, states // 10), rounds)


def written(states: int, rounds: int) -> None:
    """Measures the bytes that checkpoints write for bytes that have changed."""

    def main(worker: ps.Worker) -> tuple[int, int]:
        run = Run(worker, Feed(states, large=True))
        run.take(0)
        run.checkpoint()
        known = packs(place)
        all_written = changed = 0
        for _ in range(rounds):
            run.feed.keys = set()
            run.take(max(BATCH, states // 100))
            changed += sum(len(pickle.dumps((key, NOISE[:LENGTH]), 5)) for key in run.feed.keys)
            run.checkpoint()
            now = packs(place)
            all_written += sum(size for name, size in now.items() if name not in known)
            known = now
        run.feed.ended = True
        return all_written, changed

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        [(all_written, changed)] = ps.execute(main, config=settings(place, None))
    what = f"bytes written for bytes changed, {rounds} checkpoints of 1 %"
    leave(SUBJECT, what, all_written, "changed", changed, unit="bytes", aim=4)
    print(f"{what}: {all_written / changed:.2f}", flush=True)


def late(every: float) -> None:
    """Measures the time from a final result to its rows in the target."""

    def main(worker: ps.Worker) -> list[float]:
        run = Run(worker, Feed(1000), Path(folder) / "states.db")
        run.take(0)
        found = []
        for _ in range(5):
            run.take(2 * BATCH)
            begin = time.perf_counter()
            run.settle(run.shown)
            found.append(time.perf_counter() - begin)
        run.feed.ended = True
        return found

    with tempfile.TemporaryDirectory() as folder:
        [found] = ps.execute(main, config=settings(Path(folder) / "state", every))
    leave(SUBJECT, f"shown after it is final, every={every:g}", max(found), "every + 1 s", every + 1, aim=1)
    print(f"shown after it is final, every={every:g}: {max(found):.2f} s at most", flush=True)


def child(folder: Path, states: int) -> None:
    """A program that makes a checkpoint and waits to be killed, or goes on and says when it has a result."""

    def main(worker: ps.Worker) -> None:
        feed = Feed(states, large=True)
        run = Run(worker, feed)
        if worker.resumed is None:
            run.take(0)
            run.checkpoint()
            print("ready", flush=True)
            time.sleep(LIMIT)
            return
        feed.until += 2 * BATCH
        worker.step_while(lambda: not run.moments)
        print("first", flush=True)
        os._exit(0)

    ps.execute(main, config=settings(folder, None))


def kill(megabytes: int) -> None:
    """The time from a kill to the first new result."""
    states = megabytes * 10**6 // LENGTH
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--child", folder, "--states", str(states)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
            assert first.stdout is not None
            assert first.stdout.readline() == "ready\n"
            first.send_signal(signal.SIGKILL)
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=LIMIT)
        seconds = time.perf_counter() - begin
    what = f"from a kill to the first result, {megabytes} MB of state"
    leave(SUBJECT, what, seconds, "the aim", max(1.0, megabytes * 4 / 1000), aim=1)
    print(f"{what}: {seconds:.2f} s", flush=True)


def beside_bytewax(states: int, records: int, every: float) -> None:
    """The same work with Bytewax, with and without its recovery."""
    try:
        import recovery_bytewax
    except ImportError:
        print("Bytewax is not installed, so it is left out: `pip install bytewax` to have it compared.")
        return
    plain = recovery_bytewax.steady(states, records, None, every)
    with tempfile.TemporaryDirectory() as folder:
        kept = recovery_bytewax.steady(states, records, Path(folder), every)
    leave(
        SUBJECT,
        f"Bytewax: {records:,} records, every={every:g}",
        records / kept,
        "without",
        records / plain,
        unit="/s",
        rate=True,
    )
    print(f"Bytewax: {records / kept:,.0f} a second, {plain / kept:.3f} of without recovery", flush=True)
    beside("Bytewax", states, records, kept, every)


def beside(peer: str, states: int, records: int, seconds: float, every: float) -> None:
    """Measures the same work with checkpoints, beside a peer that takes so many seconds."""
    with tempfile.TemporaryDirectory() as folder:
        ours = steady(states, records, Path(folder), every).seconds
    what = f"{records:,} records, {states:,} states, with recovery, beside {peer}"
    leave(SUBJECT, what, records / ours, peer, records / seconds, unit="/s", rate=True)
    print(f"{what}: {records / ours:,.0f} a second, {peer} {records / seconds:,.0f}", flush=True)


def beside_program(peer: str, command: list[str], states: int, records: int, every: float) -> None:
    """The same work with a peer, as a program that prints seconds without recovery and with it."""
    try:
        done = subprocess.run(
            [*command, str(states), str(records), str(every)],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=4 * LIMIT,  # two runs, of a peer that may be slow
        )
    except (OSError, subprocess.SubprocessError) as error:
        print(f"{peer} is left out: {error}", flush=True)
        return
    found = json.loads(done.stdout.splitlines()[-1])
    if found["without"] is not None:
        what = f"{peer}: {records:,} records, every={every:g}"
        plain = records / found["without"]
        leave(SUBJECT, what, records / found["with"], "without", plain, unit="/s", rate=True)
    beside(peer, states, records, found["with"], every)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=1_000_000, help="keyed states (default: 1,000,000)")
    parser.add_argument("--records", type=int, default=10_000_000, help="records (default: 10,000,000)")
    parser.add_argument("--megabytes", type=int, default=100, help="of changes (default: 100)")
    parser.add_argument(
        "--state", type=int, default=1000, help="megabytes of state when killed (default: 1000)"
    )
    parser.add_argument("--every", type=float, default=5.0, help="seconds between checkpoints (default: 5)")
    parser.add_argument("--rounds", type=int, default=200, help="checkpoints whose bytes are counted")
    parser.add_argument("--turns", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument(
        "--pairs", type=int, default=10_000_000, help="pairs in an arrangement (default: 10,000,000)"
    )
    parser.add_argument("--changes", type=int, default=2_000_000, help="of pairs (default: 2,000,000)")
    parser.add_argument(
        "--pathway",
        default="target/pathway/bin/python",
        help="a Python that has Pathway (default: %(default)s)",
    )
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("parts", nargs="*", metavar="PART", help="the parts to run (default: all)")
    options = parser.parse_args()
    if options.child is not None:
        child(options.child, options.states)
        return
    states, records, every = options.states, options.records, options.every
    pairs, changes, turns = options.pairs, options.changes, options.turns
    here = Path(__file__).parent
    pathway = [options.pathway, str(here / "recovery_pathway.py")]
    spark = [sys.executable, str(here / "recovery_spark.py")]
    parts: dict[str, Callable[[], None]] = {
        "states": lambda: throughput(
            f"{records:,} records, {states:,} states, every={every:g}",
            records,
            lambda folder: steady(states, records, folder, every),
            turns,
        ),
        "off": lambda: off(records, turns),
        "pairs": lambda: throughput(
            f"{changes:,} changes of {pairs:,} pairs, every={every:g}",
            changes,
            lambda folder: changed(pairs, changes, folder, every),
            turns,
        ),
        "sizes": lambda: sizes(options.megabytes, options.rounds),
        "late": lambda: late(every),
        "kill": lambda: kill(options.state),
        "bytewax": lambda: beside_bytewax(states, records, every),
        "pathway": lambda: beside_program("Pathway", pathway, states, records, every),
        "spark": lambda: beside_program("Spark", spark, states, records, every),
    }
    if unknown := set(options.parts) - set(parts):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    for part in options.parts or parts:
        parts[part]()


if __name__ == "__main__":
    main()
