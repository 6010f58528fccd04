"""The Python library as a data set: its files, by package, and the contents of a file.

Owns what a module and a package are here, and how a file becomes words and imports. `files` runs where the
program starts; `parse` runs in Spark's tasks, on the batches of paths that they are given.
"""

from __future__ import annotations

import ast
import keyword
import os
import re
import sys
import sysconfig
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa

FILES = pa.schema(
    [("path", pa.string()), ("module", pa.string()), ("package", pa.string()), ("batch", pa.int64())]
)
BATCHES = 24

PARSED = """module string, package string, batch bigint, lines bigint, bytes bigint,
            words map<string, bigint>, imports array<array<string>>"""
PARSED_ARROW = pa.schema(
    [
        *(FILES.field(name) for name in ("module", "package", "batch")),
        ("lines", pa.int64()),
        ("bytes", pa.int64()),
        ("words", pa.map_(pa.string(), pa.int64())),
        ("imports", pa.list_(pa.list_(pa.string()))),
    ]
)


# ---------------------------------------------------------------- the files


def files(packages: set[str] | None = None, copies: int = 1) -> pa.Table:
    """Every .py file of the standard library and of packages installed beside it.

    A package is the first part of a module's name. Packages are put into batches of about equal size, which
    are the timestamps that their words are counted at.

    Args:
        packages: The packages to keep, where they are given.
        copies: The number of times that each file is read. In copy 2, the package `json` is `json+2`, and
            what it imports is of copy 2, too, except for modules without a file, such as `sys`.
    """
    found: dict[str, tuple[str, int]] = {}
    for root in roots():
        for directory, inside, names in os.walk(root):
            inside[:] = sorted(set(inside) - {"__pycache__", "site-packages", "dist-packages"})
            for name in names:
                if name.endswith(".py"):
                    path = os.path.join(directory, name)
                    found.setdefault(module_of(os.path.relpath(path, root)), (path, os.path.getsize(path)))
    chosen = sorted(module for module in found if packages is None or module.partition(".")[0] in packages)
    total = sum(found[module][1] for module in chosen)
    rows, read, batch_of = [], 0, dict[str, int]()
    for module in chosen:
        path, size = found[module]
        package = module.partition(".")[0]
        batch = batch_of.setdefault(package, BATCHES * read // max(total, 1))
        read += size
        for copy in range(1, copies + 1):
            named = {"module": in_copy(module, copy), "package": in_copy(package, copy)}
            rows.append({"path": path, **named, "batch": batch})
    return pa.Table.from_pylist(rows, schema=FILES)


def roots() -> list[Path]:
    """Returns the folders of this Python's library: the standard library, and installed packages."""
    paths = (sysconfig.get_path(name) for name in ("stdlib", "platlib", "purelib"))
    return [Path(path) for path in dict.fromkeys(paths) if path and os.path.isdir(path)]


def module_of(path: str) -> str:
    """The name by which a file is imported."""
    parts = list(Path(path).with_suffix("").parts)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)


def in_copy(name: str, copy: int) -> str:
    """The name of a module in a copy of the library."""
    package, dot, rest = name.partition(".")
    if copy == 1 or package in sys.builtin_module_names:
        return name
    return f"{package}+{copy}{dot}{rest}"


def copy_of(module: str) -> int:
    """The copy of the library that a module is of."""
    return int(module.partition(".")[0].partition("+")[2] or 1)


def builtin_modules(copies: int = 1) -> set[str]:
    """Modules of the standard library: those that no file holds, such as `sys`, are among them."""
    names = sys.stdlib_module_names
    return {in_copy(name, copy) for name in names for copy in range(1, copies + 1)}


# ---------------------------------------------------------------- the contents of a file


