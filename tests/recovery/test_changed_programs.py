"""A program that has changed since its checkpoint resumes where nothing is lost, and is refused otherwise."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from killing import rows
from pointstamp.connectors import JSONLinesSource, SQLiteSink, outbox, reading, writing
from pointstamp.logic import declared_state
from resuming import run_until_stopped, settings, stop_at_checkpoint

Build = Callable[[ps.Stream[Any]], ps.Stream[Any]]


def named(records: ps.Stream[Any]) -> ps.KeyedStream[Any, Any]:
    return records.key_by(lambda record: record["name"], lambda record: record["amount"])


def totals(records: ps.Stream[Any], name: str | None = None) -> ps.Stream[Any]:
    return named(records).scan(lambda _, amount, total: total + amount, default=int, name=name)


def ignore(key: Any, record: Any, state: Any) -> tuple[Any, list[Any]]:
    return state, []


def run(folder: Path, build: Build, *, follows: bool = False, **options: Any) -> None:
    """Runs a program to its end, or, where it follows its files, until it has a checkpoint."""

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            source = JSONLinesSource(str(folder / "in.jsonl"), follow=follows)
            records = scope.read(source, time=lambda record: record["day"])
            rows = build(records).map(lambda row: {"name": row[0], "total": row[1]}, name="rows")
            rows.write(SQLiteSink(folder / "out.db", "totals", columns=["name", "total"]))
        if follows:
            while not shown(folder):
                worker.step()
            stop_at_checkpoint(worker)

    config = settings(folder, **options)
    if follows:
        run_until_stopped(main, config)
    else:
        ps.execute(main, config=config)


def write(folder: Path, *days: int) -> None:
    """Adds a sale of 1 on each of some days."""
    with (folder / "in.jsonl").open("a") as file:
        for day in days:
            file.write(json.dumps({"day": day, "name": "ann", "amount": 1}) + "\n")


def shown(folder: Path) -> list[int]:
    """The totals that were shown."""
    return [total for (total,) in rows(folder / "out.db", "select total from totals order by rowid")]


def test_operators_without_state_come_and_go(tmp_path: Path) -> None:
    write(tmp_path, 1, 2, 3)
    run(tmp_path, lambda records: totals(records.filter(lambda record: True)), follows=True)
    before = len(shown(tmp_path))
    write(tmp_path, 4)
    run(tmp_path, lambda records: totals(records.map(lambda record: record).inspect(lambda *_: None)))
    assert before > 0
    assert shown(tmp_path) == [1, 2, 3, 4]


def test_an_operator_that_is_another_is_refused(tmp_path: Path) -> None:
    write(tmp_path, 1, 2, 3)
    run(tmp_path, lambda records: totals(records, "sums"), follows=True)
    with pytest.raises(ps.CheckpointError, match="'sums' keeps none, and in the checkpoint it keeps a state"):
        run(tmp_path, lambda records: named(records).reduce(max, name="sums"))
    with pytest.raises(ps.CheckpointError, match=r"'sums' is state_machine\(\), and .* scan"):
        run(tmp_path, lambda records: named(records).state_machine(ignore, default=int, name="sums"))


def test_state_is_given_up_where_the_program_says_so(tmp_path: Path) -> None:
    write(tmp_path, 1, 2, 3)
    run(tmp_path, lambda records: totals(records, "sums"), follows=True)
    write(tmp_path, 4)
    with pytest.raises(ps.CheckpointError, match=r"new=\[\"others\"\]"):
        run(tmp_path, lambda records: totals(records, "others"))
    with pytest.raises(ps.CheckpointError, match=r"drop=\[\"sums\"\]"):
        run(tmp_path, lambda records: totals(records, "others"), new=["others"])
    before = shown(tmp_path)
    run(tmp_path, lambda records: totals(records, "others"), new=["others"], drop=["sums"])
    assert shown(tmp_path) == [*before, 1]  # day 3, which was not over, was given up with the state


def test_one_of_several_that_reads_something_else_is_refused(tmp_path: Path) -> None:
    def first(records: ps.Stream[Any]) -> ps.Stream[Any]:
        return totals(records).concat(totals(records.filter(lambda record: record["day"] > 1)))

    def second(records: ps.Stream[Any]) -> ps.Stream[Any]:
        later = totals(records.filter(lambda record: record["day"] > 1))
        return later.concat(totals(records))

    write(tmp_path, 1, 2, 3)
    run(tmp_path, first, follows=True)
    with pytest.raises(ps.CheckpointError, match="several operators have its name"):
        run(tmp_path, second)


def test_lists_of_identities_are_no_texts(tmp_path: Path) -> None:
    with pytest.raises(ps.ConfigError, match="new is a list of the identities of operators, and is 'scan'"):
        ps.Checkpoint(tmp_path, new="scan")


def test_a_changed_function_warns_and_names_the_operator(tmp_path: Path) -> None:
    def subtracting(records: ps.Stream[Any]) -> ps.Stream[Any]:
        return named(records).scan(lambda _, amount, total: total - amount, default=int, name="sums")

    write(tmp_path, 1, 2, 3)
    run(tmp_path, lambda records: totals(records, "sums"), follows=True)
    run(tmp_path, lambda records: totals(records, "sums"), follows=True)  # nothing has changed
    write(tmp_path, 4)
    before = shown(tmp_path)
    with pytest.warns(ps.UsageWarning, match=r"other functions than at the checkpoint in 'sums'"):
        run(tmp_path, subtracting)
    total = before[-1]
    assert shown(tmp_path) == [*before, *(total - more for more in range(1, 5 - len(before)))]


COLUMNS = pa.schema([("name", pa.string()), ("amount", pa.int64())])
WIDER = pa.schema([("name", pa.string()), ("amount", pa.float64())])


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (
            lambda rows: rows.to_arrow(COLUMNS).distinct_so_far("name", name="seen"),
            lambda rows: rows.to_arrow(WIDER).distinct_so_far("name", name="seen"),
            r"is to_arrow; .*amount: double, and in the checkpoint to_arrow; .*amount: int64",
        ),
        (
            lambda rows: rows.to_arrow(COLUMNS).distinct_so_far("name", name="seen"),
            lambda rows: rows.to_arrow(COLUMNS).distinct_so_far("amount", name="seen"),
            r"'seen' .*placed by amount, and in the checkpoint .*placed by name",
        ),
    ],
    ids=["schema", "key"],
)
def test_other_columns_and_other_keys_are_refused_showing_both(
    tmp_path: Path, first: Any, second: Any, words: str
) -> None:
    def columns(build: Any) -> Build:
        def built(records: ps.Stream[Any]) -> ps.Stream[Any]:
            rows = records.map(lambda record: {key: record[key] for key in ("name", "amount")})
            made: ps.Stream[Any] = build(rows).to_records().map(lambda row: (row["name"], 1))
            return made

        return built

    write(tmp_path, 1, 2, 3)
    run(tmp_path, columns(first), follows=True)
    with pytest.raises(ps.CheckpointError, match=words):
        run(tmp_path, columns(second))
    run(tmp_path, columns(first))


@pytest.mark.parametrize(
    ("changed", "names"),
    [
        (lambda rows: rows.filter(bool).map(lambda row: dict(row, amount=2), name="twice"), "twice"),
        (
            lambda rows: rows.filter(bool).map(lambda row, by=2: dict(row, amount=by), name="default"),
            "default",
        ),
        (lambda rows: rows.filter(bool).map(around(2), name="closure"), "closure"),
        (lambda rows: rows.exchange(lambda row: 1 + len(row)).filter(bool), "exchange"),
    ],
    ids=["chain", "default", "closure", "exchange"],
)
def test_a_changed_function_before_state_warns(tmp_path: Path, changed: Any, names: str) -> None:
    before: Any = {
        "twice": lambda rows: rows.filter(bool).map(lambda row: dict(row, amount=1), name="twice"),
        "default": lambda rows: rows.filter(bool).map(lambda row, by=1: dict(row, amount=by), name="default"),
        "closure": lambda rows: rows.filter(bool).map(around(1), name="closure"),
        "exchange": lambda rows: rows.exchange(lambda row: len(row)).filter(bool),
    }[names]
    write(tmp_path, 1, 2, 3)
    run(tmp_path, lambda records: totals(before(records)), follows=True)
    run(tmp_path, lambda records: totals(before(records)), follows=True)  # nothing has changed
    with pytest.warns(
        ps.UsageWarning, match=f"other functions than at the checkpoint in '[^']*{names}[^']*'"
    ):
        run(tmp_path, lambda records: totals(changed(records)))


def test_a_changed_function_that_changes_no_record_does_not_warn(tmp_path: Path) -> None:
    write(tmp_path, 1, 2, 3)
    run(tmp_path, lambda records: totals(records.inspect(lambda _: None)), follows=True)
    run(tmp_path, lambda records: totals(records.inspect(lambda row: len(row))))


def around(amount: int) -> Callable[[Any], Any]:
    return lambda row: dict(row, amount=amount)


@pytest.mark.parametrize(
    ("module", "operator"),
    [(reading, "read"), (outbox, "write"), (writing, "write")],
    ids=["read", "outbox", "write"],
)
def test_state_of_newer_sources_and_sinks_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, operator: str
) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            source = JSONLinesSource(str(tmp_path / "in.jsonl"), follow=True)
            records = scope.read(source, time=lambda record: record["day"], name="read")
            sink = SQLiteSink(tmp_path / "out.db", "sales", columns=["name", "amount"])
            records.write(sink, commit="time" if module is writing else "checkpoint", name="write")
        if worker.resumed is None:
            while not rows(tmp_path / "out.db", "select * from sales"):
                worker.step()
            stop_at_checkpoint(worker)

    write(tmp_path, 1, 2, 3)
    with monkeypatch.context() as newer:
        newer.setattr(module, "_VERSION", module._VERSION + 1)
        run_until_stopped(main, settings(tmp_path))
    with pytest.raises(ps.CheckpointError, match=f"'{operator}' .* knows versions up to {module._VERSION}"):
        ps.execute(main, config=settings(tmp_path))


def test_own_state_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        class Seen:
            version = 1

            def __init__(self) -> None:
                self.read: list[Any] = []

            def snapshot(self) -> list[tuple[int, int]]:
                return [(0, 1)]

            def restore(self, pairs: Any, version: int) -> None:
                restored.append((list(pairs), version))

        Seen.version = current
        with worker.dataflow() as scope:
            handle, stream = scope.new_input(resume="continue")
            stream.unary(ps.Pipeline(), "seen", lambda *_: lambda *_: None, state=Seen)
        if worker.resumed is None:
            stop_at_checkpoint(worker)
        handle.close()

    restored: list[Any] = []
    current = 2
    run_until_stopped(main, settings(tmp_path))
    current = 1
    with pytest.raises(ps.CheckpointError, match=r"'seen' .* version 2 .* program's has the version 1"):
        ps.execute(main, config=settings(tmp_path))
    current = 3
    ps.execute(main, config=settings(tmp_path))
    assert restored == [([(0, 1)], 2)]


def test_state_of_a_newer_version_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(records: ps.Stream[Any]) -> ps.Stream[Any]:
        rows = records.map(lambda record: {key: record[key] for key in ("name", "amount")})
        return rows.to_arrow(COLUMNS).limit(1).to_records().map(lambda row: (row["name"], row["amount"]))

    write(tmp_path, 1, 2, 3)
    with monkeypatch.context() as newer:
        newer.setattr(declared_state, "_VERSION", 2)
        run(tmp_path, limited, follows=True)
    with pytest.raises(ps.CheckpointError, match=r"'limit' .*version 2 .* knows versions up to 1"):
        run(tmp_path, limited)
