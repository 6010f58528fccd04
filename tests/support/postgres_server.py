"""A real PostgreSQL server on a Unix socket of its own, from Debian's packages or whatever is installed."""

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any

PACKAGED = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
SECONDS = 30


def _binaries() -> Path | None:
    found = shutil.which("initdb")
    return Path(found).parent if found else next(iter(reversed(PACKAGED)), None)


def _user() -> str | None:
    """The server refuses to run as root; then it runs as the user that Debian's package makes."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return ""


def missing() -> str | None:
    """Why there can be no server."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed: make test-connectors"
    if _binaries() is None:
        return "there is no PostgreSQL server: apt-get install postgresql"
    if _user() == "":
        return "the tests run as root, with which the server does not run, and there is no user 'postgres'"
    return None


class Server:
    """One server, which can be stopped, killed and started again."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="postgres"))  # a socket's path is short
        self.conninfo = f"host={self.folder} user=tester dbname=postgres"
        self._user = _user()
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self._run(
            "initdb", "-D", "data", "-A", "trust", "-U", "tester", "--no-sync", "-E", "UTF8", "--locale=C"
        )

    def _run(self, program: str, *words: str) -> None:
        binaries = _binaries()
        assert binaries is not None
        with (self.folder / "output").open("ab") as output:
            subprocess.run(
                [binaries / program, *words],
                cwd=self.folder,
                user=self._user,
                stdout=output,
                stderr=output,
                timeout=SECONDS,
                check=True,
            )

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        settings = {
            "wal_level": "logical",
            "listen_addresses": "",
            "unix_socket_directories": self.folder,
            "max_replication_slots": 200,
            "max_wal_senders": 20,
            "fsync": "off",
        }
        words = " ".join(f"-c {key}={str(value) or chr(39) * 2}" for key, value in settings.items())
        until = time.monotonic() + SECONDS
        while True:
            try:
                self._run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", words, "start")
                return
            except subprocess.CalledProcessError as error:
                # A server that was killed keeps its memory until the last of its processes has ended.
                if time.monotonic() > until:
                    log = (self.folder / "log").read_text(errors="replace")
                    raise RuntimeError(f"the server does not start: {log[-2000:]}") from error
                time.sleep(0.1)

    def stop(self, mode: str = "fast") -> None:
        """Stops it; with the mode "immediate", as if it were killed."""
        self._run("pg_ctl", "-D", "data", "-w", "-m", mode, "stop")

    def close(self) -> None:
        """Stops it and takes its files away."""
        try:
            self.stop("immediate")
        finally:
            shutil.rmtree(self.folder)

    def do(self, *statements: str) -> list[tuple[Any, ...]]:
        """Runs statements, each in a transaction of its own; returns the rows of the last."""
        import psycopg

        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def table(self, columns: str) -> str:
        """A new table."""
        name = f"t{uuid.uuid4().hex[:12]}"
        self.do(f"create table {name} ({columns})")
        return name

    def published(self, columns: str) -> str:
        """A new table, with a publication of the same name."""
        name = self.table(columns)
        self.do(f"create publication {name} for table {name}")
        return name


class Relay:
    """A Unix socket in front of a server's, which can fall silent without closing anything."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._folder = tempfile.mkdtemp(prefix="relay")
        self.conninfo = f"host={self._folder} user=tester dbname=postgres"
        self._silent = threading.Event()
        self._mute: set[socket.socket] = set()
        self._sockets: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self._folder}/.s.PGSQL.5432")
        self._listener.listen()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def silence(self) -> None:
        """Passes nothing on any more, on connections that are there and on new ones."""
        self._silent.set()

    def silence_those_that_are_open(self) -> None:
        """Passes nothing on any more on connections that are there."""
        self._mute.update(self._sockets)

    def close(self) -> None:
        """Ends all."""
        for one in [self._listener, *self._sockets]:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self._threads:
            thread.join(SECONDS)
        for one in [self._listener, *self._sockets]:
            one.close()
        shutil.rmtree(self._folder)

    def _start(self, function: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            self._sockets += [near, far]
            far.connect(f"{self._server.folder}/.s.PGSQL.5432")
            for one, other in ((near, far), (far, near)):
                self._start(self._pump, one, other)

    def _pump(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(1 << 16):
                if self._silent.is_set() or one in self._mute:
                    return  # both stay open
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass
