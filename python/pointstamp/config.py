"""The configuration of a computation: its workers, its processes and their connections.

Owns `Config`. A configuration that cannot work is refused when it is made, with a sentence that says what to
change, so nothing later checks again. Making one opens no connection, and nothing here is imported that
starting a program does not need: `argparse` and `ipaddress` are loaded on use.
"""

from __future__ import annotations

import math
import os
import threading
from dataclasses import dataclass
from operator import index as _as_int
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.errors import ConfigError
from pointstamp.tls import TLS

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Sequence
    from typing import NoReturn

    from pointstamp.checkpoint import Checkpoint
    from pointstamp.restart import Restart

__all__ = ["Config"]

FIRST_PORT = 2101
"""Process `i` of a cluster without addresses listens on this port plus `i`, on loopback."""

SECRET_VARIABLE = "POINTSTAMP_SECRET"
"""The variable with the shared secret for `Config.from_args`: every user of the host sees arguments."""

MEMORY_VARIABLE = "POINTSTAMP_MEMORY"
"""The variable with the budget of memory, where the program does not say one."""

PROGRESS_MODES = ("demand", "eager", "tree")


@dataclass(frozen=True, init=False)
class Config:
    """The configuration of a computation: its workers and its processes. Read-only once made.

    Args:
        workers: Worker threads in this process.
        processes: Processes in the cluster, each with as many workers.
        process: The number of this process, from 0.
        addresses: ``"host:port"`` of every process, in order. Left out: ports of the loopback
            interface, from 2101 on.
        secret: A secret that the processes of the cluster share; text is encoded as UTF-8. Required when an
            address is not on the loopback interface. On the loopback interface alone, the default is the
            content of a file that only the user can read, made at the first use.
        connect_timeout: Seconds to form the cluster.
        progress_mode: ``"demand"`` holds back progress that can move no frontier;
            ``"eager"`` sends everything at once; ``"tree"`` is ``"demand"`` for many processes, in groups
            that add up their progress. ``"tree:8"`` makes groups of 8 processes; without a number, groups
            have one process up to 16 processes, and the square root of the processes from there on.
        high_water: Bytes in flight above which sources pause, and sending on an input steps the worker. With
            `memory` an eighth of it at most, or 1 MiB if that is more.
        tls: Certificates, for clusters with a certificate authority; every process has its own. By default,
            connections are encrypted and authenticated under keys derived from the secret.
        stall_timeout: Seconds without a sign of life after which a process counts as lost.
        log: A folder to write all that the workers do to, as Arrow: see `pointstamp.observability.log`.
        telemetry: Whether metrics are exported to OpenTelemetry: the metrics of ``/metrics``, under the names
            of `pointstamp.observability.metrics`, to the meter provider that the program has set up.
        checkpoint: The location of checkpoints, and their interval; None for none.
        restart: When `execute` with `processes` starts all of them again; None for never.
        memory: The bytes of this process's memory that operators' state may take, also as text such as
            ``"2 GiB"``; the rest is on disk. None, the default, for no bound. The variable
            ``POINTSTAMP_MEMORY`` is taken where the argument is left out.
        spill: The folder of state that memory has no room for. The default is the folder of the checkpoints,
            else the folder for temporary files. Files there have no names, and are gone with the process.
        dashboard: A port of the loopback interface for the live page, and for metrics at ``/metrics``; 0
            takes a free one. ``"host:port"``, also with port 0, serves it elsewhere, to clients that have the
            printed token.

    Raises:
        ConfigError: If a value cannot work, alone or with the others.

    Examples:
        >>> from pointstamp import Config
        >>> Config(workers=2, processes=3, process=1).peers
        6
        >>> Config(workers=0)
        Traceback (most recent call last):
        ...
        pointstamp.ConfigError: workers must be at least 1, and is 0
    """

    workers: int
    """Worker threads in this process."""
    processes: int
    """Processes in the cluster."""
    process: int
    """The number of this process, from 0."""
    addresses: tuple[str, ...]
    """``"host:port"`` of every process, in order; empty where there is only one and none was given."""
    secret: bytes | None
    """The shared secret; never part of ``repr()``."""
    connect_timeout: float
    """Seconds to form the cluster."""
    progress_mode: str
    """``"demand"``, ``"eager"`` or ``"tree"``, or ``"tree:8"`` for groups of 8."""
    high_water: int
    """Bytes in flight above which sources pause."""
    tls: TLS | None
    """The certificates of connections; None where the secret alone protects them."""
    stall_timeout: float
    """Seconds without a sign of life after which a process counts as lost."""
    log: str | None
    """A folder for a log; None for none."""
    telemetry: bool
    """Whether metrics go to OpenTelemetry."""
    checkpoint: Checkpoint | None
    """The location of checkpoints, and their interval; None where none are made."""
    restart: Restart | None
    """When `execute` with `processes` starts lost processes again; None for never."""
    memory: int | None
    """The bytes that operators' state may take of memory; None for no bound."""
    spill: str | None
    """The folder of state that memory has no room for; None for the default."""
    dashboard: tuple[str, int] | None
    """The interface and port of the live page; None for none."""

    def __init__(
        self,
        *,
        workers: int = 1,
        processes: int = 1,
        process: int = 0,
        addresses: Sequence[str] | None = None,
        secret: bytes | str | None = None,
        connect_timeout: float = 30.0,
        progress_mode: str = "demand",
        high_water: int = _core.HIGH_WATER,
        tls: TLS | None = None,
        stall_timeout: float = 10.0,
        log: str | os.PathLike[str] | None = None,
        dashboard: int | str | None = None,
        telemetry: bool = False,
        checkpoint: Checkpoint | None = None,
        restart: Restart | None = None,
        memory: int | str | None = None,
        spill: str | os.PathLike[str] | None = None,
    ) -> None:
        workers = _at_least("workers", workers, 1)
        processes = _at_least("processes", processes, 1)
        process = _at_least("process", process, 0)
        if process >= processes:
            raise ConfigError(
                f"process is {process}, but there are only {processes} processes: "
                f"number them from 0 to {processes - 1}, or raise processes"
            )
        given = _checked_addresses(addresses, processes)
        shared = _checked_secret(secret)
        exposed = [address for address in given if not _is_loopback(address)]
        if exposed and shared is None:
            raise ConfigError(
                f"{exposed[0]} is not on the loopback interface, so the processes must share a "
                f"secret: pass secret=, or set {SECRET_VARIABLE} where from_args is used"
            )
        if tls is not None and not isinstance(tls, TLS):
            raise ConfigError(f"tls must be a pointstamp.TLS, and is a {type(tls).__name__}")
        progress_mode_of(progress_mode)
        if checkpoint is not None:
            _check_checkpoint(checkpoint)
        if restart is not None:
            _check_restart(restart)
        checked = {
            "workers": workers,
            "processes": processes,
            "process": process,
            "addresses": given,
            "secret": shared,
            "connect_timeout": _checked_timeout("connect_timeout", connect_timeout),
            "progress_mode": progress_mode,
            "high_water": _at_least("high_water", high_water, 1),
            "tls": tls,
            "stall_timeout": _checked_timeout("stall_timeout", stall_timeout),
            "log": _checked_folder(log, "log", "no log"),
            "dashboard": _checked_page(dashboard),
            "telemetry": bool(telemetry),
            "checkpoint": checkpoint,
            "restart": restart,
            "memory": _checked_memory(memory),
            "spill": _checked_folder(spill, "spill", "the folder of the checkpoints, or for temporary files"),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)  # it is frozen

    @classmethod
    def from_args(cls, argv: Sequence[str]) -> tuple[Config, list[str]]:
        """Makes a configuration from a command line, and returns it with the arguments left over.

        It takes ``-w``/``--workers``, ``-n``/``--processes``, ``-p``/``--process``, ``--hostfile`` (a file
        with one ``host:port`` per line, in the order of the processes; empty lines and ``#`` comments are
        skipped) and ``--progress-mode``. Arguments after ``--`` are returned unchanged. The secret, if one is
        needed, is read from ``POINTSTAMP_SECRET``.

        Args:
            argv: The arguments, without the program's name: ``sys.argv[1:]``.

        Raises:
            ConfigError: If an argument is not a number where one is needed, the host file cannot
                be read, or the configuration cannot work.

        Examples:
            >>> from pointstamp import Config
            >>> config, rest = Config.from_args(["-w", "4", "--top", "20", "books/"])
            >>> config.workers, rest
            (4, ['--top', '20', 'books/'])
        """
        values, rest = from_command_line(argv)
        return cls(**values), rest

    @property
    def peers(self) -> int:
        """Workers in the whole computation."""
        return self.workers * self.processes

    def __repr__(self) -> str:
        secret = "" if self.secret is None else ", secret=<not shown>"
        tls = "" if self.tls is None else f", tls={self.tls!r}"
        addresses = f", addresses={list(self.addresses)!r}" if self.addresses else ""
        log = "" if self.log is None else f", log={self.log!r}"
        dashboard = "" if self.dashboard is None else f", dashboard={_as_given(*self.dashboard)!r}"
        telemetry = ", telemetry=True" if self.telemetry else ""
        checkpoint = "" if self.checkpoint is None else f", checkpoint={self.checkpoint!r}"
        restart = "" if self.restart is None else f", restart={self.restart!r}"
        memory = "" if self.memory is None else f", memory={self.memory}"
        spill = "" if self.spill is None else f", spill={self.spill!r}"
        return (
            f"Config(workers={self.workers}, processes={self.processes}, process={self.process}"
            f"{addresses}{secret}, connect_timeout={self.connect_timeout:g}, "
            f"progress_mode={self.progress_mode!r}, high_water={self.high_water}"
            f"{tls}, stall_timeout={self.stall_timeout:g}{log}{dashboard}{telemetry}{checkpoint}{restart}"
            f"{memory}{spill})"
        )


