"""A copy of the workspace in which every change of a crate can be chosen by a number.

The code that a change replaces stays, in an `else`: `a < b` becomes `(if chosen(17) { a <= b } else { a < b
})`, and a function begins with `if chosen(18) { return 0; }`. So all edits are insertions. Within the text of
a change nothing else is planted: one change is made at a time.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from mutation.found import Change, Site, Source

CHOSEN = """
mod planted {{
    //! Which change is chosen, or those that are reached.
    use std::io::Write as _;
    use std::sync::LazyLock;
    use std::sync::atomic::{{AtomicBool, Ordering}};

    static CHOSEN: LazyLock<u32> =
        LazyLock::new(|| std::env::var("MUTATION_CHOSEN").map_or(0, |number| number.parse().unwrap()));
    static REACHED: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("MUTATION_REACHED").ok());
    static SEEN: [AtomicBool; {size}] = [const {{ AtomicBool::new(false) }}; {size}];

    pub(crate) fn chosen(number: u32) -> bool {{
        if *CHOSEN == 0
            && let Some(path) = &*REACHED
            && !SEEN[number as usize].swap(true, Ordering::Relaxed)
        {{
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
            file.write_all(format!("{{number}}\\n").as_bytes()).unwrap();
        }}
        *CHOSEN == number
    }}
}}
"""

BEGIN, END = "/*+{}*/", "/*-{}*/"
MARKS = re.compile(rb"/\*\+(\d+)\*/.*?/\*-\1\*/", re.DOTALL)


class DoesNotCompile(Exception):
    """The copy does not compile, for a reason that no change explains."""


def copy(root: Path, to: Path, apart: set[Path]) -> None:
    """Updates the copy to the tracked files of the workspace, except files with planted changes.

    An unchanged file keeps its date. Functions are no constants there: they may call some that query the
    chosen change, which a constant cannot.
    """
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=root, capture_output=True, check=True).stdout.decode()
    names = {Path(name) for name in listed.split("\0") if name and (root / name).is_file()}
    for name in names - apart:
        content = (root / name).read_bytes()
        write(to / name, content.replace(b"const fn ", b"fn ") if name.suffix == ".rs" else content)
    for path in (to / "crates").rglob("*.rs"):
        if path.relative_to(to) not in names:
            path.unlink()


def write(path: Path, content: bytes) -> None:
    """Writes a file, if that changes it: cargo goes by dates."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def plant(to: Path, crate: Path, found: Sequence[Source], left_out: set[int]) -> None:
    """Writes a crate's files into the copy, with all changes but some."""
    size = 1 + max((change.number for source in found for change in source.changes), default=0)
    for source in found:
        changes = [change for change in source.changes if change.number not in left_out]
        more = CHOSEN.format(size=size) if source.path == crate / "src/lib.rs" else ""
        write(to / source.path, planted(source, changes) + more.encode())


def planted(source: Source, changes: Sequence[Change]) -> bytes:
    """A file with these of its changes."""
    inserted: list[
        tuple[int, int, int, int, str]
    ] = []  # where; closing ones first, the inner ones before the outer

    def by_site(change: Change) -> tuple[int, int, str]:
        return change.site.start, change.site.end, change.site.kind

    for _, group in groupby(sorted(changes, key=by_site), key=by_site):
        made = list(group)
        site = made[0].site
        before, after = _around(site, made)
        depth = 0 if site.kind == "guard" else 1  # a guard may be a value with changes of its own
        inserted.append((site.start, 1, -site.end, depth, before))
        inserted.append((site.end, 0, -site.start, -depth, after))
    if changes:
        for start, end in source.constant:
            inserted += [(start, 1, 0, 0, "/*"), (end, 0, 0, 0, "*/")]
    parts, at = [], 0
    for where, _, _, _, new in sorted(inserted):
        parts += [source.code[at:where], new.encode()]
        at = where
    return b"".join([*parts, source.code[at:]])


def _around(site: Site, changes: Sequence[Change]) -> tuple[str, str]:
    """Returns the text before the code of a place, and after it."""
    if site.kind == "guard":
        always = [_asked(change) for change in changes if change.new == "true"]
        never = [f"!{_asked(change)} && " for change in changes if change.new == "false"]
        return f"{' || '.join([*always, ''])}({''.join(never)}(", "))"
    if site.kind == "arm":
        return f" if !{_asked(changes[0])}", ""
    if site.kind == "iterator":
        return "({", f"}}).take(if {_asked(changes[0])} {{ 0 }} else {{ usize::MAX }})"
    if site.kind == "body":
        returns = (
            f"\nif {_asked(c, close=False)} {{ return {c.new}; }}{END.format(c.number)}" for c in changes
        )
        return "".join(returns), ""
    instead = (f"if {_asked(c, close=False)} {{ {c.new} }}{END.format(c.number)} else " for c in changes)
    return f"({''.join(instead)}{{ ", " })"


def _asked(change: Change, *, close: bool = True) -> str:
    """Returns the condition of a change, such that an error in the following code is the change's."""
    end = END.format(change.number) if close else ""
    return f"{BEGIN.format(change.number)}crate::planted::chosen({change.number}){end}"


def compilable(
    to: Path, crate: Path, found: Sequence[Source], check: Sequence[str], env: dict[str, str]
) -> set[int]:
    """Plants all changes that the compiler accepts; returns the numbers of the others."""
    left_out: set[int] = set()
    while True:
        plant(to, crate, found, left_out)
        run = subprocess.run(check, cwd=to, env=env, capture_output=True, text=True, check=False)
        if run.returncode == 0:
            return left_out
        refused = _refused(to, run.stdout) - left_out
        if not refused:
            raise DoesNotCompile(run.stderr + "".join(_rendered(run.stdout)))
        left_out |= refused


def _refused(to: Path, messages: str) -> set[int]:
    """Returns the changes that errors are about: those they point at, or else those on the same lines."""
    marked: dict[str, list[tuple[int, int, int, int, int]]] = {}
    numbers: set[int] = set()
    for error in _errors(messages):
        places: dict[str, set[int]] = defaultdict(set)
        for span in error["spans"]:
            name = span["file_name"]
            if name not in marked:
                marked[name] = _marks((to / name).read_bytes()) if (to / name).exists() else []
            for start, end, first, last, number in marked[name]:
                if start <= span["byte_start"] and span["byte_end"] <= end:
                    places["primary" if span["is_primary"] else "second"].add(number)
                elif first <= span["line_end"] and span["line_start"] <= last:
                    places["line"].add(number)
        numbers |= places["primary"] or places["second"] or places["line"]
    return numbers


def _marks(code: bytes) -> list[tuple[int, int, int, int, int]]:
    """Returns the place of each change, in bytes and in lines, and its number."""

    def line(at: int) -> int:
        return code.count(b"\n", 0, at) + 1

    return [(m.start(), m.end(), line(m.start()), line(m.end()), int(m[1])) for m in MARKS.finditer(code)]


def _errors(messages: str) -> list[dict[str, Any]]:
    found = (json.loads(line) for line in messages.splitlines() if line.startswith("{"))
    return [
        m["message"] for m in found if m["reason"] == "compiler-message" and m["message"]["level"] == "error"
    ]


def _rendered(messages: str) -> list[str]:
    return [str(error["rendered"]) for error in _errors(messages)]
