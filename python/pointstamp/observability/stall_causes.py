"""Names the holders of a pointstamp, the reasons, and the remedies: the operator, the time and the line.

Owns `Holder` and `Look`, which finds the holders of a pointstamp in the workers' statistics. The sentences
are for people who have not read the book: they describe the state, and the change of the program that mends
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.observability.graph import Graph, Place, Reached
from pointstamp.observability.statistics import Standing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pointstamp.observability.statistics import Silent, Statistics
    from pointstamp.types import Time

__all__ = ["Holder", "Look", "Stamp", "called", "outside", "silence", "written"]

STILL = 0.1
"""Seconds since an operator last ran after which it counts as not reading its waiting messages."""

ENDLESS = (
    "If it should have ended: end the turn of a collection with distinct, min or consolidate; of a stream, "
    "let a filter send fewer records back each time."
)


class Holder(NamedTuple):
    """Something that holds a time.

    Attributes:
        kind: ``"input"`` (one that `main` drives), ``"source"``, ``"capability"``, ``"unread"`` (messages
            that an operator does not read), ``"messages"`` (waiting or in flight), ``"loop"`` (records that
            circulate), ``"pressure"`` (a source that pauses), or ``"worker"`` (one that does not step).
        operator: The name of the operator.
        address: Its address; empty where it is a worker as a whole.
        port: The number of the output, or, of messages, the input.
        time: The time that is held; None where it is a worker as a whole.
        worker: The worker; None where it is not known.
        process: Its process.
        amount: The number of capabilities, or records.
        seconds: The duration, where that is known.
        made: The line of the program that made it, as ``"file.py:12"``; empty where that is not known.
        what: The holder of the time, in a sentence or two.
        cure: The remedy.
        way: The names of the operators from there to the probe.

    Examples:
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         words, stream = scope.new_input(name="words")
        ...         probe = stream.probe()
        ...     [holder] = worker.explain(probe, 1).causes
        ...     return holder.kind, holder.operator, holder.worker, holder.time
        >>> ps.execute(main)
        [('input', 'words', 0, 0)]
    """

    kind: str
    operator: str
    address: tuple[int, ...]
    port: int
    time: Time | None
    worker: int | None
    process: int | None
    amount: int
    seconds: float | None
    made: str
    what: str
    cure: str
    way: tuple[str, ...] = ()


class Stamp(NamedTuple):
    """A pointstamp that is outstanding, and the times that it could result in."""

    place: Place
    time: tuple[int, ...]
    amount: int
    reached: Reached
    way: tuple[str, ...]


class Look:
    """The workers' answers about the pointstamps of one dataflow."""

    def __init__(self, standing: Standing, said: dict[int, Statistics], silent: Sequence[Silent]) -> None:
        self._standing = standing
        self._graph = standing.graph
        self._said = said
        self._silent = silent

    def holders(self, stamp: Stamp) -> list[Holder]:
        """Returns the holders of a pointstamp; at least one, if only an unknown one."""
        holders = list(self._capabilities(stamp) if stamp.place.output else self._messages(stamp))
        return [holder._replace(way=stamp.way) for holder in holders]

    # ------------------------------------------------------------ capabilities

    def _capabilities(self, stamp: Stamp) -> Iterator[Holder]:
        place, time = stamp.place, stamp.time
        found = False
        for stats in self._said.values():
            if (place.address, time) in stats.inputs:
                found = True
                yield self._input(stamp, stats)
                continue
            held = [
                kept
                for kept in stats.capabilities
                if (kept.address, kept.port, kept.time) == (place.address, place.port, time)
            ]
            if held:
                found = True
                yield self._kept(stamp, stats, held)
            elif self._standing_of(stats).held.get((place.address, place.port, time), 0):
                found = True
                yield self._native(stamp, stats)
        missing = [
            stats
            for stats in self._said.values()
            if place.address[0] not in stats.dataflows and time == (0,) * len(time) and not found
        ]
        for stats in missing:
            found = True
            yield self._unbuilt(stamp, stats)
        key = (place.address, place.port, time)
        known = sum(self._standing_of(stats).held.get(key, 0) for stats in self._said.values())
        if not found or (known < stamp.amount and any(not silent.ended for silent in self._silent)):
            yield self._elsewhere(stamp)

    def _input(self, stamp: Stamp, stats: Statistics) -> Holder:
        name, made = self._named(stamp)
        when = written(outside(stamp.time))
        what = (
            f"The input '{name}'{_made(made)} of worker {stats.worker} stands at time {when} and is open: "
            "records "
            f"may still be sent at that time."
        )
        if stats.at:
            what += f" {_where(stats)}"
        cure = (
            f"When all its records at {when} are sent, call advance_to() on its handle with a later time, "
            "or close() "
            "after the last."
        )
        return self._holder("input", stamp, stats, 1, None, made, what, cure)

    def _kept(self, stamp: Stamp, stats: Statistics, held: Sequence[Any]) -> Holder:
        name, made = self._named(stamp)
        operator = self._graph.operators[stamp.place.address]
        oldest = max(held, key=lambda kept: kept.seconds)
        when = written(outside(stamp.time))
        several = f"{len(held)} capabilities" if len(held) > 1 else "a capability"
        ran = stats.ran.get(stamp.place.address)
        line = f", made at {_short(oldest.made)}" if oldest.made else ""
        own = stats.own.get(stamp.place.address)
        if operator.inputs:
            what = (
                f"The operator '{name}'{_made(made)} on worker {stats.worker} holds {several} for time "
                f"{when}, for "
                f"{oldest.seconds:.1f} s{line}{self._turn(stamp)}."
            )
            if own is not None:
                what = (
                    f"The operator '{name}'{_made(made)} on worker {stats.worker} holds time {when}, for "
                    f"{oldest.seconds:.1f} s. {own[0]}"
                )
                return self._holder("capability", stamp, stats, len(held), oldest.seconds, made, what, own[1])
            cure = (
                "When all is sent at that time, call drop() on it, downgrade() it to a later time, or let "
                "the last "
                "reference to it go."
            )
            return self._holder(
                "capability", stamp, stats, len(held), oldest.seconds, oldest.made, what, cure
            )
        what = (
            f"The source '{name}'{_made(made)} on worker {stats.worker} holds {several} for time {when}, for "
            f"{oldest.seconds:.1f} s{line}."
        )
        cure = "When all is sent at that time, downgrade() the capability, and drop() it at the end."
        kind = "source"
        if stamp.place.address in self._standing_of(stats).paused:
            return self._paused(stamp, stats)
        if own is not None:
            what = (
                f"The source '{name}'{_made(made)} on worker {stats.worker} holds time {when}, for "
                f"{oldest.seconds:.1f} s. {own[0]}"
            )
            return self._holder(kind, stamp, stats, len(held), oldest.seconds, made, what, own[1])
        if ran is not None:
            what += f" It ran {_times(ran.times)}, last {ran.seconds:.1f} s ago; it runs when activated."
            if ran.alive:
                what += f" The thread '{ran.thread}' activates it."
            elif ran.thread:
                what += f" The thread '{ran.thread}', which activated it, has ended."
                cure = (
                    "Look for the exception that ended the thread. Have it activate the source in a "
                    "`finally`, "
                    "and the source drop its capability when the thread has ended."
                )
        return self._holder(kind, stamp, stats, len(held), oldest.seconds, oldest.made, what, cure)

    def _paused(self, stamp: Stamp, stats: Statistics) -> Holder:
        name, made = self._named(stamp)
        what = (
            f"The source '{name}'{_made(made)} on worker {stats.worker} pauses at time "
            f"{written(outside(stamp.time))}: {_bytes(stats.in_flight)} are on their way, and above "
            f"{_bytes(stats.high_water)} sources wait until some of it is taken."
        )
        cure = "See which operator does not keep up, or raise high_water in the Config."
        return self._holder("pressure", stamp, stats, 1, None, made, what, cure)

    def _native(self, stamp: Stamp, stats: Statistics) -> Holder:
        name, made = self._named(stamp)
        operator = self._graph.operators.get(stamp.place.address)
        if stamp.place.address in self._standing_of(stats).paused:
            return self._paused(stamp, stats)
        when = written(outside(stamp.time))
        if operator is not None and not operator.inputs:
            what = (
                f"The source '{name}'{_made(made)} on worker {stats.worker} is not at its end, and may send "
                "at time "
                f"{when}."
            )
            cure = "It continues as the worker steps, and ends when the data that it reads does."
            return self._holder("source", stamp, stats, 1, None, made, what, cure)
        what = (
            f"The operator '{name}'{_made(made)} on worker {stats.worker} keeps time {when} open for what "
            "it has "
            f"gathered{self._turn(stamp)}."
        )
        cure = "It sends that, and lets go, when its input has passed the time." if not stats.busy else ""
        return self._holder("capability", stamp, stats, 1, None, made, what, cure)

    def _unbuilt(self, stamp: Stamp, stats: Statistics) -> Holder:
        name, _ = self._named(stamp)
        dataflow = self._graph.name(stamp.place.address[:1])
        what = (
            f"Worker {stats.worker} has not built the dataflow '{dataflow}' yet, and so may still send at "
            "time "
            f"{written(outside(stamp.time))} from its '{name}'."
        )
        if stats.at:
            what += f" {_where(stats)}"
        cure = "Every worker must build the same dataflows, in the same order, and step."
        return self._holder("worker", stamp, stats, 1, None, "", what, cure)

    # ------------------------------------------------------------ messages

    def _messages(self, stamp: Stamp) -> Iterator[Holder]:
        place = stamp.place
        found = False
        for stats in self._said.values():
            waiting = self._standing_of(stats).queued.get((place.address, place.port), [])
            here = sum(records for time, records in waiting if time == stamp.time)
            if here or any(time is None for time, _ in waiting):
                found = True
                yield self._queued(stamp, stats, here or stamp.amount)
        if not found:
            yield self._elsewhere(stamp)

    def _queued(self, stamp: Stamp, stats: Statistics, records: int) -> Holder:
        name, made = self._named(stamp)
        ran = stats.ran.get(stamp.place.address)
        when = written(outside(stamp.time))
        many = f"{records} record{'s' if records > 1 else ''}"
        port = (
            f"input {stamp.place.port} of " if self._graph.operators[stamp.place.address].inputs > 1 else ""
        )
        loop = self._graph.loops(stamp.place.address)
        if ran is not None and ran.times and (not stats.busy or ran.seconds > STILL):
            what = (
                f"{many} at time {when} {'wait' if records > 1 else 'waits'} at {port}the operator "
                f"'{name}'{_made(made)} on worker "
                f"{stats.worker}, which does not read {'them' if records > 1 else 'it'}: it ran "
                f"{_times(ran.times)}, last {ran.seconds:.1f} s "
                f"ago{self._turn(stamp)}."
            )
            cure = (
                "Its logic must read each of its inputs to the end whenever it runs: "
                "`for capability, records in input:`."
            )
            return self._holder("unread", stamp, stats, records, ran.seconds, made, what, cure)
        if loop and stats.busy:
            what = (
                f"The loop '{loop[-1].name}' still turns on worker {stats.worker}: {many} at "
                f"'{name}'{_made(made)}"
                f"{self._turn(stamp)}."
            )
            return self._holder("loop", stamp, stats, records, None, made, what, ENDLESS)
        what = (
            f"{many} at time {when} {'wait' if records > 1 else 'waits'} at {port}the operator "
            f"'{name}'{_made(made)} on worker "
            f"{stats.worker}{self._turn(stamp)}."
        )
        cure = (
            "The worker is at work, and will take them."
            if stats.busy
            else "The worker takes them as it steps."
        )
        return self._holder("messages", stamp, stats, records, None, made, what, cure)

    # ------------------------------------------------------------ candidates for holders

    def _elsewhere(self, stamp: Stamp) -> Holder:
        """No worker that answered has it."""
        name, made = self._named(stamp)
        when = written(outside(stamp.time))
        thing = "a capability of" if stamp.place.output else "records for"
        suspects = [silent for silent in self._silent if not silent.ended]
        if suspects:
            who = " or ".join(called(silent) for silent in suspects)
            where = f"{_made(made)} on {who}{self._turn(stamp)}"
            what = f"Time {when} is held by {thing} the operator '{name}'{where}."
            cure = " ".join(silence(silent) for silent in suspects)
            first = suspects[0]
            return Holder(
                *("worker", name, stamp.place.address, stamp.place.port, outside(stamp.time), first.worker),
                *(first.process, stamp.amount, first.seconds, made, what, cure),
            )
        loop = self._graph.loops(stamp.place.address)
        if loop and any(stats.busy for stats in self._said.values()):
            where = f"{_made(made)}{self._turn(stamp)}"
            what = f"The loop '{loop[-1].name}' still turns: records go to '{name}'{where}."
            return Holder(
                *("loop", name, stamp.place.address, stamp.place.port, outside(stamp.time), None),
                *(None, stamp.amount, None, made, what, ENDLESS),
            )
        if len(self._said) == 1 and not self._silent:
            [alone] = self._said
            what = (
                f"Time {when} was held by {thing} the operator '{name}'{_made(made)} when worker {alone} "
                f"last stepped, and has been let go of since{self._turn(stamp)}."
            )
            return Holder(
                *("messages", name, stamp.place.address, stamp.place.port, outside(stamp.time), alone),
                *(None, stamp.amount, None, made, what, "The worker's next step shows what is left."),
            )
        what = (
            f"Time {when} is held by {thing} the operator '{name}'{_made(made)}; no worker has it now, so "
            "that it is on "
            f"its way between workers{self._turn(stamp)}."
        )
        return Holder(
            *("messages", name, stamp.place.address, stamp.place.port, outside(stamp.time), None),
            *(None, stamp.amount, None, made, what, "It arrives as the workers step."),
        )

    # ------------------------------------------------------------ words

    def _holder(
        self,
        kind: str,
        stamp: Stamp,
        stats: Statistics,
        count: int,
        seconds: float | None,
        made: str,
        what: str,
        cure: str,
    ) -> Holder:
        name, _ = self._named(stamp)
        return Holder(
            *(kind, name, stamp.place.address, stamp.place.port, outside(stamp.time), stats.worker),
            *(stats.process, count, seconds, made, what, cure),
        )

    def _named(self, stamp: Stamp) -> tuple[str, str]:
        operator = self._graph.operators.get(stamp.place.address)
        return self._graph.name(stamp.place.address), operator.made if operator is not None else ""

    def _standing_of(self, stats: Statistics) -> Standing:
        return stats.dataflows.get(self._number, _EMPTY)

    @property
    def _number(self) -> int:
        return next(iter(self._graph.scopes))[0]

    def _turn(self, stamp: Stamp) -> str:
        """In which loops it is, and at which turn of each."""
        loops = self._graph.loops(stamp.place.address)
        if not loops:
            return ""
        turns = [f"turn {stamp.time[scope.dims - 1]} of the loop '{scope.name}'" for scope in loops]
        return f", in {' and '.join(turns)}"


