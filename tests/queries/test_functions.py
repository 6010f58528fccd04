"""The list of functions in the page on SQL is what the translation has, and each is DuckDB's function."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import sqlglot

import duck
import pointstamp as ps
from pointstamp.queries import aggregation, scalars

DOCS = Path(__file__).parents[2] / "docs"
FUNCTIONS: dict[str, Any] = runpy.run_path(str(DOCS / "functions.py"), run_name="functions")
SCALARS = {name: examples for family in FUNCTIONS["SCALARS"].values() for name, examples in family.items()}
ALL = [
    pytest.param(name, example, id=example)
    for name, examples in {**SCALARS, **FUNCTIONS["AGGREGATES"]}.items()
    for example in examples
]


def test_the_page_has_the_tables() -> None:
    written = (DOCS / "sql.md").read_text(encoding="utf-8")
    assert FUNCTIONS["page"]() == written, "write it again: python docs/functions.py"


def test_each_function_of_the_translation_is_listed() -> None:
    assert SCALARS.keys() | FUNCTIONS["SAME"] == scalars._TRANSLATIONS.keys()
    assert FUNCTIONS["AGGREGATES"].keys() == aggregation.names()


@pytest.mark.parametrize(("name", "example"), ALL)
def test_an_example_is_of_its_function_and_has_duckdbs_result(name: str, example: str) -> None:
    tree = sqlglot.parse_one(f"SELECT {example} FROM t", read="duckdb")
    assert any(type(node).__name__ == name for node in tree.walk())
    query = f"SELECT {example} AS c FROM t"
    with duck.connection() as connection:
        connection.register("t", FUNCTIONS["ROWS"])
        expected = connection.execute(query).fetchall()
    found = ps.sql(query, t=FUNCTIONS["ROWS"])["c"].to_pylist()
    assert sorted(map(repr, found)) == sorted(repr(value) for (value,) in expected)
