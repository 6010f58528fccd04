"""Counts the lines that the tests run: `python tools/coverage_figures.py [PATH...]`, of Python and of Rust.

The Python side is measured by coverage.py, over the tests at the paths (all of them when none is given); code
in other interpreters (executors, launched processes) is not counted. The Rust side needs cargo-llvm-cov and
the compiler's llvm-tools; where one is missing it is skipped, with the command that installs it. Code that
only the tests in Python reach, `crates/py` included, is not counted there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "target" / "coverage"


def python(paths: list[str]) -> str:
    """The figure of the package, after a report by file."""
    DATA.mkdir(parents=True, exist_ok=True)
    coverage = [sys.executable, "-m", "coverage"]
    data = f"--data-file={DATA / 'python'}"
    options = ["--branch", "--source-pkgs=pointstamp", "--concurrency=thread"]
    tests = [
        sys.executable,
        "-m",
        "coverage",
        "run",
        data,
        *options,
        "-m",
        "pytest",
        "-q",
        *(paths or ["tests"]),
    ]
    # Tracing is slow, and one test has a time limit, which is not examined here.
    passed = subprocess.run(
        [*tests, "--timeout=600", "-o", "faulthandler_timeout=900"], cwd=ROOT, check=False
    )
    report = subprocess.run(
        [*coverage, "report", data, "--sort=cover"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    print(report)
    found = re.search(r"^TOTAL.*?(\d+)%$", report, re.MULTILINE)
    if found is None:
        return "failed: coverage.py has no figure"
    return f"{found[1]} % of lines and branches" + ("" if passed.returncode == 0 else ", and tests FAILED")


def rust() -> str:
    """The figure of the crates that are tested without an interpreter."""
    if subprocess.run(["cargo", "llvm-cov", "--version"], capture_output=True, check=False).returncode:
        return "skipped: no cargo-llvm-cov: cargo install cargo-llvm-cov"
    libraries = subprocess.run(
        ["rustc", "--print", "target-libdir"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if not (Path(libraries).parent / "bin" / "llvm-profdata").exists() and "LLVM_PROFDATA" not in os.environ:
        return "skipped: the compiler has no llvm-tools: rustup component add llvm-tools"
    words = [
        "cargo",
        "llvm-cov",
        "--workspace",
        "--exclude",
        "pointstamp-py",
        "--exclude",
        "pointstamp-bench",
    ]
    result = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    print(result.stdout)
    found = re.search(r"^TOTAL(?:\s+\S+){8}\s+([\d.]+)%", result.stdout, re.MULTILINE)
    return f"{found[1]} % of lines" if found and result.returncode == 0 else "failed"


def main() -> int:
    """Prints both figures last."""
    figures = {"Python": python(sys.argv[1:]), "Rust": rust()}
    for language, figure in figures.items():
        print(f"{language}: {figure}")
    return int(any("failed" in figure or "FAILED" in figure for figure in figures.values()))


if __name__ == "__main__":
    sys.exit(main())
