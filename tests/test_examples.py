"""Every program in examples/ runs to its end; each checks its own result and exits 1 if it is wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

# Arguments that make a program small enough for a test; {text} is a directory with some files of text.
ARGUMENTS: dict[str, list[str]] = {
    "wordcount.py": ["{text}", "--workers", "2", "--top", "5"],
}


@pytest.fixture
def text(tmp_path: Path) -> Path:
    for name, words in [("one.txt", "to be or not to be\n" * 50), ("two.py", "# not to be\nbe = None\n")]:
        (tmp_path / name).write_text(words)
    return tmp_path


def test_every_example_is_here() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == ARGUMENTS.keys()


@pytest.mark.parametrize("name", ARGUMENTS)
def test_example(name: str, text: Path) -> None:
    arguments = [argument.format(text=text) for argument in ARGUMENTS[name]]
    result = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name, *arguments],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout.strip()
