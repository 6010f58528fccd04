"""Files of sqllogictest: statements that make tables, and queries with their results.

    python tests/support/logic_tests.py [--first N] FILE...   # the share of each file's queries that pass
    python tests/support/logic_tests.py --complete FILE...    # writes results, by DuckDB, where a file has
    none

DuckDB runs the statements; a query is run by us over its tables. A query passes where its result is the
file's. Where DuckDB's result is not the file's either, the query is of another dialect, and DuckDB's result
counts. A refused query neither passes nor is wrong. Statements and queries that DuckDB refuses are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

import duck
import pointstamp as ps


class Record(NamedTuple):
    """A statement or a query of a file.

    Attributes:
        kind: ``"statement"`` or ``"query"``.
        line: The number of its first line.
        types: The letters of the columns: I, R and T.
        sort: ``"nosort"``, ``"rowsort"`` or ``"valuesort"``.
        text: The SQL.
        expected: The lines of the result; None where the file has none.
    """

    kind: str
    line: int
    types: str
    sort: str
    text: str
    expected: list[str] | None


class Found(NamedTuple):
    """The results of a file's queries: how many passed, and which were refused or wrong, with the reasons."""

    passed: int
    refused: list[tuple[int, str]]
    wrong: list[tuple[int, str]]

    @property
    def queries(self) -> int:
        """The number of queries."""
        return self.passed + len(self.refused) + len(self.wrong)


def records(path: Path) -> list[Record]:
    """The statements and queries of a file, without those that are for other engines."""
    found = []
    blocks: list[tuple[int, list[str]]] = [(1, [])]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("#"):
            continue
        if not line.strip():
            blocks.append((number + 1, []))
        else:
            blocks[-1][1].append(line)
    for number, lines in blocks:
        others = False
        while lines and lines[0].split()[0] in {"onlyif", "skipif"}:
            word, engine = lines.pop(0).split()[:2]
            others |= (word == "onlyif") != (engine == "duckdb")
        if lines and not others and lines[0].split()[0] == "halt":
            break
        if not lines or others or lines[0].split()[0] not in {"statement", "query"}:
            continue
        head, rest = lines[0].split(), lines[1:]
        expected = rest[rest.index("----") + 1 :] if "----" in rest else None
        text = "\n".join(rest[: rest.index("----")] if "----" in rest else rest)
        types = head[1] if head[0] == "query" else ""
        sort = head[2] if len(head) > 2 else "nosort"
        if head[0] == "query" or head[1] == "ok":
            found.append(Record(head[0], number, types, sort, text, expected))
    return found


def shown(rows: list[tuple[Any, ...]], record: Record) -> list[str]:
    """A result as files have it: a value on each line."""
    made = [[_shown(value, kind) for value, kind in zip(row, record.types, strict=False)] for row in rows]
    if record.sort == "rowsort":
        made.sort()
    values = [value for row in made for value in row]
    return sorted(values) if record.sort == "valuesort" else values


def _shown(value: Any, kind: str) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(int(value))
    if kind == "I":
        return str(int(value))
    if kind == "R":
        return f"{float(value):.3f}"
    return str(value) or "(empty)"


def agree(values: list[str], expected: list[str]) -> bool:
    """Whether a result is the one of a file, which may have the hash of a long one."""
    if len(expected) == 1 and (found := re.fullmatch(r"(\d+) values hashing to ([0-9a-f]{32})", expected[0])):
        digest = hashlib.md5("".join(f"{value}\n" for value in values).encode()).hexdigest()
        return len(values) == int(found[1]) and digest == found[2]
    return values == [value for line in expected for value in line.split("\t")]


def run(path: Path, first: int | None = None) -> Found:
    """Runs a file, or so many of its queries."""
    connection = duck.connection()
    passed = 0
    refused: list[tuple[int, str]] = []
    wrong: list[tuple[int, str]] = []
    tables: dict[str, Any] | None = None
    for record in records(path):
        if record.kind == "statement":
            with suppress(duckdb.Error):
                connection.execute(record.text)
            tables = None
            continue
        if first is not None and passed + len(refused) + len(wrong) >= first:
            break
        if tables is None:
            tables = _tables(connection)
        read = {name: table for name, table in tables.items() if re.search(rf"(?i)\b{name}\b", record.text)}
        try:
            made = ps.sql(record.text, **read)
        except (ps.GraphError, TypeError) as error:
            refused.append((record.line, str(error).splitlines()[0]))
            continue
        ours = [tuple(row.values()) for row in made.to_pylist()]
        if record.expected is not None and agree(shown(ours, record), record.expected):
            passed += 1
            continue
        try:
            theirs = connection.execute(record.text).fetchall()
        except duckdb.Error:
            continue
        other_dialect = record.expected is not None and not agree(shown(theirs, record), record.expected)
        same = Counter(_rounded(ours)) == Counter(_rounded(theirs))
        if (other_dialect or record.expected is None) and same:
            passed += 1
        else:
            wrong.append((record.line, f"{record.text}\n  ours: {ours[:20]}\n  DuckDB's: {theirs[:20]}"))
    return Found(passed, refused, wrong)


def _rounded(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    from changing_tables import plain

    return [plain(row) for row in rows]


def _tables(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    names = [name for (name,) in connection.execute("select table_name from duckdb_tables()").fetchall()]
    return {name: connection.sql(f'select * from "{name}"').to_arrow_table() for name in names}


def complete(path: Path) -> None:
    """Writes DuckDB's results where a file has none."""
    connection = duck.connection()
    text = path.read_text()
    for record in records(path):
        if record.kind == "statement":
            connection.execute(record.text)
        elif record.expected is None:
            rows = connection.execute(record.text).fetchall()
            result = "\n".join(["----", *shown(rows, record)])
            text = text.replace(f"\n{record.text}\n", f"\n{record.text}\n{result}\n", 1)
    path.write_text(text)


def main(arguments: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--first", type=int, help="of each file, so many queries")
    parser.add_argument("--complete", action="store_true", help="write DuckDB's results where there are none")
    options = parser.parse_args(arguments)
    if options.complete:
        for path in options.files:
            complete(path)
        return 0
    failed = 0
    for name in options.files:
        found = run(name, options.first)
        share = found.passed / max(found.queries, 1)
        print(
            f"{name}: {found.passed} of {found.queries} queries pass ({share:.1%}), "
            f"{len(found.refused)} refused"
        )
        for reason, times in Counter(
            re.sub(r"line \d+, column \d+", "", why) for _, why in found.refused
        ).most_common(8):
            print(f"    {times} refused: {reason[:150]}")
        for line, why in found.wrong:
            failed += 1
            print(f"  WRONG at line {line}: {why}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
