"""Programs stop with a checkpoint, and are started again when a process is lost."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from killing import rows
from pointstamp.__main__ import main as command
from resuming import Found, make_checkpoint, run_until_stopped, settings, stop_at_checkpoint

PROGRAM = Path(__file__).with_name("stoppable.py")
LIMIT = 100
"""Seconds that anything may take: a limit against hangs."""

pytestmark = pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")


def write(folder: Path, count: int) -> None:
    with (folder / "in.jsonl").open("a") as file:
        for _ in range(count):
            file.write(json.dumps({"name": "ann"}) + "\n")


def shown(folder: Path) -> list[int]:
    return [total for (total,) in rows(folder / "out.db", "select total from totals order by rowid")]


@contextmanager
def start(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Runs a program; at the end, kills it and the processes that it started."""
    with subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as program:
        try:
            yield program
        finally:
            try:
                os.killpg(program.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # all have ended


def wait_for(folder: Path, count: int, program: subprocess.Popen[str]) -> None:
    end = time.monotonic() + LIMIT
    while len(shown(folder)) < count:
        assert program.poll() is None, program.communicate()
        assert time.monotonic() < end, "the program hangs"
        time.sleep(0.02)


def ended(program: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, said = program.communicate(timeout=LIMIT)
    return program.returncode, out, said


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("how", ["SIGTERM", "stop=True"])
def test_a_program_that_stops_goes_on(tmp_path: Path, how: str, processes: int) -> None:
    for turn in range(1, 3):
        write(tmp_path, 3)
        with start(PROGRAM, tmp_path, processes) as program:
            wait_for(tmp_path, 3 * turn, program)
            if how == "SIGTERM":
                program.send_signal(signal.SIGTERM)
            else:
                (tmp_path / "stop").touch()
            code, out, said = ended(program)
        assert code == 0, said
        assert ("went on" in out) == (how != "SIGTERM")
    assert shown(tmp_path) == [1, 2, 3, 4, 5, 6]


def test_lost_processes_are_started_again(tmp_path: Path) -> None:
    write(tmp_path, 3)
    with start(PROGRAM, tmp_path, 2) as program:
        for turn in range(1, 3):
            wait_for(tmp_path, 3 * turn, program)
            (tmp_path / "kill").touch()
            write(tmp_path, 3)
        wait_for(tmp_path, 9, program)
        (tmp_path / "stop").touch()
        code, _, said = ended(program)
    assert code == 0, said
    assert said.count("all start again from the last checkpoint") == 2
    assert shown(tmp_path) == list(range(1, 10))


@pytest.mark.parametrize("retries", [False, True])
def test_an_exception_of_the_program_ends_it_unless_it_is_to_be_retried(
    tmp_path: Path, retries: bool
) -> None:
    write(tmp_path, 3)
    with start(PROGRAM, tmp_path, 2, *(["retry"] if retries else [])) as program:
        wait_for(tmp_path, 3, program)
        (tmp_path / "raise").touch()
        if retries:
            write(tmp_path, 1)
            wait_for(tmp_path, 4, program)
            (tmp_path / "stop").touch()
        code, _, said = ended(program)
    assert ("all start again" in said) == retries
    assert code == (0 if retries else 1)
    assert ("OSError: the network is away" in said.partition("all start again")[0]) or not retries


def test_the_command_line_makes_checkpoints_and_restarts(tmp_path: Path) -> None:
    write(tmp_path, 3)
    recovery = ("--checkpoint", tmp_path / "state", "--every", "0.05", "--restart", "3")
    with start("-m", "pointstamp", "run", "-n", 2, *recovery, f"{PROGRAM}:main", tmp_path) as program:
        wait_for(tmp_path, 3, program)
        (tmp_path / "kill").touch()
        write(tmp_path, 3)
        wait_for(tmp_path, 6, program)
        program.send_signal(signal.SIGTERM)
        code, _, said = ended(program)
    assert code == 0, said
    assert said.count("all start again from the last checkpoint") == 1
    assert shown(tmp_path) == [1, 2, 3, 4, 5, 6]


def test_too_many_losses_end_the_program() -> None:
    from pointstamp.runtime.launcher.restarting import Starts

    starts = Starts(ps.Restart(times=3))
    assert [starts.lost() for _ in range(4)] == [0.1, 0.2, 0.4, None]


def test_settings_of_restarts_are_checked() -> None:
    for wrong in ({"times": -1}, {"within": 0}, {"retry_on": ("OSError",)}):
        with pytest.raises(ps.ConfigError, match=next(iter(wrong))):
            ps.Restart(**wrong)
    with pytest.raises(ps.ConfigError, match=r"restart is a pointstamp\.Restart"):
        ps.Config(restart=5)  # type: ignore[arg-type]
    with pytest.raises(ps.ConfigError, match="none is made: give the config checkpoint="):
        ps.execute(lambda worker: None, processes=2, restart=ps.Restart())
    with pytest.raises(ps.ConfigError, match="say with processes="):
        ps.execute(lambda worker: None, restart=ps.Restart())


def test_a_main_that_leaves_a_dataflow_out_is_refused(tmp_path: Path) -> None:
    handles: list[Any] = []

    def main(worker: ps.Worker) -> None:
        if worker.resumed is None:
            with worker.dataflow() as scope:
                handles.append(scope.new_input()[0])
            stop_at_checkpoint(worker)

    run_until_stopped(main, settings(tmp_path))
    with pytest.raises(ps.CheckpointError, match=r"has not built|not built"):
        ps.execute(main, config=settings(tmp_path))


def test_an_ended_computation_says_so(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            return Found(scope.to_stream([1])).records

    assert ps.execute(main, config=settings(tmp_path)) == [[(0, 1)]]
    with pytest.raises(ps.CheckpointError, match=r"the computation has ended: .*Use another location"):
        ps.execute(main, config=settings(tmp_path))


def test_checkpoints_are_listed_verified_and_pruned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input()
            stream.key_by(lambda n: n % 3).scan(lambda _, n, total: total + n, default=int, name="sums")
        for time_ in range(5):
            handle.send(time_)
            handle.advance_to(time_ + 1)
            make_checkpoint(worker)
        stop_at_checkpoint(worker)

    run_until_stopped(main, settings(tmp_path, keep=2))
    location = str(tmp_path / "state")

    def said(*arguments: str, code: int = 0) -> str:
        assert command(["checkpoints", *arguments]) == code
        return capsys.readouterr().out

    lines = json.loads(said("list", location, "--json"))
    assert [line["workers"] for line in lines] == [1, 1]
    assert [line["fixed_workers"] for line in lines] == [None, None]
    newest = lines[-1]["number"]
    assert said("list", location).splitlines()[0].split() == [
        "number",
        "made",
        "workers",
        "packs",
        "bytes",
        "needed",
    ]
    assert str(newest) in said("list", location)
    shows = json.loads(said("show", location, "--json"))
    assert any(line["operator"].endswith("sums") and line["bytes"] > 0 for line in shows)
    assert "sums" in said("show", location, "--number", str(newest))
    assert json.loads(said("verify", location, "--json"))["damage"] == []
    assert "read 2 checkpoints" in said("verify", location)
    assert json.loads(said("prune", location, "--json")) == {"removed": 0}
    pack = max((tmp_path / "state" / "packs").iterdir())
    damaged = bytearray(pack.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    pack.write_bytes(damaged)
    assert pack.name in said("verify", location, code=1)
    assert command(["checkpoints", "list", str(tmp_path / "nowhere")]) == 1
