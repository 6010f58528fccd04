"""Runs the long checks: `python tools/check_deep.py [--effort N] [--seed N] [PART...]`.

Parts: properties, simulated, executions, kills, resumptions, disk, models, mutants, shuttle, miri, threads,
fuzz; all but mutants when none is named. A part for which this machine lacks a tool is skipped, and the last
lines say which and why. Exits 1 if a part fails, or if none could be run.

Where `make test` draws the same examples each time, this draws them by a seed: another one in each run,
printed with each command, unless one is given.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]

# The property tests' crates, and the files of Python tests that are property tests for the most part.
PROPERTY_CRATES = [
    "pointstamp-order",
    "pointstamp-progress",
    "pointstamp-arrange",
    "pointstamp-columnar",
    "pointstamp-rows",
    "pointstamp-operators",
]
PROPERTY_TESTS = ["tests/model", "tests/operators/test_library.py", "tests/arrow/test_arrow_keyed.py"]

# Tests in which no worker waits for another but by stepping.
SIMULATED_TESTS = ["tests/operators", "tests/loops", "tests/collections", "tests/arrow"]

# Tests of operators whose state may be on disk.
DISK_TESTS = [
    *("tests/collections", "tests/loops", "tests/recovery", "tests/memory", "tests/processes"),
    *("tests/events", "tests/arrow"),
]

# Crates whose tests Miri can run: without sockets, threads that wait for long, and C.
MIRI_CRATES = ["pointstamp-order", "pointstamp-progress", "pointstamp-rows", "pointstamp-operators"]
# Crates whose concurrent parts have models, built with `--cfg shuttle`.
MODELLED_CRATES = ["pointstamp-channels"]
# Crates whose tests are to notice any change of the code, each with the crates whose tests run after its own.
MUTATED_CRATES = {
    "order": ["progress"],
    "progress": ["engine"],
    "channels": ["net", "engine"],
    "arrange": [],
}
# Crates with data that threads share.
THREADED_CRATES = ["pointstamp-channels", "pointstamp-engine"]
# Crates whose unit tests wait for no lock of std, which looks like a race where std is not instrumented.
LOCK_FREE = ["pointstamp-channels"]

FUZZ_SECONDS = 300


class Search(NamedTuple):
    """The effort and the seed of a search."""

    effort: int
    """The cases of `make test` times this."""
    seed: int
    """The seed of random examples."""

    @property
    def env(self) -> dict[str, str]:
        """Returns the variables for property tests in Rust, and for the effort of those in Python."""
        return {"POINTSTAMP_EFFORT": str(self.effort), "PROPTEST_RNG_SEED": str(self.seed)}

    @property
    def option(self) -> str:
        """Returns the option for property tests in Python."""
        return f"--hypothesis-seed={self.seed}"


class Command(NamedTuple):
    """Something to run, with variables added to the environment."""

    words: list[str]
    env: dict[str, str]


class Missing(Exception):
    """A part cannot be run here."""


def cargo() -> str:
    """The cargo to call."""
    return os.environ.get("CARGO", "cargo")


def works(*words: str) -> bool:
    """Whether a command is there and succeeds."""
    try:
        return subprocess.run(words, cwd=ROOT, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def properties(search: Search) -> Iterator[Command]:
    """Property tests, longer than in `make test`."""
    packages = [word for crate in PROPERTY_CRATES for word in ("-p", crate)]
    yield Command([cargo(), "test", "--release", "--locked", *packages], search.env)
    limits = [search.option, "--timeout=7200", "-o", "faulthandler_timeout=7500"]
    yield Command([sys.executable, "-m", "pytest", "-q", *limits, *PROPERTY_TESTS], search.env)


def simulated(search: Search) -> Iterator[Command]:
    """Tests that ask for several workers, in orders that seeds draw."""
    env = {"PYTHONPATH": str(ROOT / "tests/support")}
    for run in range(search.effort // 10 or 1):
        plugin = ["-p", "on_simulation", "--seed", str((search.seed + run) * 1_000_000), search.option]
        yield Command([sys.executable, "-m", "pytest", "-q", "--timeout=600", *plugin, *SIMULATED_TESTS], env)


def executions(search: Search) -> Iterator[Command]:
    """Random dataflows against a sequential interpreter, in random orders: 100,000 with an effort of 10.

    In runs of 2,000, each with a seed of its own: hypothesis keeps its examples, and gets slow.
    """
    limits = ["--timeout=3600", "-o", "faulthandler_timeout=3700"]
    test = "tests/model/test_random_dataflows.py::test_in_whatever_order_workers_run_and_messages_arrive"
    for run in range(5 * search.effort):
        seed = f"--hypothesis-seed={search.seed + run}"
        words = [sys.executable, "-m", "pytest", "-q", *limits, seed, test]
        yield Command(words, {"POINTSTAMP_EFFORT": "50"})


def kills(search: Search) -> Iterator[Command]:
    """Programs that are killed at every call of their store, and at random moments.

    With an effort of 10, 1,000 kills at random; with an effort of 1, as in `make test`, a part of the calls,
    and of the bytes of a checkpoint that are changed.
    """
    limits = [search.option, "--timeout=7200", "-o", "faulthandler_timeout=7500"]
    yield Command([sys.executable, "-m", "pytest", "-q", *limits, "tests/recovery"], search.env)


def resumptions(search: Search) -> Iterator[Command]:
    """Random dataflows that are killed at a drawn step and resumed: 100,000 with an effort of 10.

    In runs of 2,000, as `executions`.
    """
    limits = ["--timeout=7200", "-o", "faulthandler_timeout=7500"]
    tests = [
        f"tests/recovery/test_simulated.py::{test}"
        for test in (
            "test_random_programs_are_killed_and_go_on",
            "test_some_of_them_have_gone_on_from_a_checkpoint",
        )
    ]
    for run in range(5 * search.effort):
        seed = f"--hypothesis-seed={search.seed + run}"
        words = [sys.executable, "-m", "pytest", "-q", *limits, seed, *tests]
        yield Command(words, {"POINTSTAMP_EFFORT": "100"})


def disk(search: Search) -> Iterator[Command]:
    """The tests of collections, graphs and recovery with a budget of memory that has room for nothing."""
    limits = [search.option, "--timeout=7200", "-o", "faulthandler_timeout=7500"]
    env = {"POINTSTAMP_MEMORY": "64 B"}
    yield Command([sys.executable, "-m", "pytest", "-q", *limits, *DISK_TESTS], env)
    packages = ["-p", "pointstamp-arrange", "--tests"]
    yield Command(
        [cargo(), "test", "--release", "--locked", *packages], {**search.env, "POINTSTAMP_STORED": "1"}
    )


def models(_: Search) -> Iterator[Command]:
    """The progress protocol over every interleaving of larger clusters."""
    test = ["-p", "pointstamp-progress", "--test", "explore"]
    yield Command([cargo(), "test", "--release", "--locked", *test, "--", "--ignored"], {})


def mutants(search: Search) -> Iterator[Command]:
    """Changes to the code, one at a time, each of which some test has to notice: about two hours.

    Survivors are in target/mutants/CRATE/outcomes: a test is missing, or the change cannot be noticed, and
    .cargo/mutants.toml says why. A part of a crate: python tools/mutate.py CRATE --shard 1/40
    """
    if importlib.util.find_spec("tree_sitter_rust") is None:
        raise Missing("there is no parser of Rust: .venv/bin/pip install --group mutants")
    for crate, dependents in MUTATED_CRATES.items():
        also = ["--also", *dependents] if dependents else []
        yield Command([sys.executable, "tools/mutate.py", crate, *also, "--seed", str(search.seed)], {})


def shuttle(search: Search) -> Iterator[Command]:
    """Models of the concurrent parts under a scheduler that tries random interleavings."""
    env = {
        "RUSTFLAGS": "--cfg shuttle",
        "CARGO_TARGET_DIR": str(ROOT / "target/shuttle"),
        "POINTSTAMP_EFFORT": str(search.effort),
    }
    packages = [word for crate in MODELLED_CRATES for word in ("-p", crate)]
    yield Command([cargo(), "test", "--release", "--locked", "--lib", *packages, "models"], env)


def miri(_: Search) -> Iterator[Command]:
    """The crates of pure data under Miri, which finds undefined behaviour."""
    if not works("cargo", "+nightly", "miri", "--version"):
        raise Missing("the nightly compiler has no Miri: rustup +nightly component add miri rust-src")
    packages = [word for crate in MIRI_CRATES for word in ("-p", crate)]
    # A few cases of each property: Miri takes hundreds of times as long.
    env = {"MIRIFLAGS": "-Zmiri-disable-isolation", "POINTSTAMP_EFFORT": "0.01"}
    yield Command(["cargo", "+nightly", "miri", "test", "--lib", *packages], env)


def threads(_: Search) -> Iterator[Command]:
    """The queues and the engine under ThreadSanitizer.

    Where std cannot be instrumented, because its sources are missing, its synchronisation is not seen. The
    resulting reports about the test harness and Arc are suppressed, and only the queues are run, which need
    no lock of std. The extension is not run: a library that Python loads would need the sanitizer's runtime
    in Python.
    """
    sysroot = _output("rustc", "+nightly", "--print", "sysroot").strip()
    host = re.search(r"^host: (.*)$", _output("rustc", "+nightly", "-vV"), re.MULTILINE)
    if not sysroot or host is None:
        raise Missing("there is no nightly compiler: rustup toolchain install nightly --component rust-src")
    sources = (Path(sysroot) / "lib/rustlib/src/rust/library/std").is_dir()
    crates, tests = (THREADED_CRATES, ["--lib", "--tests"]) if sources else (LOCK_FREE, ["--lib"])
    packages = [word for crate in crates for word in ("-p", crate)]
    flags = "-Zsanitizer=thread" + ("" if sources else " -Cunsafe-allow-abi-mismatch=sanitizer")
    env = {"RUSTFLAGS": flags, "CARGO_TARGET_DIR": str(ROOT / "target/threads")}
    if not sources:
        print("threads: std is not instrumented; for that, rustup +nightly component add rust-src")
        print(f"threads: only the unit tests of {', '.join(LOCK_FREE)}, and no races in destructors that")
        print("threads: an Arc runs (tools/tsan-suppressions.txt)")
        env["TSAN_OPTIONS"] = f"suppressions={ROOT / 'tools/tsan-suppressions.txt'}"
    words = ["cargo", "+nightly", "test", *(["-Zbuild-std"] if sources else []), "--target", host[1]]
    yield Command([*words, "--no-fail-fast", *tests, *packages], env)


def fuzz(search: Search) -> Iterator[Command]:
    """The parsers that strangers can reach, from the corpora in fuzz/corpus, for some minutes each."""
    if not works("cargo", "+nightly", "fuzz", "--version"):
        raise Missing(
            "there is no cargo-fuzz: cargo install cargo-fuzz (`make test` runs the corpora and "
            "1000 mutations of each entry)"
        )
    for target in sorted((ROOT / "fuzz/fuzz_targets").glob("*.rs")):
        seconds = f"-max_total_time={FUZZ_SECONDS * search.effort // 10 or 1}"
        yield Command(["cargo", "+nightly", "fuzz", "run", target.stem, "--", seconds], {})


def _output(*words: str) -> str:
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""


PARTS: dict[str, Callable[[Search], Iterator[Command]]] = {
    part.__name__: part
    for part in (
        properties,
        simulated,
        executions,
        kills,
        resumptions,
        disk,
        models,
        mutants,
        shuttle,
        miri,
        threads,
        fuzz,
    )
}

# Not for every night: its findings must be examined, and are no failure by themselves.
BY_NAME = ["mutants"]


def check(names: list[str], search: Search, run: Callable[[Command], bool]) -> dict[str, str]:
    """Returns the outcome of each part: "passed", "failed", or "skipped: " and why."""
    ended = {}
    for name in names:
        try:
            commands = list(PARTS[name](search))
        except Missing as why:
            ended[name] = f"skipped: {why}"
            continue
        passed = [run(command) for command in commands]  # a failure does not hide the next
        ended[name] = "passed" if all(passed) else "failed"
    return ended


def run(command: Command) -> bool:
    """Runs a command with its output on ours; says whether it succeeded."""
    variables = "".join(f"{name}={value} " for name, value in command.env.items())
    print(f"\n== {variables}{' '.join(command.words)}", flush=True)
    env = {**os.environ, **command.env}
    return subprocess.run(command.words, cwd=ROOT, env=env, check=False).returncode == 0


def main() -> int:
    """Runs the requested parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--effort", type=int, default=10, help="how many times the cases of `make test` (10)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    given = parser.parse_args()
    if unknown := set(given.parts) - PARTS.keys():
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    search = Search(given.effort, given.seed)
    ended = check(given.parts or [name for name in PARTS if name not in BY_NAME], search, run)
    print(f"\nseed {search.seed}")
    for name, how in ended.items():
        print(f"{name}: {how}")
    return int("failed" in ended.values() or "passed" not in ended.values())


if __name__ == "__main__":
    sys.exit(main())
