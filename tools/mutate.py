"""Changes a crate in one place at a time, and lists unnoticed changes: `python tools/mutate.py CRATE`.

CRATE is a folder of crates/. Its own tests are run, with a twentieth of their random cases; changes that they
miss are run with all of them, and with the tests of the crates that are named with --also. The last lines are
the changes that no test notices: a test is missing, or the change cannot be noticed, and .cargo/mutants.toml
says why. Exits 1 if there are any. The outcome of each change is in target/mutants/CRATE/outcomes.

The parser is installed with `pip install --group mutants`. The design is described in
tools/mutation/__init__.py.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutation.found import Change, Source, numbered, sources
from mutation.outcomes import Outcomes, explained, settled
from mutation.planted import compilable, copy
from mutation.tests import Program, Trial, built, tried

ROOT = Path(__file__).resolve().parents[1]

# Optimised, or a test takes as long as a build; with all checks of a debug build, which notice changes, too.
PROFILE = {
    "CARGO_PROFILE_DEV_OPT_LEVEL": "1",
    "CARGO_PROFILE_DEV_DEBUG": "0",
    "RUSTFLAGS": "--cap-lints=allow",
}


def chosen(
    found: list[Source], reasons: list[re.Pattern[str]], done: set[str], asked: argparse.Namespace
) -> list[Change]:
    """Keeps the changes that are asked for, and have no explanation."""
    part, parts = (int(number) for number in asked.shard.split("/"))
    for source in found:
        source.changes = [
            change
            for change in source.changes
            if re.search(asked.only, change.name)
            and change.name not in done
            and not any(reason.search(change.name) for reason in reasons)
        ]
    changes = list(numbered(found))
    for source in found:
        source.changes = [change for change in source.changes if (change.number - part) % parts == 0]
    return [change for change in changes if (change.number - part) % parts == 0]


def hunt(
    changes: Iterable[Change],
    programs: Iterable[Program],
    effort: float,
    asked: argparse.Namespace,
    ended: Outcomes,
) -> list[Change]:
    """Runs the programs with each change; returns the changes that none of them notices."""
    env = {"POINTSTAMP_EFFORT": str(effort), "PROPTEST_RNG_SEED": str(asked.seed)}
    trials = sorted((tried(program, env) for program in programs), key=lambda trial: trial.seconds)
    for trial in trials:
        print(
            f"{trial.program.name}: {trial.seconds:.1f} s, reaches {len(trial.reaches)} changes", flush=True
        )

    def run(change: Change) -> bool:
        return _notice(change, trials, asked.patience, ended)

    with ThreadPoolExecutor(asked.jobs) as pool:
        noticed = pool.map(run, changes)
        return [change for change, was in zip(changes, noticed, strict=True) if not was]


def _notice(change: Change, trials: list[Trial], patience: float, ended: Outcomes) -> bool:
    reaching = [trial for trial in trials if change.number in trial.reaches]
    for trial in reaching:
        if how := trial.notices(change.number, patience):
            ended.put(change, how, trial.program.name)
            return True
    ended.put(change, "survived" if reaching else "unreached")
    return False


def main(argv: Sequence[str], root: Path = ROOT) -> int:
    """Runs the requested changes, in a workspace; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("crate")
    parser.add_argument(
        "--also", nargs="*", default=[], metavar="CRATE", help="whose tests see survivors, too"
    )
    parser.add_argument("--only", default="", metavar="REGEX", help="changes whose names match")
    parser.add_argument(
        "--again", action="store_true", help="continues, without changes that were noticed before"
    )
    parser.add_argument("--shard", default="1/1", metavar="K/N", help="each Nth change, from the Kth")
    parser.add_argument(
        "--seed", type=int, default=20, help="of the random cases (20, as in .cargo/config.toml)"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests that run at a time")
    parser.add_argument(
        "--patience", type=float, default=5, help="seconds beyond 8 times what tests take (5)"
    )
    parser.add_argument("--list", action="store_true", help="names the changes, and makes none")
    asked = parser.parse_args(argv)

    crate = Path("crates") / asked.crate
    folder = root / "target/mutants" / asked.crate
    log = folder / "outcomes"
    found = sources(root, crate)
    changes = chosen(found, explained(root), settled(log) if asked.again else set(), asked)
    if asked.list:
        print("\n".join(change.name for change in changes))
        return 0
    if not asked.again:
        log.unlink(missing_ok=True)
    # One for all crates: artefacts of a file are built anew when its changes are removed.
    tree, ended = root / "target/mutants/tree", Outcomes(log)
    env = {**os.environ, **PROFILE, "CARGO_TARGET_DIR": str(root / "target/mutants/build")}
    cargo = os.environ.get("CARGO", "cargo")

    copy(root, tree, apart={source.path for source in found})
    package = f"pointstamp-{asked.crate}"
    check = [cargo, "check", "--locked", "--lib", "-p", package, "--message-format=json"]
    refused = compilable(tree, crate, found, check, env)
    for change in changes:
        if change.number in refused:
            ended.put(change, "uncompilable")
    left = [change for change in changes if change.number not in refused]
    print(f"{len(left)} changes of {package} compile, {len(refused)} do not", flush=True)

    own = built(cargo, tree, [package], env)
    left = hunt(left, own, 0.05, asked, ended)
    if left:
        print(f"{len(left)} are left: with all cases", flush=True)
        left = hunt(left, own, 1, asked, ended)
    if left and asked.also:
        print(f"{len(left)} are left: with the tests of {', '.join(asked.also)}", flush=True)
        hunt(left, built(cargo, tree, [f"pointstamp-{name}" for name in asked.also], env), 1, asked, ended)
    print(ended.summary())
    return int(bool(ended.missed()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
