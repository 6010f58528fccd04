"""The work of `recovery.py` with Pathway, without and with its persistence: prints one line of JSON.

    python benches/python/recovery_pathway.py STATES RECORDS SECONDS

Runs with any Python that has Pathway; this package is not needed. Prints the seconds that the records take
once all states are there. Inputs are persisted, and a recovery works through all of them again: to persist
the states of operators takes a licence key.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time

import pathway as pw

BATCH = 1000


class Sales(pw.Schema):
    """A key and an amount."""

    key: int
    amount: int


class Feed(pw.io.python.ConnectorSubject):
    """Each key once, and then records of 1 % of the keys; the next second another 1 %."""

    def __init__(self, states: int, records: int) -> None:
        super().__init__()
        self._states = states
        self._records = records
        self.begun = 0.0

    def run(self) -> None:
        """Sends all records."""
        for key in range(self._states):
            self.next(key=key, amount=1)
            if key % BATCH == 0:
                self.commit()
        self.commit()
        self.begun = time.perf_counter()
        draw, some = random.Random(7).random, max(1, self._states // 100)
        for number in range(self._records):
            if number % BATCH == 0:
                self.commit()
                base = int(time.monotonic()) % 100 * some
            self.next(key=base + int(draw() * some), amount=1)


def steady(states: int, records: int, every: float, folder: str | None) -> float:
    """Returns the seconds that the records take, with persistence in a folder."""
    feed = Feed(states, records)
    sales = pw.io.python.read(feed, schema=Sales, name="feed", autocommit_duration_ms=100)
    totals = sales.groupby(sales.key).reduce(sales.key, total=pw.reducers.sum(sales.amount))
    pw.io.null.write(totals)
    persistence = None
    if folder is not None:
        persistence = pw.persistence.Config(
            pw.persistence.Backend.filesystem(folder),
            snapshot_interval_ms=int(1000 * every),
        )
    pw.run(persistence_config=persistence, monitoring_level=pw.MonitoringLevel.NONE)
    return time.perf_counter() - feed.begun


def main() -> None:
    """The command line. Each run is a process of its own: Pathway has one graph in each."""
    states, records, every = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    if len(sys.argv) > 4:
        print(steady(states, records, every, sys.argv[4] or None))
        return
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for what, place in (("without", ""), ("with", folder)):
            command = [sys.executable, __file__, *sys.argv[1:4], place]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found[what] = float(done.stdout.splitlines()[-1])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
