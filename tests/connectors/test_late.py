"""Late records of a source: those behind their partition's own watermark, in every run the same."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pointstamp as ps
from pointstamp.connectors import JSONLinesSource, ParquetSource, text

LATENESS = 20
FIRST = datetime(2024, 5, 1, tzinfo=timezone.utc)


def told(seed: int, count: int = 400) -> list[int]:
    """Times that go up, with some far behind."""
    draw, now, made = random.Random(seed), 0, []
    for _ in range(count):
        now += draw.choice([0, 1, 3, 9])
        made.append(max(0, now - draw.choice([0, 0, 0, 5, 19, 20, 21, 60])))
    return made


FILES = {name: told(seed) for seed, name in enumerate("abcde")}


def is_late(times: list[int]) -> list[bool]:
    found, latest = [], -1
    for time in times:
        found.append(time < latest - LATENESS)
        latest = max(latest, time)
    return found


LATE = sorted(
    (name, number) for name, times in FILES.items() for number, late in enumerate(is_late(times)) if late
)
ALL = sorted((name, number) for name, times in FILES.items() for number in range(len(times)))


def rows(name: str) -> list[dict[str, Any]]:
    return [{"file": name, "number": number, "at": time} for number, time in enumerate(FILES[name])]


def read(build: Any, workers: int) -> tuple[list[Any], list[Any]]:
    """The files and numbers of records on time, with their times, and of late records.

    A late record is at the watermark of its file that it found, whichever worker reads it.
    """

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            captures = [stream.capture() for stream in build(scope)]
        worker.run()
        return [capture.extract() for capture in captures]

    results = ps.execute(main, workers=workers)
    on_time = [(time, row) for found, _ in results for time, some in found for row in some]
    late = [(time, row) for _, found in results for time, some in found for row in some]
    for time, row in late:
        at = row["at"] if isinstance(row["at"], int) else int((row["at"] - FIRST).total_seconds())
        unit = 1 if at == row["at"] else 1000
        behind = max(told for told in FILES[row["file"]][: row["number"]]) - LATENESS
        since = 0 if unit == 1 else int(FIRST.timestamp())
        assert (at, time) == (FILES[row["file"]][row["number"]], (since + behind) * unit)
    return on_time, sorted((row["file"], row["number"]) for _, row in late)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("block", [300, 5000, 1 << 20])
def test_records_are_late_by_their_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int, block: int
) -> None:
    """Whichever worker reads them, and however they are cut into batches."""
    monkeypatch.setattr(text, "BLOCK", block)
    for name in FILES:
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows(name)))

    def build(scope: ps.Scope) -> Any:
        source = JSONLinesSource(str(tmp_path / "*.jsonl"))
        return scope.read(source, event_time=lambda row: row["at"], lateness=LATENESS)

    on_time, late = read(build, workers)
    assert late == LATE
    assert sorted(late + [(row["file"], row["number"]) for _, row in on_time]) == ALL
    assert all(time == row["at"] for time, row in on_time)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("group", [7, 400])
def test_rows_are_late_by_their_file(tmp_path: Path, workers: int, group: int) -> None:
    plain = pa.schema([("file", pa.string()), ("number", pa.int64()), ("at", pa.timestamp("ms", "UTC"))])
    for name in FILES:
        made = [{**row, "at": FIRST + timedelta(seconds=row["at"])} for row in rows(name)]
        table = pa.Table.from_pylist(made, schema=plain)
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=group)

    def build(scope: ps.Scope) -> Any:
        source = ParquetSource(str(tmp_path))
        both = scope.read(source, event_time="at", lateness=timedelta(seconds=LATENESS))
        return [stream.to_records() for stream in both]

    on_time, late = read(build, workers)
    assert late == LATE
    assert sorted(late + [(row["file"], row["number"]) for _, row in on_time]) == ALL
    assert all(time == int(row["at"].timestamp()) * 1000 for time, row in on_time)


def test_late_records_that_are_concatenated_are_at_a_watermark(tmp_path: Path) -> None:
    """Nothing is lost, and each is at or after its own time."""
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows("a")))

    def build(scope: ps.Scope) -> Any:
        source = JSONLinesSource(str(tmp_path / "*.jsonl"))
        on_time, late = scope.read(source, event_time=lambda row: row["at"], lateness=LATENESS)
        return [on_time.concat(late), late]

    both, late = read(build, 1)
    assert sorted((row["file"], row["number"]) for _, row in both) == [one for one in ALL if one[0] == "a"]
    assert late == [one for one in LATE if one[0] == "a"]
    for time, row in both:
        assert time > row["at"] if (row["file"], row["number"]) in late else time == row["at"]


@pytest.mark.parametrize(
    ("at", "lateness", "advice"),
    [
        (lambda row: FIRST + timedelta(seconds=row["at"]), 5, "give a timedelta"),
        (lambda row: row["at"], timedelta(seconds=5), "give an int, in their unit"),
    ],
)
def test_a_lateness_of_another_unit_is_the_mistake_and_not_the_record(
    tmp_path: Path, at: Any, lateness: Any, advice: str
) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows("a")))

    def build(scope: ps.Scope) -> Any:
        source = JSONLinesSource(str(tmp_path / "*.jsonl"))
        return [one.capture() for one in scope.read(source, event_time=at, lateness=lateness)]

    with pytest.raises(TypeError, match=f"^lateness is .*{advice}") as raised:
        ps.example(build)
    assert "on_error=" not in "".join(getattr(raised.value, "__notes__", []))
