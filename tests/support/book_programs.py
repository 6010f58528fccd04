"""The programs in the book: the blocks of ``python`` in docs/, each with the output block that follows it."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[2] / "docs"
CHAPTERS = sorted(DOCS.glob("*.md"))
FENCE = re.compile(r"^(`{3,}|:{3,})([^\n`]*)\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: its language, the line of its fence, its text, and where it ends in the chapter."""

    language: str
    line: int
    text: str
    end: int


class Program(NamedTuple):
    """A program of a chapter, its number there, and all that it prints."""

    chapter: str
    number: int
    line: int
    text: str
    output: str


def blocks(markdown: str) -> Iterator[Block]:
    """The fenced blocks of a chapter, in order."""
    for match in FENCE.finditer(markdown):
        language = match[2].split()[0] if match[2].strip() else ""
        yield Block(language, markdown.count("\n", 0, match.start()) + 1, match[3], match.end())


def programs(path: Path) -> Iterator[Program]:
    """The programs of a chapter, each with the output block that follows it."""
    markdown = path.read_text(encoding="utf-8")
    found = list(blocks(markdown))
    numbers = itertools.count(1)
    for i, block in enumerate(found):
        if block.language != "python":
            continue
        output = ""
        if i + 1 < len(found) and found[i + 1].language == "text":
            between = markdown[block.end : markdown.index("```text", block.end)]
            if not between.strip():
                output = found[i + 1].text
        yield Program(path.stem, next(numbers), block.line, block.text, output)


PROGRAMS = [program for path in CHAPTERS for program in programs(path)]
