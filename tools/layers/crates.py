"""The layers of the workspace: dependencies between the crates point one way.

    order <- progress <- engine <- py,   order <- channels <- engine,   channels <- net <- py,
    order <- arrange <- rows <- operators <- py,   columnar <- operators,   engine <- operators,
    order <- events <- operators,   channels <- simulate <- py,   store <- recovery <- py,
    engine <- recovery,   arrange <- spill <- operators,   store <- spill

`progress` and `channels` never use each other, and only `py` names PyO3. The graph is taken from `cargo
tree`; a crate that is missing from the table below is an error, and so is a missing edge of the design, so
that a check that found nothing cannot pass.
"""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

RUST = frozenset({"order", "progress", "channels", "engine"})

# Every crate of the workspace, and the crates that it may reach, however indirectly.
MAY_REACH: dict[str, frozenset[str]] = {
    "order": frozenset(),
    "progress": frozenset({"order"}),
    "channels": frozenset({"order"}),
    "net": frozenset({"channels", "order"}),
    "simulate": frozenset({"channels", "order"}),
    "store": frozenset(),
    "engine": RUST - {"engine"},
    "arrange": frozenset({"order"}),
    "rows": frozenset({"arrange", "order"}),
    "columnar": RUST,
    "spill": frozenset({"arrange", "order", "store"}),
    "recovery": RUST | {"store"},
    "operators": RUST | {"arrange", "columnar", "events", "rows", "spill", "store"},
    "events": frozenset({"order"}),
    "py": RUST
    | {"arrange", "columnar", "events", "net", "operators", "recovery", "rows", "simulate", "spill", "store"},
    "testkit": RUST,
    "benches": RUST | {"testkit", "columnar"},
}

# Edges that the design names: if one is not found, it is the check that is broken.
MUST_REACH = [
    ("progress", "order"),
    ("engine", "progress"),
    ("engine", "channels"),
    ("net", "channels"),
    ("simulate", "channels"),
    ("arrange", "order"),
    ("rows", "arrange"),
    ("recovery", "engine"),
    ("recovery", "store"),
    ("operators", "engine"),
    ("operators", "arrange"),
    ("operators", "columnar"),
    ("operators", "rows"),
    ("operators", "events"),
    ("operators", "spill"),
    ("spill", "arrange"),
    ("spill", "store"),
    ("py", "operators"),
    ("py", "rows"),
    ("py", "engine"),
    ("py", "net"),
    ("py", "simulate"),
    ("py", "arrange"),
    ("py", "columnar"),
    ("events", "order"),
    ("py", "events"),
    ("py", "recovery"),
    ("py", "pyo3"),
]

FORBID_UNSAFE = [
    "order",
    "progress",
    "channels",
    "net",
    "simulate",
    "engine",
    "columnar",
    "arrange",
    "rows",
    "operators",
    "events",
    "store",
    "recovery",
]


def violations(reached: dict[str, set[str]]) -> list[str]:
    """Returns the violations of a graph, given as every crate's dependencies, direct or not."""
    found = []
    for crate, dependencies in sorted(reached.items()):
        if crate not in MAY_REACH:
            found.append(f"{crate} is a new crate: say in tools/layers/crates.py what it may depend on")
            continue
        for name in sorted(dependencies & reached.keys() - MAY_REACH[crate]):
            found.append(f"{crate} depends on {name}, and may not")
        if crate != "py" and any(name.startswith("pyo3") for name in dependencies):
            found.append(f"{crate} depends on PyO3: only py may know Python")
    for crate, name in MUST_REACH:
        if name not in reached.get(crate, set()):
            found.append(f"{crate} does not depend on {name}: is this check looking at the right crates?")
    return found


def read_graph() -> dict[str, set[str]]:
    """Every crate of the workspace with all that it is built from (dev-dependencies left out)."""
    manifests = [*ROOT.glob("crates/*/Cargo.toml"), *ROOT.glob("benches/Cargo.toml")]
    names = {_package_name(manifest): manifest.parent.name for manifest in manifests}
    ours = set(names.values())
    reached = {}
    for package, crate in names.items():
        tree = ["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "-p", package]
        output = subprocess.run(
            [os.environ.get("CARGO", "cargo"), *tree, "--format", "{p}"],
            cwd=ROOT,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        packages = {line.split()[0] for line in output.splitlines() if line.strip()}
        # A crate of others may have the name of a directory of ours (timely depends on a `columnar`).
        others = {f"{name} of others" if name in ours else name for name in packages - names.keys()}
        reached[crate] = {names[name] for name in packages & names.keys() - {package}} | others
    return reached


def _package_name(manifest: Path) -> str:
    for line in manifest.read_text().splitlines():
        if line.startswith("name = "):
            return line.split('"')[1]
    raise ValueError(f"{manifest} names no package")


def lacking_forbid() -> list[str]:
    """The crates that hold no unsafe code, and do not say so to the compiler."""
    return [
        f"crates/{crate}/src/lib.rs does not say #![forbid(unsafe_code)]"
        for crate in FORBID_UNSAFE
        if "#![forbid(unsafe_code)]" not in (ROOT / "crates" / crate / "src/lib.rs").read_text()
    ]
