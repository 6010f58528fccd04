"""`Config` refuses values that cannot work, and names the change."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from pointstamp import Config, ConfigError


def test_defaults() -> None:
    config = Config()
    assert (config.workers, config.processes, config.process, config.peers) == (1, 1, 0, 1)
    assert (config.addresses, config.secret) == ((), None)
    assert (config.connect_timeout, config.progress_mode, config.high_water) == (
        30.0,
        "demand",
        256 << 20,
    )


def test_processes_without_addresses_are_on_loopback() -> None:
    assert Config(processes=2).addresses == ("127.0.0.1:2101", "127.0.0.1:2102")


def test_a_text_secret_is_its_bytes() -> None:
    assert Config(secret="pä").secret == "pä".encode()


REMOTE = ["10.0.0.1:2101", "10.0.0.2:2101"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"workers": 0}, "workers must be at least 1, and is 0"),
        ({"workers": "2"}, "workers must be an int, and is '2'"),
        ({"workers": 1.0}, "workers must be an int, and is 1.0"),
        ({"workers": True}, "workers must be a number, and is True"),
        ({"processes": 0}, "processes must be at least 1"),
        ({"process": -1}, "process must be at least 0"),
        ({"process": 2, "processes": 2}, "number them from 0 to 1, or raise processes"),
        ({"processes": 70_000}, "70000 processes do not have a port each: pass addresses="),
        ({"processes": 2, "addresses": ["localhost:1"]}, "2 processes and 1 addresses: list one"),
        ({"addresses": "localhost:1"}, "addresses must be a list of strings"),
        ({"processes": 2, "addresses": ["localhost:1"] * 2}, "localhost:1 is listed twice"),
        ({"addresses": ["localhost"]}, "'localhost' is not an address: write \"host:port\""),
        ({"addresses": ["::1:2101"]}, r'"\[::1\]:2101"'),
        ({"addresses": [":2101"]}, "is not an address"),
        ({"addresses": ["host:x"]}, "is not an address"),
        ({"addresses": [2101]}, "2101 is not an address"),
        ({"addresses": ["localhost:65536"]}, "a port is a number from 1 to 65535"),
        ({"addresses": ["localhost:0"]}, "a port is a number from 1 to 65535"),
        (
            {"processes": 2, "addresses": REMOTE},
            "must share a secret: pass secret=, or set POINTSTAMP_SECRET",
        ),
        ({"secret": ""}, "secret is empty: leave it out"),
        ({"secret": 5}, "secret must be bytes or str, and is a int"),
        ({"connect_timeout": 0}, "connect_timeout must be a positive number of seconds"),
        ({"connect_timeout": float("inf")}, "connect_timeout must be a positive number"),
        ({"connect_timeout": float("nan")}, "connect_timeout must be a positive number"),
        ({"connect_timeout": "soon"}, "connect_timeout must be a number of seconds, and is 'soon'"),
        ({"stall_timeout": -1}, "stall_timeout must be a positive number of seconds"),
        ({"progress_mode": "lazy"}, 'progress_mode must be "demand", "eager" or "tree", and is \'lazy\''),
        ({"progress_mode": "eager:2"}, "progress_mode must be .*, and is 'eager:2'"),
        ({"progress_mode": "tree:0"}, "'tree:0': after tree: comes the number of processes in a group"),
        ({"progress_mode": "tree:"}, "'tree:': after tree: comes the number of processes in a group"),
        ({"high_water": 0}, "high_water must be at least 1"),
    ],
)
def test_what_cannot_work_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Config(**options)


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (0, ("127.0.0.1", 0)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:0", ("::1", 0)),
        ("[::]:8000", ("::", 8000)),
    ],
)
def test_a_dashboard_may_listen_on_any_free_port(given: int | str, place: tuple[str, int]) -> None:
    assert Config(dashboard=given).dashboard == place


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.3.2.1", "[::1]"])
def test_loopback_needs_no_secret(host: str) -> None:
    assert Config(addresses=[f"{host}:2101"]).secret is None


def test_remote_addresses_with_a_secret() -> None:
    config = Config(processes=2, addresses=REMOTE, secret=b"hush")
    assert config.addresses == tuple(REMOTE)


def test_it_is_read_only_and_compares_by_value() -> None:
    config = Config(workers=2, secret="hush")
    with pytest.raises(AttributeError):
        config.workers = 3  # type: ignore[misc]
    with pytest.raises(AttributeError):
        config.worker = 3  # type: ignore[attr-defined]
    same = Config(workers=2, secret=b"hush")
    assert config == same
    assert hash(config) == hash(same)
    assert pickle.loads(pickle.dumps(config)) == config
    assert config != Config(workers=2)
    assert config != Config(workers=2, secret="shush")
    assert config != object()


@pytest.mark.parametrize("dashboard", [0, 8080, "localhost:81", "[::1]:8080", "0.0.0.0:9"])
def test_repr_shows_a_log_and_a_dashboard_as_they_are_given(dashboard: int | str) -> None:
    made = Config(dashboard=dashboard, log="x", telemetry=True)
    assert repr(made).endswith(f", log='x', dashboard={dashboard!r}, telemetry=True)")
    assert eval(repr(made)) == made


def test_repr_never_shows_the_secret() -> None:
    shown = repr(Config(workers=2, processes=2, addresses=REMOTE, secret="hush-hush"))
    assert "hush" not in shown
    assert "secret=<not shown>" in shown
    assert "workers=2" in shown
    assert "10.0.0.2:2101" in shown
    assert "secret" not in repr(Config())


def test_from_args_takes_its_own_and_returns_the_rest() -> None:
    argv = ["-w", "3", "books/", "--processes=2", "-p1", "--progress-mode", "eager", "--top", "20"]
    config, rest = Config.from_args(argv)
    assert config == Config(workers=3, processes=2, process=1, progress_mode="eager")
    assert rest == ["books/", "--top", "20"]
    assert argv[0] == "-w"


def test_from_args_leaves_what_follows_two_dashes() -> None:
    assert Config.from_args(["a", "--", "-w", "3", "--", "-h"]) == (
        Config(),
        ["a", "-w", "3", "--", "-h"],
    )


def test_from_args_leaves_help_and_longer_names_to_the_program() -> None:
    assert Config.from_args(["-h", "--work", "--hostfiles"])[1] == ["-h", "--work", "--hostfiles"]


def test_from_args_reads_a_hostfile(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("# the cluster\nlocalhost:2101\n\n  localhost:2102  # the second\n")
    config, rest = Config.from_args(["--hostfile", str(hosts), "-p", "1"])
    assert config == Config(processes=2, process=1, addresses=["localhost:2101", "localhost:2102"])
    assert rest == []


def test_from_args_reads_the_secret_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSTAMP_SECRET", "hush")
    assert Config.from_args([])[0].secret == b"hush"


def test_from_args_refuses_what_cannot_work(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("# none\n")
    for argv, says in [
        (["-w", "many"], "argument -w/--workers: invalid int value: 'many'"),
        (["-w"], "expected one argument"),
        (["-n", "2", "-p", "2"], "number them from 0 to 1"),
        (["--progress-mode", "lazy"], "progress_mode must be"),
        (["--hostfile", str(tmp_path / "absent")], "the host file cannot be read: .*absent"),
        (["--hostfile", str(empty)], 'names no process: write one "host:port" per line'),
    ]:
        with pytest.raises(ConfigError, match=says):
            Config.from_args(argv)
