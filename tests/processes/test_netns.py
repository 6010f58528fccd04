"""Processes on hosts of their own: network namespaces joined by a bridge, with delay and loss added.

Linux only, and only with the right to make network namespaces; skipped elsewhere, with the reason.
"""

import fcntl
import heapq
import os
import random
import select
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from clusters import Cluster

HOSTS = 3
NETWORK = "10.213.77"
PORT = 2101

# Of linux/if_tun.h.
TUNSETIFF = 0x400454CA
IFF_TAP = 0x0002
IFF_NO_PI = 0x1000


def command(*words: object) -> str:
    """Runs a command; returns what it prints.

    Raises:
        subprocess.CalledProcessError: If it fails.
    """
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=120, check=True
    ).stdout


class Hosts:
    """Some network namespaces, each with one interface `eth0` and an address."""

    def __init__(self) -> None:
        mark = f"ps{os.getpid()}"
        self.bridge = f"{mark}-bridge"
        self.names = [f"{mark}-{host}" for host in range(HOSTS)]
        self.addresses = [f"{NETWORK}.{host + 1}:{PORT}" for host in range(HOSTS)]
        self.prefix = [("ip", "netns", "exec", name) for name in self.names]

    def make(self) -> None:
        for name in (*self.names, self.bridge):
            command("ip", "netns", "add", name)
        command(*self.prefix[0], sys.executable, "-c", "")

    def join(self) -> None:
        """Connects them by a bridge of the kernel's."""
        command("ip", "-n", self.bridge, "link", "add", "bridge", "type", "bridge")
        command("ip", "-n", self.bridge, "link", "set", "bridge", "up")
        for host, name in enumerate(self.names):
            ends = ("add", f"port{host}", "type", "veth", "peer", "name", "eth0", "netns", name)
            command("ip", "-n", self.bridge, "link", *ends)
            command("ip", "-n", self.bridge, "link", "set", f"port{host}", "master", "bridge", "up")
        self.bring_up()

    def bring_up(self) -> None:
        """Gives the interfaces, which are there, their addresses."""
        for host, name in enumerate(self.names):
            command("ip", "-n", name, "address", "add", f"{NETWORK}.{host + 1}/24", "dev", "eth0")
            command("ip", "-n", name, "link", "set", "eth0", "up")
            command("ip", "-n", name, "link", "set", "lo", "up")

    def unplug(self, host: int) -> None:
        """Takes a host off the network, without telling the others."""
        command("ip", "-n", self.bridge, "link", "set", f"port{host}", "down")

    def remove(self) -> None:
        for name in (*self.names, self.bridge):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, timeout=120, check=False)


class Switch:
    """Connects hosts in the place of a bridge, late and not reliably, where the kernel has no `netem`.

    Every frame that a host sends is lost, or comes to all others after a while.
    """

    def __init__(self, hosts: Hosts, delay: float, jitter: float, loss: float) -> None:
        self._delay, self._jitter, self._loss = delay, jitter, loss
        self._random = random.Random(5)
        self._ports: list[int] = []
        self._stop, self._stopping = os.pipe()
        self.passed = self.lost = 0
        for host, name in enumerate(hosts.names):
            port = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            self._ports.append(port)
            tap = f"ps{os.getpid()}t{host}"
            fcntl.ioctl(port, TUNSETIFF, struct.pack("16sH22x", tap.encode(), IFF_TAP | IFF_NO_PI))
            command("ip", "link", "set", tap, "netns", name, "name", "eth0")
        hosts.bring_up()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        underway: list[tuple[float, int, int, bytes]] = []
        while True:
            wait = max(0.0, underway[0][0] - time.monotonic()) if underway else None
            readable, _, _ = select.select([self._stop, *self._ports], [], [], wait)
            if self._stop in readable:
                return
            for port in readable:
                with suppress(OSError):
                    while frame := os.read(port, 1 << 16):
                        if self._random.random() < self._loss:
                            self.lost += 1
                            continue
                        self.passed += 1
                        at = time.monotonic() + self._delay + self._jitter * self._random.random()
                        heapq.heappush(underway, (at, self.passed, port, frame))
            while underway and underway[0][0] <= time.monotonic():
                _, _, source, frame = heapq.heappop(underway)
                for port in self._ports:
                    if port != source:
                        with suppress(OSError):
                            os.write(port, frame)

    def close(self) -> None:
        os.write(self._stopping, b"!")
        self._thread.join()
        for descriptor in (self._stop, self._stopping, *self._ports):
            os.close(descriptor)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            pytest.skip(f"network namespaces need {tool}, of iproute2")
    made = Hosts()
    try:
        try:
            made.make()
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces are not permitted here: {error.stderr.strip()}")
        yield made
    finally:
        made.remove()


