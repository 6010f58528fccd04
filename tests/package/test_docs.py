"""The programs in the book run and print the shown output; its pictures are those that their scripts draw.

A chapter is a Markdown file in docs/. Two kinds of fenced block hold Python, and no others may:

- ``python``: a complete program. It is run in an interpreter of its own, with warnings as errors. The block
  of ``text`` that follows it, if one does, is its whole output; without one it prints nothing.
- ``pycon``: a session at the prompt, run as a doctest. The sessions of a chapter go on from one to the next.
- ``sh``, ``text`` and Sphinx's own (in braces): not run. A ``{code-block} python`` needs Spark or a server,
  and is run in tests/spark or tests/connectors.
"""

import doctest
import importlib
import inspect
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import golden_graphs
import pointstamp
import pointstamp.capture
import pointstamp.connectors
import pointstamp.order
import pointstamp.progress
import pointstamp.spark
from book_programs import CHAPTERS, DOCS, FENCE, PROGRAMS, Program, blocks

NOT_RUN = {"sh", "text", "{toctree}", "{figure}", "{image}", "{note}", "{tip}", "{eval-rst}", "{code-block}"}
SECONDS = 380


def test_the_book_is_there() -> None:
    assert len(CHAPTERS) >= 18
    assert len(PROGRAMS) >= 60
    assert sum(bool(program.output) for program in PROGRAMS) >= 55


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_block_is_of_a_known_kind(path: Path) -> None:
    """Blocks without a language, or with a misspelt one, would not be run."""
    markdown = path.read_text(encoding="utf-8")
    assert {block.language for block in blocks(markdown)} <= NOT_RUN | {"python", "pycon"}
    # Every line that opens or closes a fence was understood as one.
    assert len(re.findall(r"^\s*```", markdown, re.MULTILINE)) == 2 * sum(
        markdown[: block.end].endswith("```") for block in blocks(markdown)
    )