def progress_mode_of(text: str) -> tuple[str, int | None]:
    """The name of a progress mode, and the number of processes in a group, where it says one.

    Raises:
        ConfigError: If there is no such mode.
    """
    name, colon, number = str(text).partition(":")
    if name not in PROGRESS_MODES or (colon and name != "tree"):
        raise ConfigError(f'progress_mode must be "demand", "eager" or "tree", and is {text!r}')
    if not colon:
        return name, None
    if not (number.isascii() and number.isdigit() and int(number) > 0):
        raise ConfigError(
            f"progress_mode is {text!r}: after tree: comes the number of processes in a group, as in tree:8"
        )
    return name, int(number)


def both_given(workers: int) -> str:
    """Says that a call was given a number of workers, and a config, which has one, too."""
    return (
        f"workers={workers} and config= were given: give the number of workers in the config, "
        f"Config(workers={workers}, ...), or leave config out"
    )


def _at_least(name: str, value: int, least: int) -> int:
    try:
        number = _as_int(value)
    except TypeError:
        raise ConfigError(f"{name} must be an int, and is {value!r}") from None
    if isinstance(value, bool):
        raise ConfigError(f"{name} must be a number, and is {value!r}")
    if number < least:
        raise ConfigError(f"{name} must be at least {least}, and is {number}")
    return number


