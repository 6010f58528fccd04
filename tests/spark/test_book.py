"""The programs of the book that need Spark print what it shows; they take a session, `spark`, as given."""

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
CHAPTERS = [DOCS / "spark.md", DOCS / "cookbook.md"]
PROGRAM = re.compile(
    r"^```\{code-block\} python\n(.*?)^```\n\n```text\n(.*?)^```\n", re.MULTILINE | re.DOTALL
)
PROGRAMS = [
    (chapter.name, *found)
    for chapter in CHAPTERS
    for found in PROGRAM.findall(chapter.read_text(encoding="utf-8"))
]


def test_every_program_shows_what_it_prints() -> None:
    assert len(PROGRAMS) >= 7
    for chapter in CHAPTERS:
        there = chapter.read_text(encoding="utf-8").count("{code-block} python")
        assert there == sum(name == chapter.name for name, _, _ in PROGRAMS)


@pytest.mark.parametrize(("chapter", "program", "output"), PROGRAMS)
def test_program(
    chapter: str, program: str, output: str, spark: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(program, chapter, "exec"), {"__name__": "__main__", "spark": spark})
    assert capsys.readouterr().out.strip() == output.strip()
