"""Forming a cluster: processes find each other in any order, and strangers are kept out."""

import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from clusters import Cluster, is_free

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of a POSIX system")

SECONDS = 100
"""Seconds that a process may take to end: a limit against hangs."""

ADD = """
def main(worker):
    with worker.dataflow() as scope:
        out = scope.to_stream(range(worker.index, 100, worker.peers)).exchange(lambda x: x // 7).capture()
    worker.run()
    return sorted(x for _, batch in out.extract() for x in batch)
"""


def assert_added(cluster: Cluster) -> None:
    results = cluster.results()
    assert results == [[x for x in range(100) if x // 7 % len(results) == w] for w in range(len(results))]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_processes_start_in_any_order(order: tuple[int, ...]) -> None:
    with Cluster(ADD, 3, start=[], workers=2) as cluster:
        for process in order:
            cluster.start(process)
            time.sleep(0.2)
        assert_added(cluster)


def refusals(cluster: Cluster) -> Iterator[str]:
    """Yields the text of the `ClusterError` with which each process has ended."""
    for process in cluster.processes.values():
        assert process.code == 1
        [error] = re.findall(r"^pointstamp\.ClusterError: (.*)", process.err, re.MULTILINE)
        yield error


def test_processes_bind_their_addresses_themselves() -> None:
    with Cluster("", 2, start=[]) as bound:
        addresses = bound.addresses
    with Cluster(ADD, 2, start=[], addresses=addresses) as cluster:
        cluster.start(1)
        time.sleep(0.3)
        cluster.start(0)
        assert_added(cluster)
    assert all(map(is_free, addresses))


def test_those_who_are_missing_are_listed() -> None:
    with Cluster(ADD, 4, start=[0, 2], connect_timeout=1.0) as cluster:
        cluster.end(1 + SECONDS)
        for error in refusals(cluster):
            for missing in (1, 3):
                assert f"process {missing} ({cluster.addresses[missing]})" in error
            listed = error.split("missing")[1]  # before it, one may say that another has given up first
            assert "process 0" not in listed
            assert "process 2" not in listed


def test_ctrl_c_while_others_are_missing() -> None:
    with Cluster("say('here')\n" + ADD, 2, start=[0]) as cluster:
        cluster.wait_for("here")
        time.sleep(0.2)
        cluster.processes[0].kill(signal.SIGINT)
        cluster.end(SECONDS)
        assert cluster.processes[0].code == -signal.SIGINT


@pytest.mark.parametrize(
    ("differs", "says"),
    [
        ({"workers": 2}, r"workers.*\b[12]\b.*\b[12]\b"),
        ({"progress_mode": "eager"}, "progress mode is (eager|demand) there and (eager|demand) here"),
    ],
)
def test_configurations_that_differ_are_refused(differs: dict[str, object], says: str) -> None:
    with Cluster(ADD, 2, start=[0]) as cluster:
        cluster.start(1, **differs)
        cluster.end()
        for error in refusals(cluster):
            assert re.search(says, error), error


def test_numbers_of_processes_that_differ_are_refused() -> None:
    with Cluster(ADD, 3, start=[0]) as cluster:
        cluster.start(1, processes=2, addresses=cluster.addresses[:2])
        cluster.end()
        for error in refusals(cluster):
            assert "processes" in error
            assert "2" in error
            assert "3" in error


def test_two_processes_with_the_same_number_are_refused() -> None:
    with Cluster(ADD, 3, start=[0, 1], connect_timeout=3.0) as cluster:
        cluster.start(2, process=1)
        cluster.end()
        assert any("ClusterError" in process.err for process in cluster.processes.values())
        assert all(process.code == 1 for process in cluster.processes.values())


def test_a_secret_that_differs_is_refused() -> None:
    """The connecting process gets the error; the other waits on, since any program may connect."""
    with Cluster(ADD, 2, start=[0]) as cluster:
        wrong = cluster.start(1, secret="another")
        cluster.end(SECONDS, [1])
        assert wrong.code == 1
        assert re.search(r"ClusterError: .*secret", wrong.err)
        assert "another" not in wrong.err
        assert cluster.processes[0].code is None


STRANGERS = {
    "silent": b"",
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "zeros": b"\0" * 1000,
    "rubbish": bytes(range(256)) * 4000,
}


@pytest.mark.parametrize("words", STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_disturbs_nothing(words: bytes) -> None:
    with Cluster(ADD, 2, start=[0]) as cluster:
        host, _, port = cluster.addresses[0].rpartition(":")
        with socket.create_connection((host, int(port))) as stranger:
            with suppress(OSError):
                stranger.sendall(words)
            time.sleep(0.2)
            cluster.start(1)
            assert cluster.processes[0].popen.wait(SECONDS) == 0, cluster.processes
            cluster.end()
        for process in cluster.processes.values():
            assert process.code == 0, process
            assert "result" in process.out


def test_strangers_are_logged() -> None:
    """Silent connections, and ones that send too little, are logged when their time is over."""
    with Cluster(ADD, 2, start=[0]) as cluster, ExitStack() as stack:
        host, _, port = cluster.addresses[0].rpartition(":")
        names = []
        for words in STRANGERS.values():
            stranger = stack.enter_context(socket.create_connection((host, int(port))))
            names.append("{}:{}".format(*stranger.getsockname()))
            with suppress(OSError):
                stranger.sendall(words)
        end = time.monotonic() + SECONDS
        while not all(f"a stranger at {name} was turned away" in cluster.processes[0].err for name in names):
            assert time.monotonic() < end, cluster.processes
            time.sleep(0.05)
        cluster.start(1)
        cluster.end()
        assert all(process.code == 0 for process in cluster.processes.values()), cluster.processes


def test_very_many_strangers_disturb_nothing() -> None:
    with Cluster(ADD, 2, start=[0]) as cluster:
        host, _, port = cluster.addresses[0].rpartition(":")
        strangers = [socket.create_connection((host, int(port))) for _ in range(100)]
        try:
            time.sleep(0.2)
            cluster.start(1)
            cluster.end()
        finally:
            for stranger in strangers:
                stranger.close()
        assert all(process.code == 0 for process in cluster.processes.values()), cluster.processes


def test_another_version_is_refused() -> None:
    pretend = "if config.process: ps._core.__version__ = ps.__version__ = '9.9.9'"
    with Cluster(pretend + ADD, 2) as cluster:
        cluster.end()
        for error in refusals(cluster):
            assert "version" in error
            assert "9.9.9" in error
