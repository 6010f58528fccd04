"""Clusters run for some minutes while things go wrong: `python tools/soak.py --minutes 10`.

They are formed, killed, stopped, interrupted, relayed and flooded; functions raise, and callbacks misbehave.
Prints the number of each event, and the outcomes. Exits with 1 where something hung, was lost, panicked, or
left anything behind; such a case is repeated by its seed, as far as the system schedules alike: `--case
killed:123 --times 50`.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from soaking.cases import KINDS, Case, Wrong
from soaking.forked import threads_and_files

SAY_EVERY = 30.0
"""Seconds between two lines of progress."""


def run(kind: str, seed: int, typical: dict[tuple[Any, ...], float]) -> str:
    """Runs one case to its end.

    Raises:
        Wrong: If something is not as it should be.
    """
    case = Case(seed, typical)
    try:
        return KINDS[kind][0](case)
    finally:
        case.close()


def cases(arguments: argparse.Namespace) -> Any:
    """The cases to run: kinds and seeds."""
    if arguments.case:
        kind, _, seed = arguments.case.partition(":")
        for _ in range(arguments.times):
            yield kind, int(seed)
        return
    chance = random.Random(arguments.seed)
    kinds = arguments.kinds.split(",") if arguments.kinds else list(KINDS)
    weights = [KINDS[kind][1] for kind in kinds]
    end = time.monotonic() + 60 * arguments.minutes
    while time.monotonic() < end:
        yield chance.choices(kinds, weights)[0], chance.randrange(1 << 31)


def main() -> int:
    """Runs cases and prints their outcomes; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--kinds", default="", help=f"some of {','.join(KINDS)}")
    parser.add_argument("--case", help="KIND:SEED, to repeat one")
    parser.add_argument("--times", type=int, default=1, help="how often --case is repeated")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    counts: Counter[tuple[str, str]] = Counter()
    wrong: list[str] = []
    typical: dict[tuple[Any, ...], float] = {}
    before, files = threads_and_files()[1], leftovers()
    said = time.monotonic()
    for kind, seed in cases(arguments):
        try:
            counts[kind, run(kind, seed, typical)] += 1
        except Wrong as what:
            counts[kind, "WRONG"] += 1
            wrong.append(f"{kind}:{seed}")
            print(f"--case {kind}:{seed}: {what}"[:6000], flush=True)
        now = threads_and_files()[1]
        if now != before or threading.active_count() > 1:
            wrong.append(f"{kind}:{seed}")
            print(
                f"--case {kind}:{seed}: this process has {now} files, not {before}, {threading.enumerate()}"
            )
            before = now
        if time.monotonic() - said > SAY_EVERY:
            said = time.monotonic()
            print(f"{counts.total()} cases, {len(wrong)} of them wrong", flush=True)
    for path in leftovers() - files:
        wrong.append(path)
        print(f"{path} is left")
    for (kind, outcome), count in sorted(counts.items()):
        print(f"{count:6} {kind}: {outcome}")
    print(f"{counts.total()} cases; wrong: {' '.join(wrong) or 'none'}")
    return 1 if wrong or not counts else 0


def leftovers() -> set[str]:
    """Files of ours among the system's temporary files."""
    return {
        str(path)
        for pattern in (f"soak-{os.getpid()}-*", "pointstamp*")
        for path in Path(tempfile.gettempdir()).glob(pattern)
    }


if __name__ == "__main__":
    sys.exit(main())
