"""The pipeline of `examples/spark_pipeline.py`, in the session that the tests share."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle

import spark_pipeline
from support import session


class Lent:
    """A session that the pipeline cannot stop."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        pass


@pytest.fixture
def lent(spark: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Has the pipeline use the shared session in place of one of its own."""

    def start(_tasks: int, _log: Path) -> Any:
        session.send_support(spark)
        return Lent(spark)

    monkeypatch.setattr(spark_pipeline, "start", start)
    cloudpickle.register_pickle_by_value(spark_pipeline)  # type: ignore[no-untyped-call]
    yield
    cloudpickle.unregister_pickle_by_value(spark_pipeline)  # type: ignore[no-untyped-call]


def test_the_pipeline_agrees_with_its_peers(
    lent: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--packages", "json,email", "--tasks", "2", "--scale", "2", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["spark_pipeline.py", *given])
    assert spark_pipeline.main() == 0
    output = capsys.readouterr().out
    assert "Spark SQL counts the same words." in output
    assert "NetworkX finds the same components, cycles, ranks and needs." in output
    assert "a barrier stage of 2 tasks." in output
    assert re.search(r"email +│ +\d+ │ [\d,]{6} │", output)
    made = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*") if path.is_file()}
    assert made == {"words", "modules", "modules.png"}
    assert (tmp_path / "modules.png").read_bytes().startswith(b"\x89PNG")
