"""Queries of tables that change, against DuckDB after every change."""

from __future__ import annotations

import math
import random
from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import duck
import pointstamp as ps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import duckdb

Row = tuple[Any, ...]
Changes = list[tuple[str, list[Row], int]]
"""Rows of tables with the number of times that each comes, or, below 0, goes."""


def oracle(schemas: Mapping[str, pa.Schema]) -> duckdb.DuckDBPyConnection:
    """A database with the tables, in which a division by 0 is null."""
    connection = duck.connection()
    # A division by 0 is null here.
    connection.execute("set ieee_floating_point_ops = false")
    known = "select count(*) from duckdb_settings() where name = 'error_on_division_by_zero'"
    if connection.execute(known).fetchall() == [(1,)]:
        connection.execute("set error_on_division_by_zero = false")
    for name, schema in schemas.items():
        connection.register("given", schema.empty_table())
        connection.execute(f"create table {name} as select * from given")
        connection.unregister("given")
    return connection


def as_table(schema: pa.Schema, rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def random_changes(
    initial: Mapping[str, list[Row]],
    make: Callable[[str, int], list[Row]],
    seed: int,
    times: int,
    most: int,
) -> list[Changes]:
    """The changes at each time: the rows at the beginning, then random inserts, updates and deletes."""
    draw = random.Random(seed)
    there = {name: list(rows) for name, rows in initial.items()}
    script: list[Changes] = [[(name, rows, 1) for name, rows in initial.items() if rows]]
    names = list(initial)
    for _ in range(times):
        changes: Changes = []
        for _ in range(draw.randint(1, most)):
            name = draw.choice(names)
            kind = draw.choice(["insert", "delete", "update"])
            gone = []
            if kind != "insert" and there[name]:
                gone = draw.sample(there[name], min(len(there[name]), draw.randint(1, 4)))
                for row in gone:
                    there[name].remove(row)
                changes.append((name, gone, -1))
            if kind != "delete":
                new = make(name, len(gone) or draw.randint(1, 4))
                there[name] += new
                changes.append((name, new, 1))
        script.append(changes)
    return script


def states(
    build: Callable[[ps.Scope, dict[str, ps.ColumnCollection]], ps.ColumnCollection],
    schemas: Mapping[str, pa.Schema],
    script: list[Changes],
    **how: Any,
) -> list[Counter[Row]]:
    """The contents of a collection after each change."""

    def main(worker: ps.Worker) -> Any:
        inputs, tables = {}, {}
        with worker.dataflow() as scope:
            for name, schema in schemas.items():
                inputs[name], tables[name] = scope.new_collection(schema=schema)
            captured = build(scope, tables).capture()
        for time, changes in enumerate(script):
            if worker.index == 0:
                for name, rows, diff in changes:
                    data = as_table(schemas[name], rows)
                    inputs[name].insert(data) if diff > 0 else inputs[name].remove(data)
            for handle in inputs.values():
                handle.advance_to(time + 1)
        for handle in inputs.values():
            handle.close()
        worker.run()
        return captured.extract()

    found: Counter[Row] = Counter()
    by_time: dict[int, list[Any]] = {}
    for changes in ps.execute(main, **how):
        for time, batch in changes:
            by_time.setdefault(time, []).append(batch)
    made = []
    for time in range(len(script)):
        for batch in by_time.get(time, []):
            *columns, diffs = (column.to_pylist() for column in batch.columns)
            for row, diff in zip(zip(*columns, strict=True), diffs, strict=True):
                found[plain(row)] += diff
        made.append(Counter({row: n for row, n in found.items() if n}))
    return made


def plain(row: Row) -> Row:
    """A row whose values can be compared: numbers to nine digits, and dates as the times they begin at."""
    return tuple(_plain(value) for value in row)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value == value and not math.isinf(value):
        return float(f"{value:.9g}")
    if isinstance(value, Decimal):
        return float(f"{float(value):.9g}") if value % 1 else int(value)
    if isinstance(value, float) and value != value:
        return "NaN"
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)  # versions of DuckDB differ in date_trunc
    return value


def expected(query: str, schemas: Mapping[str, pa.Schema], script: list[Changes]) -> list[Counter[Row]]:
    """The answers of DuckDB after each change."""
    connection = oracle(schemas)
    there: dict[str, Counter[Row]] = {name: Counter() for name in schemas}
    made = []
    for changes in script:
        for name in {name for name, _, _ in changes}:
            for other, rows, diff in changes:
                if other == name:
                    for row in rows:
                        there[name][row] += diff
            rows = list(there[name].elements())
            connection.execute(f"delete from {name}")
            if rows:
                connection.register("given", as_table(schemas[name], rows))
                connection.execute(f"insert into {name} select * from given")
                connection.unregister("given")
        made.append(Counter(plain(row) for row in connection.execute(query).fetchall()))
    return made


def check(
    query: str, schemas: Mapping[str, pa.Schema], script: list[Changes], **how: Any
) -> list[Counter[Row]]:
    """Compares a query's results after each change with DuckDB's, and returns them."""
    ours = states(lambda scope, tables: scope.sql(query, **tables), schemas, script, **how)
    theirs = expected(query, schemas, script)
    for time, (mine, answer) in enumerate(zip(ours, theirs, strict=True)):
        if mine != answer:
            wrong = f"too many: {dict(mine - answer)}\n  missing: {dict(answer - mine)}"
            raise AssertionError(f"after change {time} of {query}\n  {wrong}")
    return ours
