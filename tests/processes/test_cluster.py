"""Needs of processes before they form a cluster: ports, the user's secret, certificates."""

import multiprocessing
import os
import pickle
import socket
import stat
from pathlib import Path

import pytest

from pointstamp import TLS, Config, ConfigError
from pointstamp.cluster import bind
from pointstamp.runtime.bootstrap.secret import path_of_secret, user_secret

posix = pytest.mark.skipif(os.name != "posix", reason="modes of files")


def test_a_bound_port_listens_where_it_says() -> None:
    listener, address = bind()
    other, elsewhere = bind("localhost")
    with listener, other:
        assert address != elsewhere
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60):
            pass
        assert Config(processes=2, addresses=[address, elsewhere]).addresses == (address, elsewhere)


def test_a_port_of_another_family() -> None:
    try:
        listener, address = bind("::1")
    except OSError as error:
        pytest.skip(f"there is no IPv6 here: {error}")
    with listener:
        assert address.startswith("[::1]:")
        Config(processes=1, addresses=[address])


def test_a_host_that_is_elsewhere() -> None:
    with pytest.raises(OSError):
        bind("192.0.2.1")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "pointstamp" / "secret"


@posix
def test_the_secret_is_made_once_and_only_the_user_can_read_it(home: Path) -> None:
    assert path_of_secret() == home
    first = user_secret()
    assert len(first) == 32
    assert stat.S_IMODE(home.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.parent.stat().st_mode) == 0o700
    assert user_secret() == first
    assert [path.name for path in home.parent.iterdir()] == ["secret"]
    home.unlink()
    assert user_secret() != first


def test_the_secret_is_in_the_home_directory_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ["", "relative/path"]:
        monkeypatch.setenv("XDG_DATA_HOME", value)
        assert path_of_secret() == tmp_path / ".local" / "share" / "pointstamp" / "secret"


def read_secret(_: int) -> bytes:
    return user_secret()


def test_processes_that_start_together_agree_on_a_secret(home: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert len(set(pool.map(read_secret, range(16), chunksize=1))) == 1
    assert [path.name for path in home.parent.iterdir()] == ["secret"]


@posix
def test_a_secret_that_others_can_read_is_refused(home: Path) -> None:
    user_secret()
    for mode in (0o640, 0o604, 0o666):
        home.chmod(mode)
        with pytest.raises(ConfigError, match=rf"secret, .* can be read by other users \(mode {mode:o}\)"):
            user_secret()
    home.chmod(0o600)
    user_secret()


@posix
def test_a_secret_that_is_not_ours_is_refused(home: Path) -> None:
    home.parent.mkdir(parents=True)
    for contents in ["", "short", "zz" * 32, "00" * 31, "00" * 33]:
        home.write_text(contents)
        home.chmod(0o600)
        with pytest.raises(ConfigError, match="does not hold 32 bytes as hexadecimal digits: delete it"):
            user_secret()
    home.unlink()
    home.symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match="cannot be read"):
        user_secret()


def test_a_home_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="pass secret= in the configuration"):
        user_secret()


CERTIFICATE = b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"
KEY = b"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"


def test_certificates_are_files_or_bytes(tmp_path: Path) -> None:
    tls = TLS(certificate=CERTIFICATE, key=KEY, authority=CERTIFICATE)
    for name, contents in [("cert", CERTIFICATE), ("key", KEY)]:
        (tmp_path / name).write_bytes(contents)
    same = TLS(certificate=tmp_path / "cert", key=str(tmp_path / "key"), authority=tmp_path / "cert")
    assert tls == same
    assert hash(tls) == hash(same)
    assert pickle.loads(pickle.dumps(tls)) == tls
    assert tls != TLS(certificate=CERTIFICATE, key=KEY.replace(b"AA", b"BB"), authority=CERTIFICATE)
    assert "AA" not in repr(tls)
    config = Config(processes=2, tls=tls)
    assert config.tls is tls
    assert "AA" not in repr(config)
    assert config == Config(processes=2, tls=same) != Config(processes=2)


def test_certificates_that_are_something_else(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the key cannot be read: .*absent"):
        TLS(certificate=CERTIFICATE, key=tmp_path / "absent", authority=CERTIFICATE)
    with pytest.raises(ConfigError, match="the certificate is not PEM with a CERTIFICATE"):
        TLS(certificate=KEY, key=KEY, authority=CERTIFICATE)
    with pytest.raises(ConfigError, match="the key is not PEM with a PRIVATE KEY"):
        TLS(certificate=CERTIFICATE, key=b"", authority=CERTIFICATE)
    with pytest.raises(ConfigError, match="key must be a path, or the PEM itself as bytes, and is a int"):
        TLS(certificate=CERTIFICATE, key=5, authority=CERTIFICATE)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"tls must be a pointstamp\.TLS, and is a bool"):
        Config(tls=True)  # type: ignore[arg-type]
