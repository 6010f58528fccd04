"""The programs in README.md run and print the shown output."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
# A program, and the output that follows it, if it is shown.
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\s*```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
PROGRAMS = BLOCK.findall(README.read_text(encoding="utf-8"))


def test_there_are_programs_with_output() -> None:
    assert len(PROGRAMS) >= 2
    assert sum(bool(output) for _, output in PROGRAMS) >= 2


@pytest.mark.parametrize(("program", "output"), PROGRAMS)
def test_program(program: str, output: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(program, encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-W", "error", path],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    if output:
        assert result.stdout == output
