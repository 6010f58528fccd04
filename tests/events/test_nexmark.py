"""Nexmark's queries give DuckDB's answers, on workers of one process and of two."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pointstamp as ps

BENCH = Path(__file__).parents[2] / "benches" / "python" / "nexmark.py"


def test_queries_give_the_answers_of_duckdb() -> None:
    command = [sys.executable, str(BENCH), "--events", "2500", "--workers", "2", "--check"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("DuckDB's answer") == len(result.stdout.splitlines()) >= 18


def test_two_processes_give_what_one_worker_gives() -> None:
    numbers = [(n * 37 % 500, n) for n in range(500)]

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            mine = scope.to_stream(numbers[worker.index :: worker.peers])
            on_time, _ = mine.event_time(lambda pair: pair[0], lateness=500)
            by_key = on_time.key_by(lambda pair: pair[1] % 7, lambda pair: pair[1])
            sums = by_key.window(ps.Sliding(50, every=20)).sum().capture()
            near = by_key.interval_join(by_key, lower=0, upper=3).capture()
            most = by_key.scan(lambda _, n, most: max(most, n), default=int).capture()
        worker.run()
        return [captured.extract() for captured in (sums, near, most)]

    def results(found: list[Any]) -> list[Counter[Any]]:
        return [
            Counter((time, record) for worker in found for time, records in worker[n] for record in records)
            for n in range(3)
        ]

    assert results(ps.execute(main)) == results(ps.execute(main, processes=2, workers=2))
