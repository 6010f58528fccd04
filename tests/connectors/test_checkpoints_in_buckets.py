"""Checkpoints in a bucket, on a server of S3: needs moto's server, and a build with `cloud`."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

import pointstamp as ps
from killing import rows
from pointstamp.connectors import JSONLinesSource, QueueSource, SQLiteSink
from resuming import run_until_stopped, stop_at_checkpoint


def has_clouds() -> bool:
    """Whether the build has a client of object stores."""
    config = ps.Config(checkpoint=ps.Checkpoint("s3://bucket.invalid/"))
    try:
        ps.execute(lambda worker: None, config=config)
    except ps.CheckpointError as error:
        return "FEATURES=cloud" not in str(error)
    return True


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Returns the address of a server of S3 that has the bucket `kept`."""
    if find_spec("moto") is None or find_spec("flask") is None:
        pytest.skip("needs moto[server]")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        address = f"http://127.0.0.1:{port}"
        try:
            made = urllib.request.Request(f"{address}/kept", method="PUT")
            end = time.monotonic() + 60
            while True:
                try:
                    urllib.request.urlopen(made, timeout=5).close()
                    break
                except OSError:
                    assert process.poll() is None
                    assert time.monotonic() < end
                    time.sleep(0.05)
            yield address
        finally:
            process.terminate()


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Returns a prefix in a bucket, to which the environment leads."""
    for name, value in {
        "AWS_ENDPOINT": server,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    if not has_clouds():
        pytest.skip("needs a build with FEATURES=cloud")
    return f"s3://kept/{time.time_ns()}"


def run(folder: Path, location: str, *, goes_on: bool) -> None:
    """Makes a checkpoint in the middle, or resumes from it and ends."""

    def main(worker: ps.Worker) -> None:
        assert (worker.resumed is not None) == goes_on
        with worker.dataflow() as scope:
            source = JSONLinesSource(str(folder / "in.jsonl"), follow=not goes_on)
            records = scope.read(source, time=lambda record: record["day"])
            amounts = records.key_by(lambda record: record["name"], lambda record: record["amount"])
            totals = amounts.scan(lambda _, n, total: total + n, default=int)
            totals.write(SQLiteSink(folder / "out.db", "totals", columns=["name", "total"]))
        if goes_on:
            return
        while len(shown(folder)) < 4:
            worker.step_or_park(0.01)
        stop_at_checkpoint(worker)

    config = ps.Config(checkpoint=ps.Checkpoint(location, every=None))
    if goes_on:
        ps.execute(main, config=config)
    else:
        run_until_stopped(main, config)


def shown(folder: Path) -> list[tuple[str, int]]:
    return sorted(rows(folder / "out.db", "select name, total from totals"))


def test_a_program_goes_on_from_a_bucket(tmp_path: Path, bucket: str) -> None:
    def add(days: range) -> None:
        with (tmp_path / "in.jsonl").open("a") as file:
            for day in days:
                for name in ("ann", "bob"):
                    file.write(json.dumps({"day": day, "name": name, "amount": 1}) + "\n")

    add(range(3))
    run(tmp_path, bucket, goes_on=False)
    command = [sys.executable, "-m", "pointstamp", "checkpoints", "verify", bucket]
    subprocess.run(command, check=True, timeout=60)
    add(range(3, 6))
    run(tmp_path, bucket, goes_on=True)
    assert shown(tmp_path) == sorted((name, total) for name in ("ann", "bob") for total in range(1, 7))
    with pytest.raises(ps.CheckpointError, match="the computation has ended"):
        run(tmp_path, bucket, goes_on=True)


def test_a_bucket_that_is_not_there_is_named(bucket: str) -> None:
    config = ps.Config(checkpoint=ps.Checkpoint("s3://missing/prefix"))
    with pytest.raises(ps.CheckpointError, match="s3://missing/prefix"):
        ps.execute(lambda worker: None, config=config)


def test_a_journal_needs_a_folder(bucket: str) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(QueueSource(journal=True))

    with pytest.raises(ps.GraphError, match="kept in a bucket: give Checkpoint a folder"):
        ps.execute(main, config=ps.Config(checkpoint=ps.Checkpoint(bucket, every=None)))
