"""Certificates for connections between the processes of a cluster.

Owns `TLS`. Files are read when it is made, so that missing or wrong files are found there.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from pointstamp.errors import ConfigError

__all__ = ["TLS"]


@dataclass(frozen=True, init=False)
class TLS:
    """Mutual TLS between the processes of a cluster, for a network that is not trusted. Read-only once made.

    Each process shows its certificate to the others, and accepts only certificates that the authority has
    signed for the host in the process's address. The secret is proved inside the TLS session, as it is
    without TLS.

    Args:
        certificate: This process's certificate, with any between it and the authority: the path of a PEM
            file, or its contents as ``bytes``.
        key: The private key of the certificate, in the same way.
        authority: The certificates that others' certificates must be signed by.

    Raises:
        ConfigError: If a file cannot be read, or is not PEM with the expected content.

    Examples:
        >>> from pointstamp import TLS
        >>> TLS(certificate="absent", key="key.pem", authority="ca.pem")
        Traceback (most recent call last):
        ...
        pointstamp.ConfigError: the certificate cannot be read: [Errno 2] No such file or directory: 'absent'
    """

    certificate: bytes
    """This process's certificate, as PEM."""
    key: bytes
    """The certificate's private key, as PEM; never part of ``repr()``."""
    authority: bytes
    """The certificates that others' must be signed by, as PEM."""

    def __init__(
        self,
        *,
        certificate: str | os.PathLike[str] | bytes,
        key: str | os.PathLike[str] | bytes,
        authority: str | os.PathLike[str] | bytes,
    ) -> None:
        contents = {
            "certificate": _pem("certificate", certificate, b"CERTIFICATE-----"),
            "key": _pem("key", key, b"PRIVATE KEY-----"),
            "authority": _pem("authority", authority, b"CERTIFICATE-----"),
        }
        for name, pem in contents.items():
            object.__setattr__(self, name, pem)  # it is frozen

    def __repr__(self) -> str:
        return "TLS(certificate=..., key=<not shown>, authority=...)"


def _pem(name: str, given: str | os.PathLike[str] | bytes, holds: bytes) -> bytes:
    if isinstance(given, bytes):
        contents = given
    elif isinstance(given, (str, os.PathLike)):
        try:
            with open(given, "rb") as file:
                contents = file.read()
        except OSError as error:
            raise ConfigError(f"the {name} cannot be read: {error}") from error
    else:
        # The value is not shown: it may be a key all the same.
        raise ConfigError(
            f"{name} must be a path, or the PEM itself as bytes, and is a {type(given).__name__}"
        )
    if b"-----BEGIN " not in contents or holds not in contents:
        label = holds.rstrip(b"-").decode()
        raise ConfigError(
            f"the {name} is not PEM with a {label}: it has no line '-----BEGIN ... {label}-----'"
        )
    return contents
