"""PostgreSQL: a source of changes by logical replication, and a sink with a transaction for each time.

Needs ``pointstamp[postgres]``. `sink` writes; `source` reads, over `stream`, the connection for changes, and
`pgoutput`, which decodes them.
"""

from pointstamp.connectors.postgres.pgoutput import Change
from pointstamp.connectors.postgres.sink import PostgresSink
from pointstamp.connectors.postgres.source import PostgresSource

__all__ = ["Change", "PostgresSink", "PostgresSource"]
