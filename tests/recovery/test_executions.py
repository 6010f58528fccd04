"""Two executions at one location, and targets that are ahead: nothing is shown twice."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from killing import LIMIT, PROGRAMS, check_folder, entries, kills, newest, rows, run
from pointstamp.connectors import JSONLinesSource, SQLiteSink
from resuming import run_until_stopped, settings, stop_at_checkpoint

LINES = 8_000


def write_sales(folder: Path) -> list[tuple[str, int]]:
    """Writes a file of sales of one name; returns its expected results."""
    with (folder / "sales.jsonl").open("w") as file:
        for line in range(LINES):
            file.write(json.dumps({"day": line // 20, "name": "ann", "amount": 1}) + "\n")
    return [("ann", total) for total in range(1, LINES + 1)]


def shown(folder: Path) -> list[tuple[Any, ...]]:
    return sorted(rows(folder / "totals.db", "select name, total from totals"))


def begin(folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, str(PROGRAMS / "sales.py"), str(folder), "1", "1"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def is_free(database: Path) -> bool:
    """Returns whether no process holds a lock of a database."""
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=rw", uri=True, timeout=0)) as connection:
            connection.execute("begin exclusive")
    except sqlite3.OperationalError as error:
        return "unable to open" in str(error)  # not made yet
    return True


@kills
@pytest.mark.parametrize("more", [1, 2, 3])
def test_a_program_that_is_stopped_past_a_takeover_shows_nothing(tmp_path: Path, more: int) -> None:
    expected = write_sales(tmp_path)
    state = tmp_path / "state"
    with begin(tmp_path) as first:
        try:
            end = time.monotonic() + LIMIT
            stopped = False
            while not stopped and first.poll() is None:
                assert time.monotonic() < end
                if newest(state) > more:
                    first.send_signal(signal.SIGSTOP)
                    time.sleep(0.01)  # until it has stopped
                    # The second would time out while a stopped process holds a lock of the database.
                    stopped = is_free(tmp_path / "totals.db")
                    if not stopped:
                        first.send_signal(signal.SIGCONT)
                time.sleep(0.001)
            second = run("sales.py", tmp_path, 1, 1)
            assert second.ended, second.said
            assert shown(tmp_path) == expected
            first.send_signal(signal.SIGCONT)
            _, said = first.communicate(timeout=LIMIT)
        finally:
            first.kill()
    had_ended = "the computation has ended" in second.said
    assert not stopped or had_ended or "was overtaken" in said or "CheckpointError" in said, said
    assert shown(tmp_path) == expected


def until_stopped(program: "subprocess.Popen[str]") -> None:
    """Waits until a program has stopped itself."""
    end = time.monotonic() + LIMIT
    while True:
        found, status = os.waitpid(program.pid, os.WNOHANG | os.WUNTRACED)
        if found:
            assert os.WIFSTOPPED(status), f"it has ended: {status}"
            return
        assert time.monotonic() < end, "it does not stop"
        time.sleep(0.005)


@kills
@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("sqlite", ["database is locked", "another program was waited for, for 0.5 s (patience=)"]),
        ("duckdb", ["Could not set lock on file"]),
    ],
)
def test_a_lock_that_a_stopped_program_holds_is_an_error(tmp_path: Path, kind: str, words: list[str]) -> None:
    """The next execution cannot write, and says so in time; nothing is lost, and nothing comes twice."""
    lines = [json.dumps({"n": n}) for n in range(2000)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines) + "\n")
    expected = [(n,) for n in range(2000)]
    target = tmp_path / f"out.{kind}"
    connect = sqlite3.connect
    if kind == "duckdb":
        connect = pytest.importorskip("duckdb").connect
        with connect(str(target)) as database:
            database.execute("create table rows (n bigint)")
    command = [sys.executable, str(PROGRAMS / "locked.py"), str(tmp_path), kind, "stops"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as first:
        try:
            until_stopped(first)
            second = run("locked.py", tmp_path, kind, limit=60)
            assert second.status == 1, second.said
            assert all(word in second.said for word in [*words, target.name]), second.said
            first.send_signal(signal.SIGCONT)
            _, said = first.communicate(timeout=LIMIT)
        finally:
            first.kill()
    assert "was overtaken" in said, said
    third = run("locked.py", tmp_path, kind)
    assert third.ended, third.said
    with closing(connect(str(target))) as database:
        assert database.execute("select n from rows order by n").fetchall() == expected
    check_folder(tmp_path / "state")


@kills
def test_of_programs_that_start_together_one_goes_on(tmp_path: Path) -> None:
    expected = write_sales(tmp_path)
    with begin(tmp_path) as first, begin(tmp_path) as second, begin(tmp_path) as third:
        programs = [first, second, third]
        try:
            said = [program.communicate(timeout=LIMIT)[1] for program in programs]
        finally:
            for program in programs:
                program.kill()
    for program, words in zip(programs, said, strict=True):
        known = (
            "was overtaken",
            "has ended",
            "another sink",
            "locked",
            "is missing",
            "there is no checkpoint",
            "would be there twice",
        )
        assert program.returncode == 0 or any(word in words for word in known), words
    outcome = run("sales.py", tmp_path, 1, 1)
    assert outcome.ended, outcome.said
    assert shown(tmp_path) == expected
    check_folder(tmp_path / "state")


# ------------------------------------------------------------ targets that are ahead


def follow(folder: Path, *, days: int, workers: int = 1, state: str = "state", **options: Any) -> None:
    """Runs a program that follows its file, a day at a time, until so many days are shown."""
    file = folder / "in.jsonl"

    def write(day: int) -> None:
        with file.open("a") as opened:
            opened.write(json.dumps({"day": day, "name": "ann", "amount": 1}) + "\n")

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            records = scope.read(JSONLinesSource(str(file), follow=True), time=lambda record: record["day"])
            amounts = records.key_by(lambda record: record["name"], lambda record: record["amount"])
            totals = amounts.scan(lambda _, amount, total: total + amount, default=int)
            totals.write(SQLiteSink(folder / "totals.db", "totals", columns=["name", "total"]))
        end = time.monotonic() + LIMIT
        while worker.index == 0 and len(shown(folder)) < days:
            written = len(file.read_text().splitlines())
            if written <= len(shown(folder)) + 1:
                write(written)
            until = time.monotonic() + 0.01
            worker.step_while(lambda: time.monotonic() < until)
            assert time.monotonic() < end
        if worker.index == 0:
            stop_at_checkpoint(worker)
        worker.run()

    file.touch()
    checkpoint = ps.Checkpoint(folder / state, every=0.01, keep=50, **options)
    run_until_stopped(main, ps.Config(workers=workers, checkpoint=checkpoint))


def manifests(state: Path) -> list[int]:
    return [
        number
        for number in entries(state)
        if '"manifest": null' not in (state / "log" / str(number)).read_text()
    ]


def positions(folder: Path) -> dict[int, int]:
    """Returns the last checkpoint that the target has, by part."""
    with closing(sqlite3.connect(folder / "totals.db")) as database:
        tables = [
            name for (name,) in database.execute("select name from sqlite_master") if "checkpoint" in name
        ]
        return dict(database.execute(f"select part, number from {tables[0]}"))


def test_a_run_that_goes_on_from_an_older_checkpoint_than_its_target_has_is_refused(tmp_path: Path) -> None:
    follow(tmp_path, days=4)
    state = tmp_path / "state"
    there = positions(tmp_path)[0]
    before = shown(tmp_path)
    older = [number for number in manifests(state) if number < there]
    assert len(older) >= 3
    for number in older:
        with pytest.raises(ps.CheckpointError, match="would be there twice"):
            follow(tmp_path, days=6, at=number)
        assert shown(tmp_path) == before
    follow(tmp_path, days=6)
    assert shown(tmp_path) == [("ann", total) for total in range(1, 7)]


def test_a_run_with_another_location_than_its_target_is_refused(tmp_path: Path) -> None:
    follow(tmp_path, days=3)
    before = shown(tmp_path)
    with pytest.raises(ps.CheckpointError, match="of another computation"):
        follow(tmp_path, days=6, state="other")
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(ps.CheckpointError, match="of another computation"):
        follow(tmp_path, days=6)
    assert shown(tmp_path) == before


@pytest.mark.parametrize("what", ["manifest", "all manifests", "head", "packs"])
def test_a_location_that_has_lost_something_is_refused(tmp_path: Path, what: str) -> None:
    follow(tmp_path, days=4)
    before = shown(tmp_path)
    state = tmp_path / "state"
    lost = {
        "manifest": [state / "log" / str(manifests(state)[-1])],
        "all manifests": [state / "log" / str(number) for number in manifests(state)],
        "head": [state / "head"],
        "packs": list((state / "packs").iterdir()),
    }
    for path in lost[what]:
        path.unlink()
    with pytest.raises(ps.CheckpointError):
        follow(tmp_path, days=6)
    assert shown(tmp_path) == before


def test_a_pack_that_was_written_after_the_last_removal_is_removed_by_the_next_start(tmp_path: Path) -> None:
    """A process that does not lead may write its pack when the leader has removed the rest, and ended."""
    state = tmp_path / "state"
    ends = False

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, _ = scope.new_input(resume="continue")
        if ends:
            handle.close()
        else:
            stop_at_checkpoint(worker)

    def leave() -> None:
        """Leaves a pack of an attempt after the last."""
        *_, latest = sorted(
            (state / "packs").iterdir(), key=lambda pack: list(map(int, pack.name.split(".")))
        )
        execution, attempt, _worker = latest.name.split(".")
        shutil.copy(latest, state / "packs" / f"{execution}.{int(attempt) + 1}.1")

    run_until_stopped(main, settings(tmp_path))
    leave()
    with pytest.raises(AssertionError, match="left"):
        check_folder(state)
    run_until_stopped(main, settings(tmp_path))
    check_folder(state)
    ends = True
    leave()
    ps.execute(main, config=settings(tmp_path))
    check_folder(state)
    leave()
    with pytest.raises(ps.CheckpointError, match="has ended"):
        ps.execute(main, config=settings(tmp_path))
    check_folder(state)
