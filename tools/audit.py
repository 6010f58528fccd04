"""Known defects, licences and sources of dependencies, by cargo-deny and pip-audit: `python tools/audit.py`.

Each needs its database, and so the network. A tool that is missing, or cannot reach its database, is skipped
with the reason; exits 1 if one finds something.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# The tools' messages for a failure of the network, and not of the dependencies.
UNREACHABLE = (
    "ConnectionError",
    "ServiceError",
    "failed to fetch advisory database",
    "HTTPError",
    "Could not connect",
    "Max retries",
)


# pip-audit's message for a package that its database does not have, which then passes. Ours is in no
# database.
UNKNOWN = re.compile(r"could not be audited: (?!pointstamp )")


def audit(name: str, tool: list[str], arguments: list[str], why_not: str) -> str:
    """Runs a tool: "passed", "failed", or "skipped: " and why."""
    print(f"== {' '.join([*tool, *arguments])}", flush=True)
    if (
        shutil.which(tool[0]) is None
        or subprocess.run([*tool, "--version"], capture_output=True, check=False).returncode
    ):
        return f"skipped: {why_not}"
    result = subprocess.run([*tool, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    said = result.stdout + result.stderr
    print(said.strip(), flush=True)
    if result.returncode == 0:
        unknown = len(UNKNOWN.findall(said))
        return f"skipped: {name} does not know {unknown} of the packages" if unknown else "passed"
    if any(word in said for word in UNREACHABLE):
        return f"skipped: {name} cannot reach its database of defects"
    return "failed"


def main() -> int:
    """Runs both; prints their results."""
    pip_audit = [sys.executable, "-m", "pip_audit"]
    options = ["--skip-editable", "--progress-spinner", "off"]
    ended = {
        "cargo deny": audit(
            "cargo deny", ["cargo", "deny"], ["check"], "there is no cargo-deny: cargo install cargo-deny"
        ),
        "pip-audit": audit("pip-audit", pip_audit, options, "there is no pip-audit: make audit installs it"),
    }
    for name, how in ended.items():
        print(f"{name}: {how}")
    return int("failed" in ended.values())


if __name__ == "__main__":
    sys.exit(main())
