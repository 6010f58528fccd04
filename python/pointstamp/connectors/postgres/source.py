"""`PostgresSource`: the rows of tables and then every change to them, by logical replication.

The server keeps changes for a replication slot, so the slot is the source's one partition, and offsets are
positions in the log (LSNs). Reading begins with the existing rows: the server makes the slot and a snapshot
at the same position, so nothing is missed or seen twice between the two.

Invariant: the slot `NAME` exists if and only if all rows of the snapshot have left a dataflow durably. Until
then changes come from the slot `NAME_snapshot`, which is copied when the snapshot is durable. A run that ends
before that begins with a new snapshot; a later run continues at the last acknowledged position.
"""

from __future__ import annotations

import os
import re
import select
import struct
import threading
import time as clock
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pointstamp.connectors.postgres.pgoutput import Begin, Change, Commit, Decoder
from pointstamp.connectors.postgres.stream import (
    SILENT,
    ChangeStream,
    checked_patience,
    client,
    connected,
    lsn_of,
    text_of,
)
from pointstamp.connectors.postgres.values import OUT_OF_RANGE, Values
from pointstamp.connectors.protocol import PartitionReader, Source, number_of
from pointstamp.errors import PointstampError, add_note

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

__all__ = ["PostgresSource"]

CHANGES = 4096
"""Changes that one `read` returns at about: more only where a message has several."""

TELL = 10.0
"""The interval of status messages to the server, which ends connections that are silent for 60 s.
"""

GOODBYE = 5.0
"""Seconds in which a closed reader tries to acknowledge the durable position."""

RETRY = 0.25
"""Seconds between attempts to connect again."""

FOR_GOOD = ("55000", "53400", "28", "3D")
"""Codes of permanent failures: a wrong set-up, too many slots, a refused user or database.
"""


class PostgresSource(Source[Change]):
    """Changes to the tables of a publication: first the existing rows, then later changes.

    Each transaction has a time of its own, its position in the server's log, unless `read` is given another
    (`every=`, `time=`). Changes that have left the dataflow and were committed by its sinks are acknowledged
    to the server, which keeps the rest: after a failure another run with the same slot continues, and loses
    nothing. A lost or silent connection is made again.

    With checkpoints, the existing rows are held in memory until all are read, and the changes that a
    checkpoint covers are acknowledged.

    Values have psycopg's types, values of a domain the types of its base, in existing rows as in changes.

    The server needs ``wal_level = logical``, a publication (``create publication NAME for table ...``), and
    two free replication slots while the snapshot is read. A slot that is not used any more keeps the server's
    log from being cleaned: drop it with ``select pg_drop_replication_slot('NAME')``.

    Args:
        conninfo: The connection string, as ``host=... dbname=...`` or a URL. The user needs the right to
            replicate, and to read the tables.
        publication: The publication's name.
        slot: The slot's name: small letters, digits and underscores. It is made if it is not there.
        snapshot: Whether to begin with the rows that are there when the slot is made.
        bounded: Whether to end where the log is when reading begins.
        patience: Seconds without an answer of the server after which the source gives up. After half of them
            a connection counts as lost, and another is tried: that is more than the server needs for a query
            of the snapshot, and to pass over its largest transaction of other tables.
        out_of_range: The treatment of a value that Python's type cannot hold, such as ``date 'infinity'`` or
            a year before 1: "raise" an error that names the table, the column and the row's key, or "text",
            the value as the server writes it, as a str.

    Raises:
        ValueError: For the name of a slot that no slot can have, a patience that is not more than 0, and
            another word for `out_of_range`.

    Examples:
        >>> from pointstamp.connectors.postgres import PostgresSource
        >>> source = PostgresSource("host=localhost dbname=shop", "orders", slot="counts")
        >>> list(source.partitions())
        ['counts']
    """

    def __init__(
        self,
        conninfo: str,
        publication: str,
        *,
        slot: str,
        snapshot: bool = True,
        bounded: bool = False,
        patience: float = 120.0,
        out_of_range: str = "raise",
    ) -> None:
        if out_of_range not in OUT_OF_RANGE:
            raise ValueError(f"out_of_range is 'raise' or 'text', not {out_of_range!r}")
        if not re.fullmatch(r"[a-z0-9_]{1,54}", slot):
            raise ValueError(
                f"a slot is named by at most 54 small letters, digits and underscores, and this is {slot!r}"
            )
        self._conninfo = conninfo
        self._publication = publication
        self._slot = slot
        self._snapshot = snapshot
        self._bounded = bounded
        self._patience = checked_patience(patience)
        self._out_of_range = out_of_range
        self._whole = False
        self.time_of = _lsn

    def partitions(self) -> list[str]:
        """The slot."""
        return [self._slot]

    def recorded(self, partition: str, journal: Path | None) -> None:
        """Reads the existing rows as one batch: their snapshot cannot be resumed."""
        self._whole = True

    def open(self, partition: str) -> PartitionReader[Change]:
        """The slot's reader."""
        values = Values(self._out_of_range)
        return _Reader(
            self._conninfo,
            self._publication,
            self._slot,
            self._snapshot,
            self._bounded,
            self._patience,
            values,
            whole=self._whole,
        )


