"""The scripts behind the Makefile: they name what is missing and how to get it, and enforce limits."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


def prerequisites(python: str, rust: str, *components: str, path: str | None = None) -> tuple[int, str]:
    result = subprocess.run(
        [shutil.which("sh") or "/bin/sh", TOOLS / "prerequisites.sh", python, rust, *components],
        env={**os.environ, "PATH": os.environ["PATH"] if path is None else path},
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert result.stdout == ""
    return result.returncode, result.stderr


def test_nothing_is_missing_here() -> None:
    if shutil.which("cargo") is None or shutil.which("cc") is None:
        pytest.skip("this machine has the wheel, not the tools that build it")
    assert prerequisites(sys.executable, "1.88") == (0, "")


def test_everything_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    status, says = prerequisites("python3", "1.88", "rustfmt", path=str(tmp_path))
    assert status == 1
    assert "Python 3.10 or newer: there is no 'python3'" in says
    assert "python3-venv" in says
    assert "there is no cargo on the PATH" in says
    assert "https://rustup.rs" in says
    assert "apt install build-essential" in says


@pytest.mark.parametrize(
    ("version", "missing"),
    [("1.87.0", True), ("1.88.0", False), ("1.100.1", False), ("2.0.0", False), ("0.99.0", True)],
)
def test_an_old_compiler_is_named(tmp_path: Path, version: str, missing: bool) -> None:
    for tool in ("rustc", "cargo", "cc"):
        program = tmp_path / tool
        program.write_text(f"#!/bin/sh\necho {tool} {version}\n")
        program.chmod(0o755)
    cut = shutil.which("cut")
    assert cut is not None
    (tmp_path / "cut").symlink_to(cut)
    status, says = prerequisites(sys.executable, "1.88", path=str(tmp_path))
    assert status == int(missing)
    assert (f"Rust 1.88 or newer: rustc is {version}" in says) is missing
    assert ("rustup update stable" in says) is missing
    assert "cargo-clippy" not in says
    status, says = prerequisites(sys.executable, "1.88", "clippy", path=str(tmp_path))
    assert status == 1
    assert "rustup component add clippy" in says


def test_a_time_limit_stops_the_command_and_what_it_started() -> None:
    # The grandchild holds the pipe open: it must be stopped too, or this would wait for it.
    command = ["sh", "-c", "sleep 1000 & sleep 1000"]
    result = subprocess.run(
        [sys.executable, TOOLS / "timelimit.py", "0.5", *command],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert result.returncode == 124
    assert "ran for more than 0.5 seconds" in result.stderr


def test_a_time_limit_passes_the_status_on() -> None:
    command = [sys.executable, str(TOOLS / "timelimit.py"), "30", "sh", "-c", "exit 7"]
    assert subprocess.run(command, timeout=380, check=False).returncode == 7
