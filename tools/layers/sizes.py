"""No source file is past a number of lines: a file that is has two subjects."""

from collections.abc import Iterable, Mapping
from pathlib import Path

MOST = 500


def lengths(root: Path, folders: Iterable[str]) -> dict[str, int]:
    """The lines of each Rust and Python file in some folders of the repository."""
    return {
        path.relative_to(root).as_posix(): path.read_text().count("\n")
        for folder in folders
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in (".rs", ".py", ".pyi") and "target" not in path.parts
    }


def violations(lines: Mapping[str, int], known: Mapping[str, int], most: int = MOST) -> list[str]:
    """Files that are too long, and files that are listed as too long and are not (any more).

    A file that is known may get shorter, not longer than its entry.
    """
    said = []
    for name, count in sorted(lines.items()):
        allowed = known.get(name, most)
        if count > allowed:
            said.append(f"{name} has {count} lines; {allowed} are allowed: it wants to be two files")
    said.extend(
        f"{name} has at most {most} lines now, or is gone: take it off the list in tools/layers/known.py"
        for name in sorted(known)
        if lines.get(name, 0) <= most
    )
    return said
