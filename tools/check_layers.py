"""Checks the module layering: `python tools/check_layers.py` prints violations; exits 1 if there are any.

- Dependencies between the crates point one way (`layers.crates`).
- In each crate (`layers.rust_files`) and in the Python package (`layers.python_files`), no files lie in a
  circle.
- In `crates/engine` and in `pointstamp.spark`, a folder uses only the folders below it (`layers.folders`).

Known violations are listed in `layers.rules`, a list that can only shrink: an entry that is not needed any
more is an error, too.
"""

import sys

from layers import crates, folders, graph, python_files, rules, rust_files


def violations() -> list[str]:
    """Returns the violations of this repository."""
    found = [*crates.violations(crates.read_graph()), *crates.lacking_forbid()]
    graphs = {
        f"crates/{crate.name}": rust_files.arrows(crate / "src")
        for crate in sorted((crates.ROOT / "crates").iterdir())
        if crate.is_dir()
    }
    package = "python/pointstamp"
    graphs[package] = python_files.arrows(crates.ROOT / package)
    graphs[f"{package}/spark"] = graph.inside(graphs[package], "spark")
    for place, arrows in graphs.items():
        if len(arrows) > 1 and not any(arrows.values()):
            found.append(f"{place}: no file names another: is this check looking at the right files?")
        said = [
            *graph.violations(arrows, rules.CIRCLES.get(place, [])),
            *folders.violations(arrows, rules.LAYERS.get(place, {})),
        ]
        found.extend(f"{place}: {line}" for line in said)
    found.extend(f"{place} is gone" for place in sorted({*rules.CIRCLES, *rules.LAYERS} - graphs.keys()))
    return found


def main() -> int:
    """Prints the violations; exits 1 if there are any."""
    found = violations()
    for line in found:
        print(f"layers: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
