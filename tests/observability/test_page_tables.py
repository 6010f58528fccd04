"""Tables on the live page: the first rows of a collection and its number follow its changes."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pointstamp as ps
from browser import needs_browser
from harness import wait_until
from pointstamp.observability.tables import tables

if TYPE_CHECKING:
    from pathlib import Path

RAIN = pa.table({"city": [f"city {n}" for n in range(30)], "mm": range(30)})


def page_of(capfd: pytest.CaptureFixture[str]) -> str:
    said = [""]

    def found() -> bool:
        said[0] += capfd.readouterr().err
        return "http://" in said[0]

    wait_until(found)
    return said[0].split()[-1]


def on_page(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{url}state", timeout=60) as answer:
        found: list[dict[str, Any]] = json.load(answer)["tables"]
        return found


@pytest.mark.parametrize("workers", [1, 2])
def test_a_query_of_a_session_is_a_table_that_changes(
    workers: int, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sqlglot")
    with ps.Interactive(config=ps.Config(workers=workers, dashboard=0)) as session:
        url = page_of(capfd)
        wet = session.sql("SELECT city FROM rain WHERE mm > 3 ORDER BY mm DESC", rain=RAIN)
        wet.table()
        wait_until(lambda: on_page(url)[0]["count"] == 26)
        [shown] = on_page(url)
        assert shown["name"] == "SELECT city FROM rain WHERE mm > 3 ORDER BY mm DESC"
        assert shown["columns"] == ["city"]
        assert shown["rows"] == [[f"city {29 - n}"] for n in range(20)]
        wet.inputs["rain"].remove(RAIN.slice(10, 20))
        wet.inputs["rain"].insert(pa.table({"city": [None], "mm": [99]}, schema=RAIN.schema))
        wet.table()
        wait_until(lambda: on_page(url)[0]["count"] == 7)
        assert on_page(url)[0]["rows"] == [[""], *([f"city {9 - n}"] for n in range(6))]
        wet.close()
        wait_until(lambda: not on_page(url))
    assert tables() == []


def test_a_collection_is_shown_by_its_name(capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, rows = scope.new_collection(schema=RAIN.schema)
            rows.show("rain", "mm", rows=2)
            rows.filter(ps.col("mm") > 100).show("none")
            probe = rows.probe()
        handle.insert(RAIN)
        handle.insert(RAIN.slice(0, 1))
        handle.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))

        def both_are_shown() -> bool:
            worker.step_or_park(0.01)
            return len(tables()) == 2

        wait_until(both_are_shown)
        seen.extend(tables())
        handle.close()

    ps.execute(main, config=ps.Config(dashboard=0))
    assert seen == [
        {"name": "none", "columns": ["city", "mm"], "rows": [], "count": 0},
        {"name": "rain", "columns": ["city", "mm"], "rows": [["city 0", "0"]] * 2, "count": 31},
    ]


@needs_browser
def test_in_a_browser_the_table_is_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sqlglot")
    assert shutil.which("chromium")
    struck = "<img src=x onerror=\"document.title='struck'\">"
    with ps.Interactive(config=ps.Config(dashboard=0)) as session:
        url = page_of(capfd)
        live = session.sql("SELECT name FROM t", t=pa.table({"name": [struck, "tea"]}))
        live.table()
        wait_until(lambda: bool(on_page(url)))
        command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
        command += ["--virtual-time-budget=4000", "--dump-dom", url]
        page = subprocess.run(command, capture_output=True, text=True, timeout=380, check=True).stdout
    assert "<title>pointstamp</title>" in page
    assert "<td>tea</td>" in page
    assert "&lt;img src=x" in page
    assert "2 rows" in page
