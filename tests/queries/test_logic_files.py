"""Files of sqllogictest: results are right, and the share that is covered does not fall."""

from __future__ import annotations

from pathlib import Path

import pytest

import logic_tests
import pointstamp as ps

FILES = {"windows": 12, "sets": 10, "joins": 10, "groups": 9, "recursion": 4}
"""The files, and how many of their queries pass at least; the others are refused."""


@pytest.mark.parametrize("name", FILES)
def test_no_result_is_wrong(name: str) -> None:
    found = logic_tests.run(Path(__file__).parent / "logic" / f"{name}.test")
    print(f"{name}: {found.passed} of {found.queries} pass; refused: {found.refused}")
    assert found.wrong == []
    assert found.passed >= FILES[name], found.refused


def test_a_wrong_result_is_found(tmp_path: Path) -> None:
    path = tmp_path / "wrong.test"
    lines = [
        "statement ok",
        "create table t(a integer)",
        "",
        "statement ok",
        "insert into t values (1), (2)",
        "",
    ]
    path.write_text("\n".join([*lines, "query I", "select sum(a) from t", "----", "3", ""]))
    assert logic_tests.run(path).passed == 1
    path.write_text("\n".join([*lines, "query I", "select median(a) from t", "----", "1", ""]))
    assert len(logic_tests.run(path).refused) == 1
    with pytest.MonkeyPatch.context() as patch:
        answer = ps.sql
        patch.setattr(ps, "sql", lambda query, **tables: answer(query, **tables).slice(1))
        path.write_text("\n".join([*lines, "query I", "select a from t order by a", "----", "1", "2", ""]))
        assert len(logic_tests.run(path).wrong) == 1