def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Reads the files of some batches of paths: rows of `PARSED`, for Spark's `mapInArrow`."""
    for batch in batches:
        for start in range(0, batch.num_rows, 64):
            files = batch.slice(start, 64)
            names = zip(files["path"].to_pylist(), files["module"].to_pylist(), strict=True)
            read = [parse_file(path, module) for path, module in names]
            lines, sizes, counted, imported = zip(*read, strict=True)
            kept = [files[name] for name in ("module", "package", "batch")]
            yield pa.record_batch(
                [*kept, pa.array(lines), pa.array(sizes), word_maps(counted), list(imported)],
                schema=PARSED_ARROW,
            )


def word_maps(counted: Sequence[Counter[str]]) -> pa.Array:
    """Counters as a column of maps, without a Python object for each entry."""
    offsets = np.cumsum([0, *map(len, counted)], dtype=np.int32)
    keys = pa.array(chain.from_iterable(counted), pa.string())
    uses = pa.array(chain.from_iterable(one.values() for one in counted), pa.int64())
    return pa.MapArray.from_arrays(pa.array(offsets), keys, uses)


def parse_file(path: str, module: str) -> tuple[int, int, Counter[str], list[list[str]]]:
    """A file's lines, bytes, words and imports. Bytes that are not UTF-8 become a replacement character."""
    data = Path(path).read_bytes()
    text = data.decode("utf-8", "replace")
    copy = copy_of(module)
    home = module if os.path.basename(path) == "__init__.py" else module.rpartition(".")[0]
    return text.count("\n"), len(data), words(text), list(imports(text, home, copy))


WORD = re.compile(r"[^\W\d_]+")
"""Letters only: the words of `open_file` are two."""


def words(text: str) -> Counter[str]:
    """Counts each word, in small letters; without Python's keywords and the very short."""
    found: Counter[str] = Counter()
    for word, uses in Counter(WORD.findall(text)).items():
        if len(word) > 2 and word not in KEYWORDS:
            found[word.lower()] += uses
    return found


KEYWORDS = {*keyword.kwlist, "self"}

# Everything that an import could be mistaken in is read past: strings and comments.
STATEMENT = re.compile(
    r'''[bfrtuBFRTU]{0,2}(?:"""(?:[^\\]|\\.)*?"""|\'\'\'(?:[^\\]|\\.)*?\'\'\')'''
    r"""|[bfrtuBFRTU]{0,2}(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
    r"""|\#[^\n]*"""
    r"""|(?:^|[;:])[ \t]*((?:import|from(?:[ \t]|\\\n)*[.\w](?:[.\w \t]|\\\n)*(?<=[ \t.\n])import)\b"""
    r"""(?:\([^)]*\)|\\\n|[^\n;\#(])*"""
    r"""(?:\([^)]*\))?)""",
    re.MULTILINE | re.DOTALL,
)


def imports(text: str, home: str, copy: int = 1) -> Iterator[list[str]]:
    """For each import in a file, the modules that it could name, the longest name first.

    ``from a import b`` may name the module ``a.b`` or something in ``a``; which of them is a module is known
    when all files are.

    Args:
        text: The file's.
        home: The package that relative imports start from.
        copy: The copy of the library that the file is of.
    """
    for match in STATEMENT.finditer(text):
        if match[1] is None:
            continue
        try:
            [statement] = ast.parse(match[1].strip()).body
        except (SyntaxError, ValueError):
            continue  # the text of another version of Python, or of none
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                yield prefixes(in_copy(alias.name, copy))
        elif isinstance(statement, ast.ImportFrom):
            base = statement.module or ""
            if not statement.level:
                base = in_copy(base, copy)
            else:
                above = home.split(".")[: len(home.split(".")) - statement.level + 1]
                base = ".".join([*above, *filter(None, [base])])
            for alias in statement.names:
                yield prefixes(f"{base}.{alias.name}" if alias.name != "*" else base)


def prefixes(name: str) -> list[str]:
    """``a.b.c``, ``a.b`` and ``a``."""
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(len(parts), 0, -1) if parts[0]]