def _check_checkpoint(checkpoint: object) -> None:
    from pointstamp.checkpoint import Checkpoint

    if not isinstance(checkpoint, Checkpoint):
        raise ConfigError(
            f"checkpoint is a pointstamp.Checkpoint, such as Checkpoint('state/'), and is {checkpoint!r}"
        )


def _check_restart(restart: object) -> None:
    from pointstamp.restart import Restart

    if not isinstance(restart, Restart):
        raise ConfigError(f"restart is a pointstamp.Restart, such as Restart(times=5), and is {restart!r}")


def _checked_page(place: int | str | None) -> tuple[str, int] | None:
    """Returns the interface and the port of the live page."""
    if place is None:
        return None
    if isinstance(place, str):
        return _split_address(place, least=0)
    port = _at_least("dashboard", place, 0)
    if port > 65535:
        raise ConfigError(f"dashboard is a port, from 0 to 65535, and is {port}")
    return "127.0.0.1", port


def _as_given(host: str, port: int) -> int | str:
    """Returns the place of the live page as the program says it."""
    return port if host == "127.0.0.1" else written_address(host, port)


def _checked_timeout(name: str, value: float) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{name} must be a number of seconds, and is {value!r}") from None
    if not seconds > 0 or math.isinf(seconds):
        raise ConfigError(f"{name} must be a positive number of seconds, and is {value!r}")
    return seconds


def checked_stall_report(seconds: float | bool | None, name: str = "stall_report") -> float | None:
    """Seconds after which any standstill is reported; None where only forgotten inputs are, or nothing is.

    Raises:
        ConfigError: If it is not above 0, or longer than a thread can wait.
    """
    if seconds is None or seconds is False:
        return None
    if seconds is True or not 0 < seconds <= threading.TIMEOUT_MAX:
        raise ConfigError(
            f"{name} is a number of seconds above 0 and at most {threading.TIMEOUT_MAX:g}, and is {seconds!r}"
        )
    return seconds


def _checked_folder(given: str | os.PathLike[str] | None, name: str, default: str) -> str | None:
    """Returns a folder."""
    if given is None:
        return None
    folder = os.fspath(given)
    if not folder:
        raise ConfigError(
            f"{name} is a folder, and is empty: leave it out for {default}, or say '.' for this one"
        )
    return folder


_UNITS = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12} | {
    "ki": 2**10,
    "mi": 2**20,
    "gi": 2**30,
    "ti": 2**40,
}
"""The bytes of each unit, without the last B."""

LEAST_MEMORY = 64
"""The bytes of the smallest budget: some pages, for tests in which everything is on disk."""


def _checked_memory(memory: int | str | None) -> int | None:
    """Returns the bytes of a budget."""
    name = "memory"
    if memory is None:
        memory, name = os.environ.get(MEMORY_VARIABLE), MEMORY_VARIABLE
        if not memory:
            return None
    if isinstance(memory, str):
        text = memory.strip().lower()
        number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
        unit = text[len(number) :].strip()
        try:
            memory = int(float(number) * _UNITS[unit.removesuffix("b")])
        except (KeyError, ValueError, OverflowError):
            raise ConfigError(
                f'{name} is a number of bytes, or text such as "2 GiB" or "500 MB", and is {memory!r}'
            ) from None
    return _at_least(name, memory, LEAST_MEMORY)