def outside(time: tuple[int, ...]) -> Time:
    """Coordinates as a time is written."""
    return time[0] if len(time) == 1 else time


def written(time: Time | None) -> str:
    """A time, for people."""
    return str(time)


def _made(line: str) -> str:
    return f" ({_short(line)})" if line else ""


def _short(line: str) -> str:
    """A line of a file without the folders that lead to it, as far as people need them."""
    import os

    path, _, number = line.rpartition(":")
    short = os.path.relpath(path) if path.startswith(os.sep) else path
    return f"{short if len(short) < len(path) else path}:{number}"


def _where(stats: Statistics) -> str:
    line, _, function = stats.at.partition(" in ")
    return f"Its main is at {_short(line)} in {function}."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _bytes(count: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def called(silent: Silent) -> str:
    """Names a worker or process that has not answered."""
    return f"process {silent.process}" if silent.worker is None else f"worker {silent.worker}"


def silence(silent: Silent) -> str:
    """A sentence on a worker that has not answered."""
    who = called(silent).capitalize()
    if silent.worker is None:
        return (
            f"{who} has not answered for {silent.seconds:.1f} s: it is stopped, or its interpreter is "
            "taken up by native "
            "code."
        )
    if silent.at and silent.inside:
        whose = f"its operator '{silent.operator}'" if silent.operator else "one of its operators"
        return (
            f"{who} runs a function of {whose}, for {silent.seconds:.1f} s at least: it is at "
            f"{silent.at}. Until that returns, the worker does nothing else. What waits there for another "
            "program or for a thread needs a time limit, or async_map(timeout=), which waits beside it."
        )
    if silent.at:
        return (
            f"{who} runs the program's own code and does not step, for {silent.seconds:.1f} s at least: it "
            "is at "
            f"{silent.at}. A worker that waits for something else must step meanwhile: step_or_park()."
        )
    return (
        f"{who} has not answered for {silent.seconds:.1f} s: it has not begun, or one of its operators runs."
    )


_EMPTY = Standing(Graph((), (), ()), {}, {}, {}, frozenset())