COUNT = """
def main(worker):
    words = ps.InputHandle()
    with worker.dataflow() as scope:
        counts = scope.input_from(words).exchange(lambda word: word).value_counts()
        probe = counts.probe()
        out = counts.capture()
    for round in range(20):
        if round == 3:
            say("running")
        words.send_batch([f"word {(worker.index + i) % 50}" for i in range(1000)])
        words.advance_to(round + 1)
        worker.step_while(lambda: probe.less_than(round + 1))
    words.close()
    worker.run()
    return {time: sorted(batch) for time, batch in out.extract()}
"""


def expected() -> list[tuple[str, int]]:
    return [(f"word {i}", 20 * HOSTS) for i in sorted(range(50), key=lambda i: f"word {i}")]


def assert_counted(cluster: Cluster) -> None:
    results = cluster.results(55)
    assert len(results) == HOSTS
    for round in range(20):
        found = sorted(pair for result in results for pair in result.get(round, []))
        assert found == expected(), round
    assert all(results)  # each host had its share


def test_three_hosts_that_are_far_apart_and_lose_packets(hosts: Hosts) -> None:
    """The kernel delays and drops packets."""
    hosts.join()
    for name in hosts.names:
        try:
            how = ("netem", "delay", "10ms", "3ms", "loss", "1%")
            command("tc", "-n", name, "qdisc", "replace", "dev", "eth0", "root", *how)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"tc cannot add delay and loss here: {error.stderr.strip()}")
    with Cluster(COUNT, HOSTS, prefix=hosts.prefix, addresses=hosts.addresses) as cluster:
        assert_counted(cluster)


def test_three_hosts_on_a_network_that_is_slow_and_loses_packets(hosts: Hosts) -> None:
    """A switch in Python delays and drops packets."""
    try:
        switch = Switch(hosts, 0.010, 0.003, 0.01)
    except OSError as error:
        pytest.skip(f"network interfaces of our own are not permitted here: {error}")
    try:
        with Cluster(COUNT, HOSTS, prefix=hosts.prefix, addresses=hosts.addresses) as cluster:
            assert_counted(cluster)
    finally:
        switch.close()
    assert switch.passed > 100
    assert switch.lost > 0


def test_three_hosts_started_one_after_another(hosts: Hosts) -> None:
    """The last one first: the others' addresses are there, and no process listens yet."""
    hosts.join()
    with Cluster(COUNT, HOSTS, start=[], prefix=hosts.prefix, addresses=hosts.addresses) as cluster:
        for process in reversed(range(HOSTS)):
            cluster.start(process)
            time.sleep(0.3)
        assert_counted(cluster)


def test_a_host_that_is_unplugged_is_lost(hosts: Hosts) -> None:
    """No packet reports it: the connections stay open."""
    hosts.join()
    program = COUNT.replace("range(20)", "range(1 << 60)")
    with Cluster(
        program, HOSTS, prefix=hosts.prefix, addresses=hosts.addresses, stall_timeout=1.0
    ) as cluster:
        cluster.wait_for("running")
        hosts.unplug(2)
        cluster.end(6)
        for process in (0, 1):
            assert cluster.processes[process].code == 1
            assert f"process 2 ({hosts.addresses[2]})" in cluster.processes[process].err
        assert cluster.processes[2].code == 1
        assert "ClusterError" in cluster.processes[2].err


def test_beyond_loopback_there_is_no_cluster_without_a_secret(hosts: Hosts) -> None:
    with Cluster(COUNT, 2, addresses=hosts.addresses[:2], secret=None) as cluster:
        cluster.end(20)
        for process in cluster.processes.values():
            assert "ConfigError" in process.err
            assert "must share a secret" in process.err