def _checked_secret(secret: bytes | str | None) -> bytes | None:
    if secret is None:
        return None
    if not isinstance(secret, (bytes, str)):
        # The value is not shown: it may be a secret all the same.
        raise ConfigError(f"secret must be bytes or str, and is a {type(secret).__name__}")
    if not secret:
        raise ConfigError("secret is empty: leave it out, or give one that is hard to guess")
    return secret.encode() if isinstance(secret, str) else secret


def _checked_addresses(addresses: Sequence[str] | None, processes: int) -> tuple[str, ...]:
    if addresses is None:
        if processes == 1:
            return ()
        if FIRST_PORT + processes - 1 > 65535:
            raise ConfigError(f"{processes} processes do not have a port each: pass addresses=")
        return tuple(f"127.0.0.1:{FIRST_PORT + i}" for i in range(processes))
    if isinstance(addresses, (str, bytes)):
        raise ConfigError(f"addresses must be a list of strings, and is the one string {addresses!r}")
    checked = tuple(addresses)
    if not checked and processes == 1:
        return ()
    for address in checked:
        _split_address(address)
        if checked.count(address) > 1:
            raise ConfigError(f"{address} is listed twice: every process needs an address of its own")
    if len(checked) != processes:
        raise ConfigError(
            f"there are {processes} processes and {len(checked)} addresses: "
            "list one address for every process, in order"
        )
    return checked


def written_address(host: str, port: int) -> str:
    """`host:port`, from which `Config` reads the two again; an IPv6 host is written in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _split_address(address: str, least: int = 1) -> tuple[str, int]:
    """The host and the port of `host:port`; an IPv6 host is written in brackets.

    Args:
        address: The address.
        least: The least port: 0 where the address is a listener's, for any free port.
    """
    wrong = ConfigError(
        f'{address!r} is not an address: write "host:port", such as "10.0.0.1:2101" or "[::1]:2101"'
    )
    if not isinstance(address, str):
        raise wrong
    host, _, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise wrong
    if not host or host != host.strip() or not (port.isascii() and port.isdigit()):
        raise wrong
    if not least <= int(port) <= 65535:
        raise ConfigError(f"{address!r} has port {port}: a port is a number from {least} to 65535")
    return host, int(port)


def _is_loopback(address: str) -> bool:
    from ipaddress import ip_address

    host, _ = _split_address(address)
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read_hostfile(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as lines:
            entries = [line.split("#", 1)[0].strip() for line in lines]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the host file cannot be read: {error}") from error
    addresses = [entry for entry in entries if entry]
    if not addresses:
        raise ConfigError(f'{path} names no process: write one "host:port" per line')
    return addresses


OPTIONS: dict[tuple[str, ...], dict[str, Any]] = {
    ("-w", "--workers"): {
        "type": int,
        "default": 1,
        "metavar": "N",
        "help": "worker threads in each process",
    },
    ("-n", "--processes"): {"type": int, "metavar": "N", "help": "processes in the cluster"},
    ("-p", "--process"): {"type": int, "metavar": "I", "help": "which of them this is, from 0"},
    ("--hostfile",): {"metavar": "FILE", "help": "the processes, in order: one host:port per line"},
    ("--progress-mode",): {
        "default": "demand",
        "metavar": "MODE",
        "help": "demand (the default), eager or tree",
    },
}
"""The options of the command line; each takes a value."""


def from_command_line(argv: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Returns the options of a command line, as `Config` takes them, and the arguments left over."""
    arguments = list(argv)
    literal: list[str] = []
    if "--" in arguments:
        end = arguments.index("--")
        arguments, literal = arguments[:end], arguments[end + 1 :]
    options, rest = _parser().parse_known_args(arguments)
    addresses = None if options.hostfile is None else _read_hostfile(options.hostfile)
    processes = options.processes
    if processes is None:
        processes = 1 if addresses is None else len(addresses)
    values = {
        "workers": options.workers,
        "processes": processes,
        "process": options.process or 0,
        "addresses": addresses,
        "secret": os.environ.get(SECRET_VARIABLE),
        "progress_mode": options.progress_mode,
    }
    return values, rest + literal


def _parser() -> ArgumentParser:
    from argparse import ArgumentParser

    # No -h and no abbreviations: both belong to the program that owns these arguments.
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.error = _refuse  # type: ignore[method-assign]
    for names, details in OPTIONS.items():
        parser.add_argument(*names, **details)
    return parser


def _refuse(message: str) -> NoReturn:
    raise ConfigError(message)
