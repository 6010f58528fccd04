"""The outcome of each change: the file that has it, and the summary."""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from pathlib import Path

from mutation.found import Change

MISSED = ("survived", "unreached")
"""No test notices the change; or none comes to it."""


def explained(root: Path) -> list[re.Pattern[str]]:
    """The changes that `.cargo/mutants.toml` gives a reason for: patterns of their names."""
    listed = (root / ".cargo/mutants.toml").read_text()
    # Strings of JSON on lines of their own, which a parser that Python 3.10 has can read.
    return [re.compile(json.loads(line)) for line in re.findall(r'^ *(".*"),$', listed, re.MULTILINE)]


def settled(log: Path) -> set[str]:
    """The changes that need not be made again, by the log of an earlier run: it has not missed them."""
    words = (line.split("\t") for line in log.read_text().splitlines()) if log.exists() else ()
    return {name for name, how in {name: how for how, name, _ in words}.items() if how not in MISSED}


class Outcomes:
    """A log that grows as tests run, over several runs; the last word on a change counts."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.ended: dict[int, tuple[str, str]] = {}
        self._lock = threading.Lock()
        log.parent.mkdir(parents=True, exist_ok=True)

    def put(self, change: Change, how: str, by: str = "") -> None:
        """Notes the end of a change, and the program. A change that some tests reached is not unreached."""
        with self._lock:
            if how == "unreached" and self.ended.get(change.number, ("",))[0] == "survived":
                return
            self.ended[change.number] = (how, change.name)
            with self.log.open("a") as log:
                log.write("\t".join([how, change.name, by]) + "\n")

    def missed(self) -> list[str]:
        """The changes that no test notices."""
        return [f"{how}: {name}" for _, (how, name) in sorted(self.ended.items()) if how in MISSED]

    def summary(self) -> str:
        """All that are missed, and so many of each."""
        counts = sorted(Counter(how for how, _ in self.ended.values()).items())
        return "\n".join([*self.missed(), ", ".join(f"{count} {how}" for how, count in counts)])
