"""The program behind `make soak`: a few cases of each kind end well, and planted defects are found."""

import subprocess
import sys
from pathlib import Path

import pytest

from soaking.cases import Case, Wrong
from soaking.forked import Ended

TOOLS = Path(__file__).parents[2] / "tools"

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="it looks into /proc")


@pytest.mark.parametrize("kind", ["nothing", "killed", "interrupted", "relayed", "raising", "callbacks"])
def test_a_case_ends_well(kind: str) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", TOOLS / "soak.py", "--case", f"{kind}:11", "--times", "2"],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "2 cases; wrong: none" in result.stdout


@pytest.mark.parametrize(
    "end",
    [Ended("killed", 1), Ended("raised", "ClusterError", "process 7 was lost"), Ended("raised", "KeyError")],
)
def test_a_process_that_does_not_name_who_was_harmed_is_wrong(end: Ended) -> None:
    case = Case(1, {})
    try:
        with pytest.raises(Wrong, match="does not name"):
            case.judge([end, Ended("killed", -9)], {1})
        told = Ended("raised", "ClusterError", "process 1 (127.0.0.1:1) was lost")
        assert case.judge([told, Ended("killed", -9)], {1}) == "told"
    finally:
        case.close()
