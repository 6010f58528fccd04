"""Known defects, licences and sources of what is used, by cargo-deny and pip-audit: `python tools/audit.py`.

Each needs its database, and so the network. One that is not there, or cannot reach its database, is skipped
with the reason; exits 1 if one finds something.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# What the tools say when it is the network that fails, not what they look at.
UNREACHABLE = (
    "ConnectionError",
    "ServiceError",
    "failed to fetch advisory database",
    "HTTPError",
    "Could not connect",
    "Max retries",
)


def audit(name: str, words: list[str], why_not: str) -> str:
    """Runs a tool: "passed", "failed", or "skipped: " and why."""
    print(f"== {' '.join(words)}", flush=True)
    if (
        shutil.which(words[0]) is None
        or subprocess.run([*words[:2], "--version"], capture_output=True).returncode
    ):
        return f"skipped: {why_not}"
    result = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    said = result.stdout + result.stderr
    print(said.strip(), flush=True)
    if result.returncode == 0:
        return "passed"
    if any(word in said for word in UNREACHABLE):
        return f"skipped: {name} cannot reach its database of defects"
    return "failed"


def main() -> int:
    """Runs both; prints how they ended."""
    bans = ["cargo", "deny", "check"]
    pins = [sys.executable, "-m", "pip_audit", "--skip-editable", "--progress-spinner", "off"]
    ended = {
        "cargo deny": audit("cargo deny", bans, "there is no cargo-deny: cargo install cargo-deny"),
        "pip-audit": audit("pip-audit", pins, "there is no pip-audit: make audit installs it"),
    }
    for name, how in ended.items():
        print(f"{name}: {how}")
    return int("failed" in ended.values())


if __name__ == "__main__":
    sys.exit(main())