def _lsn(change: Change) -> int:
    return change.lsn


class _Reader(PartitionReader[Change]):
    """Reads a slot.

    The lock is held by the thread that uses the connection, and never while waiting for changes: the thread
    that reads, and in the end the one that closes. `durable` only leaves the offset for that thread; where it
    has ended, `close` acknowledges it.
    """

    def __init__(
        self,
        conninfo: str,
        publication: str,
        slot: str,
        snapshot: bool,
        bounded: bool,
        patience: float,
        values: Values,
        *,
        whole: bool = False,
    ) -> None:
        self._conninfo = conninfo
        self._publication = publication
        self._slot = slot
        self._whole = whole
        self._provisional = f"{slot}_snapshot"
        self._wanted = snapshot
        self._bounded = bounded
        self._patience = patience
        self._values = values
        self._lock = threading.Lock()
        self._closed = False
        self._ends = 0.0
        """The time until which `close` continues."""
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        self._stream: ChangeStream | None = None
        self._begun = False
        self._rows: Generator[list[Change], None, None] | None = None
        self._begins = 0  # where the slot began, while it is provisional; 0 once it is not
        self._until: int | None = None
        self._offset = 0
        self._durable = 0
        self._acknowledged = 0
        """The last offset that was acknowledged to the server."""
        self._told = 0.0
        self._asked: float | None = None
        """Since when the server owes an answer."""
        self._former = 0
        """The server's process that a lost connection may have left behind."""
        self._error: PointstampError | None = None
        # The current transaction: its position, and the number of its changes that were returned. Changes
        # that the server sends again after a lost connection are skipped.
        self._open: int | None = None
        self._given = (0, 0)
        self._count = 0
        self._over = False
        self._since = 0.0

    # ------------------------------------------------------------ the protocol of readers

    def read(self) -> Any:
        while True:
            with self._lock:
                if self._closed or self._over:
                    return None
                batch = self._next()
                if batch is not None:
                    return batch
                waits = [self._woken] if self._stream is None else [self._woken, self._stream.fileno()]
                seconds = RETRY if self._stream is None else self._every()
            poll = select.poll()
            for number in waits:
                poll.register(number, select.POLLIN)
            poll.poll(seconds * 1000)
            with suppress(BlockingIOError):
                os.read(self._woken, select.PIPE_BUF)

    @property
    def offset(self) -> int | dict[str, int]:
        """A place in the log; 0 while the rows that were there at first are read.

        Within a transaction, a dict with the position before it, the transaction's own, and the number of its
        changes that were read.
        """
        place, given = self._given
        if self._open is not None and self._open == place:
            return {"before": self._offset, "transaction": place, "changes": given}
        return self._offset

    @property
    def watermark(self) -> int:
        """Transactions come in the order of the log."""
        return self._offset

    def seek(self, offset: Any) -> None:
        """Seeks to an offset; within a transaction, changes that were already read are skipped."""
        of, what = f"slot {self._slot}", "a place in the server's log"
        if isinstance(offset, dict):
            place = number_of(offset.get("transaction"), of, what, 1 << 64)
            self._given = place, number_of(offset.get("changes"), of, "a number of changes")
            offset = offset.get("before")
        self._offset = number_of(offset, of, what, 1 << 64)

    def durable(self, offset: int | dict[str, int]) -> None:
        """Leaves the offset for the thread that reads, which acknowledges it to the server."""
        if isinstance(offset, dict):
            offset = offset["before"]
        if offset > self._durable:
            self._durable = offset
            self._wake_up()

    def close(self) -> None:
        self._closed = True  # which ends a wait for the server, under the lock
        self._wake_up()
        with self._lock:
            try:
                self._ends = clock.monotonic() + GOODBYE
                self._tell_last()
            finally:
                if self._rows is not None:
                    self._rows.close()
                self._lose()
        # The ends stay open until the reader is dropped: the thread may be waiting for them.

    def _wake_up(self) -> None:
        with suppress(BlockingIOError):  # so much was written that was not read: it wakes up
            os.write(self._wake, b".")

    def _is_unwanted(self) -> bool:
        """Returns whether the user of the connection is to give up."""
        return self._closed and clock.monotonic() > self._ends

    # ------------------------------------------------------------ acknowledgements

    def _may_settle(self) -> bool:
        """Whether the snapshot is durable, and the slot not yet there that says so."""
        return 0 < self._begins <= self._durable

    def _acknowledge(self) -> None:
        """Acknowledges the durable offset to the server, if it was not acknowledged."""
        if self._may_settle():
            self._lose()
            self._connect()  # which makes the slot
        elif not self._begins and self._acknowledged < self._durable:
            self._tell()

    def _tell_last(self) -> None:
        """Acknowledges the durable offset to the server, where no thread reads any more."""
        # A connection that was lost before the end is not made again for this.
        while self._durable and (self._over or self._stream is not None):
            try:
                if self._stream is None and (self._may_settle() or self._acknowledged < self._durable):
                    self._connect()
                else:
                    self._acknowledge()
                return
            except client().OperationalError:
                self._lose()
                if self._is_unwanted():
                    return
                clock.sleep(0.01)

    def __del__(self) -> None:
        os.close(self._woken)
        os.close(self._wake)

    # ------------------------------------------------------------ connections

    def _next(self) -> list[Change] | None:
        """Returns the changes that are there; None if there are none."""
        if self._rows is not None:
            return self._next_rows()
        try:
            if self._stream is None:
                self._connect()
                return []
            self._acknowledge()
            return self._changes()
        except client().OperationalError as error:
            refused = (error.sqlstate or "").startswith(FOR_GOOD)
            in_use = error.sqlstate == "55006"
            self._since = self._since or self._asked or clock.monotonic()
            self._lose()
            if self._closed:
                return None
            if refused or (not self._begun and not in_use):
                raise
            if clock.monotonic() - self._since > self._patience:
                add_note(
                    error,
                    f"replication slot '{self._slot}' was waited for, for {self._patience:g} s (patience=)",
                )
                raise
            return None

    def _lose(self) -> None:
        stream, self._stream = self._stream, None
        self._asked = None
        if stream is not None:
            self._former = stream.pid
            stream.close()

    def _control(self) -> Any:
        """A connection for queries."""
        return connected(self._conninfo, self._patience, self._is_unwanted)

    def _replication(self) -> ChangeStream:
        return ChangeStream(self._conninfo, self._patience, self._is_unwanted)

    def _every(self) -> float:
        """The interval of status messages, in seconds."""
        return RETRY if self._bounded else min(TELL, self._patience * SILENT / 3)

    def _connect(self) -> None:
        """Connects to the slot, or to the temporary one while the snapshot is not durable."""
        with self._control() as control:
            self._end_former(control)
            slots = self._slots(control)
            if not self._begun:
                self._check(control)
                self._values.learn(control)
                if self._bounded:
                    self._until = lsn_of(control.execute("select pg_current_wal_flush_lsn()").fetchone()[0])
            kept = self._slot in slots
            settled = self._offset > 0 and not self._begins  # the program keeps offsets itself
            if not kept and self._provisional in slots and (settled or 0 < self._begins <= self._durable):
                names = [self._provisional, self._slot]
                control.execute("select pg_copy_logical_replication_slot(%s, %s)", names)
                kept = True
            if kept:
                self._begins = 0
                self._drop(control, slots)
            elif not (self._begins and self._provisional in slots):
                if self._offset:
                    raise PointstampError(
                        f"there is no replication slot '{self._slot}' any more, and what has changed since "
                        f"{text_of(self._offset)} is lost: begin without an offset, with a new snapshot"
                    )
                self._drop(control, slots)
                self._create()
                return
        self._start(self._replication())

    def _end_former(self, control: Any) -> None:
        """Ends the server's side of a lost connection, which has the slot until the server notices."""
        if self._former:
            control.execute(
                "select pg_terminate_backend(active_pid) from pg_replication_slots "
                "where slot_name = any(%s) and active_pid = %s",
                [[self._slot, self._provisional], self._former],
            )
            self._former = 0

    def _described(self, types: list[int]) -> None:
        """Looks up the types of a table that is about to be read, where one may be a new domain."""
        if self._values.unknown(types):
            with self._control() as control:
                self._values.learn(control)

    def _slots(self, control: Any) -> set[str]:
        names = [self._slot, self._provisional]
        found = control.execute(
            "select slot_name from pg_replication_slots where slot_name = any(%s)", [names]
        )
        return {row[0] for row in found}

    def _check(self, control: Any) -> None:
        found = control.execute("select 1 from pg_publication where pubname = %s", [self._publication])
        if found.fetchone() is None:
            raise PointstampError(
                f"there is no publication '{self._publication}' in this database: "
                f"create publication {self._publication} for table ..."
            )

    def _drop(self, control: Any, slots: set[str]) -> None:
        if self._provisional in slots:
            control.execute("select pg_drop_replication_slot(%s)", [self._provisional])

    def _create(self) -> None:
        """Makes a slot; the snapshot lasts until the connection is used again."""
        stream = self._stream = self._replication()
        name = self._provisional if self._wanted else self._slot
        _, place, snapshot, _ = stream.command(
            f"CREATE_REPLICATION_SLOT {name} LOGICAL pgoutput (SNAPSHOT 'export')"
        )
        begins = lsn_of(place)
        if self._wanted:
            self._begins = begins
            self._rows = self._snapshot(snapshot, begins - 1)
        else:
            self._offset = self._offset or begins
            self._start(stream)

    def _start(self, stream: ChangeStream) -> None:
        self._stream = stream
        name = self._provisional if self._begins else self._slot
        stream.start(name, self._offset, self._publication)
        self._values.of(stream.connection)
        self._decoder = Decoder(self._values, self._described)
        self._begun, self._since = True, 0.0
        self._open = None
        self._tell(answer=True)

    def _tell(self, *, answer: bool = False) -> None:
        assert self._stream is not None
        durable = 0 if self._begins else self._durable
        self._stream.tell(durable, max(self._offset, durable), answer=answer)
        self._acknowledged = durable
        self._told = clock.monotonic()
        if answer and self._asked is None:
            self._asked = self._told

    # ------------------------------------------------------------ the snapshot

    def _next_rows(self) -> list[Change]:
        assert self._rows is not None
        if self._whole:  # a checkpoint has all of them or none
            found = [change for rows in self._rows for change in rows]
        elif (rows := next(self._rows, None)) is not None:
            return rows
        else:
            found = []
        self._rows = None
        self._offset = self._begins
        assert self._stream is not None
        self._start(self._stream)
        return found

    def _snapshot(self, name: str, lsn: int) -> Generator[list[Change], None, None]:
        """The rows that were there when the slot was made."""
        sql = client().sql
        with self._control() as connection:
            connection.execute("begin transaction isolation level repeatable read read only")
            connection.execute(sql.SQL("set transaction snapshot {}").format(sql.Literal(name)))
            self._values.of(connection)
            for schema, table, columns, condition, key in connection.execute(
                TABLES, [self._publication]
            ).fetchall():
                listed = sql.SQL(", ").join(map(sql.Identifier, columns))
                query = sql.SQL("select {} from {}").format(listed, sql.Identifier(schema, table))
                if condition is not None:
                    query += sql.SQL(" where " + condition)
                connection.execute(sql.SQL("declare pointstamp no scroll cursor for {}").format(query))
                while True:
                    cursor = connection.execute(f"fetch forward {CHANGES} from pointstamp")
                    if not cursor.rowcount:
                        break
                    full = f"{schema}.{table}"
                    rows = self._rows_of(cursor, full, columns, key)
                    yield [Change("read", full, row, None, lsn) for row in rows]
                connection.execute("close pointstamp")

    def _rows_of(self, cursor: Any, table: str, columns: list[str], key: list[str]) -> list[dict[str, Any]]:
        """The rows of a result, by psycopg's quick way where that makes the values that are wanted."""
        result = cursor.pgresult
        types = [result.ftype(at) for at in range(len(columns))]
        if not any(map(self._values.has_base, types)):
            try:
                return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
            except Exception:  # of a value that Python's type cannot hold: found below, with its place
                pass
        return [
            self._values.row(
                table,
                [
                    (name, types[at], name in key, result.get_value(number, at))
                    for at, name in enumerate(columns)
                ],
            )
            for number in range(result.ntuples)
        ]

    # ------------------------------------------------------------ changes

    def _changes(self) -> list[Change] | None:
        """Changes that have come, or an empty batch where only the place in the log has changed."""
        if self._error is not None:
            raise self._error
        stream = self._stream
        assert stream is not None
        before = self._offset
        batch: list[Change] = []
        while len(batch) < CHANGES and not self._over:
            try:
                frame = stream.take()
            except client().OperationalError:
                if not batch and self._offset == before:
                    raise
                self._lose()  # after its changes
                return batch
            if frame is None:
                break
            self._asked = None
            try:
                self._frame(frame, batch)
            except PointstampError as error:
                if not batch:
                    raise
                self._error = error  # after the earlier changes
                return batch
        now = clock.monotonic()
        if self._asked is not None and now - self._asked > self._patience * SILENT:
            raise client().OperationalError(
                f"the server was silent for {now - self._asked:.0f} s, although it was asked for an answer"
            )
        if now - self._told >= self._every():
            self._tell(answer=True)
        return batch if batch or self._offset > before else None

    def _frame(self, frame: memoryview, batch: list[Change]) -> None:
        kind = bytes(frame[:1])
        if kind == b"w":
            for said in self._decoder.decode(frame[25:]):
                self._said(said, batch)
        elif kind == b"k":
            place, _, answer = struct.unpack_from("!QQB", frame, 1)
            if self._open is None:
                self._offset = max(self._offset, place)  # nothing of ours is before it that has not come
                self._over = self._until is not None and self._offset >= self._until
            if answer:
                self._tell()

    def _said(self, said: Begin | Commit | Change, batch: list[Change]) -> None:
        if isinstance(said, Begin):
            self._open, self._count = said.lsn, 0
        elif isinstance(said, Commit):
            self._open = None
            self._offset = max(self._offset, said.end)
        else:
            self._count += 1
            place, given = self._given
            if said.lsn != place or self._count > given:
                batch.append(said)
                self._given = (said.lsn, self._count)


TABLES = """
select p.schemaname, p.tablename, array_agg(a.attname::text order by a.attnum), to_jsonb(p) ->> 'rowfilter',
  coalesce((
    select array_agg(k.attname::text) from pg_index i
    join pg_attribute k on k.attrelid = i.indrelid and k.attnum = any(i.indkey)
    where i.indrelid = a.attrelid and i.indisprimary
  ), '{}')
from pg_publication_tables p
join pg_attribute a on a.attrelid = format('%%I.%%I', p.schemaname, p.tablename)::regclass
where p.pubname = %s and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
  and (to_jsonb(p) -> 'attnames' is null or to_jsonb(p) -> 'attnames' ? a.attname::text)
group by p.schemaname, p.tablename, a.attrelid, to_jsonb(p) ->> 'rowfilter'
order by p.schemaname, p.tablename
"""
"""The tables of a publication, with the columns and the condition that newer servers have for them, and the
columns of the primary key.
"""
