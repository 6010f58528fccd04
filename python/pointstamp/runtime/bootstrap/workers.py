"""Making the workers of this process, and its connections to the other processes where there are any."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pointstamp import _core
from pointstamp.config import progress_mode_of
from pointstamp.runtime.memory import budget_of

if TYPE_CHECKING:
    from socket import socket

    from pointstamp.config import Config

__all__ = ["cluster_of", "form"]

_MODES = {
    mode.label: mode
    for mode in (_core.ProgressMode.DEMAND, _core.ProgressMode.EAGER, _core.ProgressMode.TREE)
}


def form(config: Config, listener: socket | None) -> _core.Cluster:
    """The workers of a configuration, connected to the workers of the other processes.

    The listener, where there is one, is taken over when connections are made.

    Raises:
        ClusterError: If the cluster was not formed in time, or the processes cannot be in one cluster.
        ConfigError: If the certificates or the user's secret cannot be used, or no files can be made for
            state that memory has no room for.
    """
    connections = _connected(config, listener) if config.processes > 1 else None
    return cluster_of(config.workers, config, connections)


def cluster_of(workers: int, config: Config, connections: _core.Connections | None) -> _core.Cluster:
    """The workers of one process, of which it has as many, with the rest of a configuration."""
    name, group = progress_mode_of(config.progress_mode)
    return _core.Cluster(workers, _MODES[name], config.high_water, connections, budget_of(config), group)


def _connected(config: Config, listener: socket | None) -> _core.Connections:
    import logging

    secret = config.secret
    if secret is None:
        from pointstamp.runtime.bootstrap.secret import user_secret

        secret = user_secret()
    tls = config.tls
    return _core.Connections(
        process=config.process,
        addresses=list(config.addresses),
        secret=secret,
        tls=None if tls is None else (tls.certificate, tls.key, tls.authority),
        facts=_facts(config),
        connect_timeout=config.connect_timeout,
        stall_timeout=config.stall_timeout,
        listener=None if listener is None else listener.detach(),
        log=logging.getLogger("pointstamp.cluster").warning,
    )


def _facts(config: Config) -> list[tuple[str, str]]:
    """Returns the facts that must be equal in all processes, beside the wire format's own version.

    The version of Python is not: pickles of protocol 5 are read by every Python that runs this package, and
    keys have the same hash in all of them. The stall timeout is, because each process shows signs of life as
    often as it expects them itself.
    """
    return [
        ("the version of pointstamp", _core.__version__),
        ("the order of bytes", sys.byteorder),
        ("the number of workers", str(config.workers)),
        ("the progress mode", config.progress_mode),
        ("the stall timeout", f"{config.stall_timeout:g} s"),
    ]