def test_programs_fit_on_the_page() -> None:
    long = {
        program.chapter: line for program in PROGRAMS for line in program.text.splitlines() if len(line) > 88
    }
    assert not long


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: f"{program.chapter}-{program.line}")
def test_program(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(program.text, encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-W", "error", path],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        cwd=tmp_path,
        env=golden_graphs.recording(tmp_path / "graphs"),
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert result.stdout.replace(f"{tmp_path}{os.sep}", "") == program.output  # lines are in program.py
    if "GraphError" not in program.output:  # of a build that fails, worker 0 may have a graph or none
        golden_graphs.compare(f"book/{program.chapter}-{program.number}", tmp_path / "graphs")


def test_each_graph_that_is_kept_belongs_to_a_program() -> None:
    kept = {path.stem for path in (golden_graphs.GOLDEN / "book").iterdir()}
    assert len(kept) >= 60
    assert kept <= {f"{program.chapter}-{program.number}" for program in PROGRAMS}


def sessions(path: Path) -> str:
    """Returns the sessions at the prompt of a chapter, as one session."""
    return "\n".join(
        block.text for block in blocks(path.read_text(encoding="utf-8")) if block.language == "pycon"
    )


WITH_SESSIONS = [path for path in CHAPTERS if sessions(path)]


def test_there_are_sessions() -> None:
    assert len(WITH_SESSIONS) >= 2


@pytest.mark.parametrize("path", WITH_SESSIONS, ids=lambda path: path.stem)
def test_session(path: Path) -> None:
    example = doctest.DocTestParser().get_doctest(sessions(path), {}, path.stem, str(path), 0)
    assert example.examples
    report: list[str] = []
    doctest.DocTestRunner().run(example, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize(
    "module",
    [
        pointstamp,
        pointstamp.order,
        pointstamp.progress,
        pointstamp.capture,
        pointstamp.connectors,
        pointstamp.spark,
    ],
)
def test_the_reference_has_every_public_name(module: ModuleType) -> None:
    reference = (DOCS / "reference.md").read_text(encoding="utf-8")
    described = set(
        re.findall(r"^\.\. auto(?:class|function|exception|data):: (\w+)$", reference, re.MULTILINE)
    )
    aliases = {"Summary", "Time"}
    assert {name for name in module.__all__ if not name.startswith("__")} - aliases <= described


FIRST_LINES = re.compile(r"(After this (page|chapter) you|On this page you can|With this book you can) ")


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.stem)
def test_a_page_says_first_what_one_can_do_after_it(path: Path) -> None:
    title, _, rest = path.read_text(encoding="utf-8").partition("\n\n")
    assert title.startswith("# ")
    assert FIRST_LINES.search(rest.partition("\n\n")[0])


def test_the_contents_have_every_page() -> None:
    contents = (DOCS / "index.md").read_text(encoding="utf-8").splitlines()
    pages = {path.stem for path in DOCS.glob("*.md")} - {"index"}
    assert pages - set(contents) == set(), "docs/index.md lists these in no {toctree}"


def test_links_between_chapters_lead_somewhere() -> None:
    """Sphinx checks them too, where it is installed; this needs nothing."""
    links = [
        (path, link)
        for path in CHAPTERS
        for link in re.findall(r"\]\(([\w./-]+\.(?:md|svg))(?:#[\w-]+)?\)", path.read_text(encoding="utf-8"))
    ]
    assert len(links) >= 20
    broken = [(path.name, link) for path, link in links if not (DOCS / link).is_file()]
    assert not broken


def anchors(path: Path) -> set[str]:
    """Returns the anchors of a page's headings, as GitHub and the book's builder make them."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings)
    return {re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in plain}


PAGES = [*CHAPTERS, DOCS.parent / "README.md"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_links_to_headings_lead_to_one(path: Path) -> None:
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([\w./-]+\.md)?#([\w-]+)\)", text)
    broken = [
        (page, anchor) for page, anchor in links if anchor not in anchors(path.parent / (page or path.name))
    ]
    assert not broken


def test_links_to_headings_are_found() -> None:
    linked = [page for page in PAGES if re.search(r"\.md#[\w-]+\)", page.read_text(encoding="utf-8"))]
    assert len(linked) >= 10
    assert "moving-records-between-workers" in anchors(DOCS / "operators.md")


# `drawing.py` is what the others draw with.
SCRIPTS = sorted(path for path in (DOCS / "pictures").glob("*.py") if path.stem != "drawing")


def test_every_picture_has_a_script() -> None:
    assert len(SCRIPTS) >= 3
    assert {path.stem for path in SCRIPTS} == {path.stem for path in (DOCS / "pictures").glob("*.svg")}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_pictures_are_what_the_library_does(script: Path, tmp_path: Path) -> None:
    """Each script runs the library and draws what happened: the same, to the letter, as is in the book."""
    subprocess.run([sys.executable, "-W", "error", script, tmp_path], timeout=SECONDS, check=True)
    drawn = sorted(tmp_path.glob("*.svg"))
    assert drawn
    for picture in drawn:
        committed = DOCS / "pictures" / picture.name
        assert picture.read_text(encoding="utf-8") == committed.read_text(encoding="utf-8"), (
            f"draw it again: python docs/pictures/{script.name}"
        )


def test_the_table_of_errors_has_each() -> None:
    errors = [kind for kind in vars(pointstamp).values() if isinstance(kind, type)]
    names = {kind.__name__ for kind in errors if issubclass(kind, pointstamp.PointstampError)}
    table = set(re.findall(r"^\| `(\w+)` \|", (DOCS / "errors.md").read_text(), re.MULTILINE))
    assert table == names - {"PointstampError"}


def documented_classes() -> Iterator[tuple[type, dict[str, str]]]:
    """The classes of the reference, each with the options of its entry."""
    module, entry, options = "pointstamp", "", {}
    lines = (DOCS / "reference.md").read_text(encoding="utf-8").splitlines()
    for line in [*lines, ""]:
        if option := re.fullmatch(r"   :([\w-]+): ?(.*)", line):
            options[option[1]] = option[2]
            continue
        if entry:
            yield resolved(module, entry), options
        kind, _, name = line.removeprefix(".. ").partition(":: ")
        entry, options = name if kind == "autoclass" else "", {}
        module = name if kind in ("currentmodule", "automodule") else module  # as Sphinx does


def resolved(module: str, name: str) -> type:
    """A class by its name in a module, or by its whole name."""
    if "." in name:
        module, _, name = name.rpartition(".")
    kind = getattr(importlib.import_module(module), name)
    assert isinstance(kind, type)
    return kind


def not_shown(kind: type, options: dict[str, str]) -> set[str]:
    """The public members of a class that its entry leaves out: those of bases, unless it includes them."""
    if "no-members" in options:
        return set()
    own = [base for base in kind.__mro__ if base.__module__.startswith("pointstamp")]
    stops = options.get("inherited-members", "").split()
    shown = set(vars(kind))
    if "inherited-members" in options:
        for base in kind.__mro__:
            if base is object or base.__name__ in stops:
                break
            shown |= set(vars(base))
    public = {name for base in own for name in vars(base) if not name.startswith("_")}
    return public - set(options.get("exclude-members", "").split()) - shown


def test_the_reference_shows_inherited_members() -> None:
    missing = {
        kind.__name__: sorted(names)
        for kind, options in documented_classes()
        if (names := not_shown(kind, options))
    }
    assert not missing


def test_no_summary_of_a_property_is_taken_for_a_type() -> None:
    """Sphinx takes the text before a colon in the first line of a property for its type."""
    properties = (property, types.GetSetDescriptorType)
    wrong = [
        f"{kind.__name__}.{name}"
        for kind, _ in documented_classes()
        for name, member in inspect.getmembers(kind, lambda member: isinstance(member, properties))
        if not name.startswith("_") and ": " in (member.__doc__ or "").partition("\n")[0]
    ]
    assert wrong == []


def test_an_entry_without_inherited_members_is_found() -> None:
    assert "graph" in not_shown(pointstamp.Scope, {})
    assert "insert" not in not_shown(pointstamp.CollectionInput, {})
    assert not_shown(pointstamp.CollectionInput, {}) >= {"advance_to", "close"}
