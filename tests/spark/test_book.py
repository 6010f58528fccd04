"""The programs of docs/spark.md print what the chapter shows; they take a session, `spark`, as given."""

import re
from pathlib import Path
from typing import Any

import pytest

CHAPTER = Path(__file__).parents[2] / "docs" / "spark.md"
PROGRAM = re.compile(
    r"^```\{code-block\} python\n(.*?)^```\n\n```text\n(.*?)^```\n", re.MULTILINE | re.DOTALL
)
PROGRAMS = PROGRAM.findall(CHAPTER.read_text(encoding="utf-8"))


def test_every_program_shows_what_it_prints() -> None:
    assert len(PROGRAMS) >= 4
    assert CHAPTER.read_text(encoding="utf-8").count("{code-block} python") == len(PROGRAMS)


@pytest.mark.parametrize(("program", "output"), PROGRAMS)
def test_program(program: str, output: str, spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(program, str(CHAPTER), "exec"), {"__name__": "__main__", "spark": spark})
    assert capsys.readouterr().out.strip() == output.strip()
