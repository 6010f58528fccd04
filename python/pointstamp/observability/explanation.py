"""Explanations why a time is still possible at a probe: the holders, their workers, and the remedies.

Owns `Explanation` and its `Holder`s. A time is possible because of pointstamps that could result in it:
messages that have not been taken, and capabilities. The causes are the ones that no other of them could have
led to; the rest waits for them, and is listed after them. The description of a cause follows from each
worker's statistics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp.observability.graph import less_equal
from pointstamp.observability.stall_causes import Holder, Look, Stamp, silence, written
from pointstamp.observability.statistics import Silent, Statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pointstamp.observability.graph import Place
    from pointstamp.observability.statistics import Standing
    from pointstamp.types import Time

__all__ = ["Explanation", "Holder", "explain"]

MOST_SEARCHED = 500
"""Pointstamps from which the graph is searched; those of the least times come first."""

SHOWN = 6
"""Causes that `str` shows."""


class Explanation:
    """Why a time may still appear. Its text is for people.

    Attributes:
        time: The time that was asked about, or None.
        causes: The holders.
        waiting: Holders that wait for the causes in turn.
        silent: Workers that have not answered, which therefore may hold it.
        undrained: The operators that kept the last attempt at a checkpoint from draining; none where it was
            made.

    Examples:
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         words, stream = scope.new_input(name="words")
        ...         probe = stream.probe()
        ...     explanation = worker.explain(probe, 1)
        ...     return [cause.operator for cause in explanation.causes], explanation.silent
        >>> ps.execute(main)
        [(['words'], ())]
    """

    def __init__(
        self,
        subject: str,
        time: Time | None,
        causes: Sequence[Holder],
        waiting: Sequence[Holder],
        silent: Sequence[Silent],
        undrained: Sequence[str] = (),
    ) -> None:
        self.subject = subject
        self.time = time
        self.causes = tuple(causes)
        self.waiting = tuple(waiting)
        self.silent = tuple(silent)
        self.undrained = tuple(undrained)

    def __bool__(self) -> bool:
        """Whether anything holds the time."""
        return bool(self.causes or self.silent)

    def __repr__(self) -> str:
        return f"<Explanation time={self.time!r} causes={len(self.causes)}>"

    def __str__(self) -> str:
        return self.text(SHOWN)

    def text(self, most: int) -> str:
        """The explanation for people, with so many of its causes at most.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words, stream = scope.new_input(name="words")
            ...         probe = stream.probe()
            ...     print(worker.explain(probe, 1).text(most=1).splitlines()[0])
            >>> ps.execute(main) and None
            A time before 1 is still possible: at the probe the frontier is [0]. What holds it:
        """
        lines = [self.subject]
        alike: dict[object, list[Holder]] = {}
        for holder in self.causes:
            # Outputs of one operator are held together.
            port = holder.port if holder.kind in ("messages", "unread", "loop") else 0
            alike.setdefault((holder.kind, holder.address, port, holder.time), []).append(holder)
        for number, (holder, *others) in enumerate(list(alike.values())[:most], 1):
            lines.append(f"{number}. {holder.what}")
            workers = sorted({other.worker for other in others if other.worker is not None} - {holder.worker})
            if workers:
                lines.append(f"   It is the same on {_workers(workers)}.")
            if holder.cure:
                lines.append(f"   {holder.cure}")
            if len(holder.way) > 1:
                lines.append(f"   Its way there: {' -> '.join(holder.way)}.")
        if len(alike) > most:
            lines.append(f"And {len(alike) - most} more.")
        if not any(holder.kind == "worker" for holder in self.causes):
            lines.extend(silence(silent) for silent in self.silent if not silent.ended)
        if self.waiting and most >= SHOWN:
            names = list(
                dict.fromkeys(f"'{holder.operator}' at {written(holder.time)}" for holder in self.waiting)
            )
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            lines.append(
                f"After that, these hold it, too, and may wait for it: {', '.join(names[:SHOWN])}{more}."
            )
        if self.undrained:
            names = [f"'{name}'" for name in self.undrained]
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            lines.append(
                "The last attempt at a checkpoint was given up, because these still had work at the end of "
                f"Checkpoint(drain=): {', '.join(names[:SHOWN])}{more}."
            )
        return "\n".join(lines)


def explain(
    answers: Sequence[Statistics | Silent],
    own: int,
    *,
    at: Iterable[Place] | None = None,
    before: Time | None = None,
    frontier: Sequence[Time] = (),
    beyond: Sequence[Time] | None = None,
) -> Explanation:
    """Explains why times are possible at places, or, without places, why all dataflows wait.

    Args:
        answers: The answer of each worker, and the workers without one.
        own: The worker whose view of outstanding pointstamps counts.
        at: The places.
        before: Times less than it are explained. None explains the frontier.
        frontier: The least times that are possible there, where it is a probe.
        beyond: Times at or after one of these are not explained; all others are, with or without `before` and
            a frontier.
    """
    said = {answer.worker: answer for answer in answers if isinstance(answer, Statistics)}
    silent = [answer for answer in answers if isinstance(answer, Silent)]
    places = None if at is None else list(at)
    asked = _asked(before, frontier, beyond)
    causes: list[Holder] = []
    waiting: list[Holder] = []
    viewer = said.get(own) or next(iter(said.values()), None)
    for number, standing in () if viewer is None else viewer.dataflows.items():
        there = None if places is None else [place for place in places if place.address[0] == number]
        if there == []:
            continue
        found = list(_found(standing, there, asked))
        look = Look(standing, said, silent)
        roots = _roots(found)
        for index, stamp in enumerate(found):
            holders = look.holders(stamp)
            (causes if index in roots else waiting).extend(holders)
    causes.sort(key=lambda holder: (holder.kind == "messages", holder.time is None))
    subject = _subject(places, before, frontier, causes, silent)
    if beyond is not None:
        subject = "What holds it:" if causes or silent else "Nothing holds it any more."
    undrained = sorted({name for one in said.values() for name in one.undrained})
    return Explanation(subject, before, causes, waiting, silent, undrained)


def _asked(
    before: Time | None, frontier: Sequence[Time], beyond: Sequence[Time] | None
) -> Callable[[tuple[int, ...]], bool]:
    """Whether a time at a place is to be explained."""
    if beyond is not None:
        passed = [coordinates(time) for time in beyond]
        return lambda result: not any(less_equal(time, result) for time in passed)
    if before is not None:
        bound = coordinates(before)
        return lambda result: less_equal(result, bound) and result != bound
    bounds = [coordinates(time) for time in frontier]
    return lambda result: any(less_equal(result, bound) for bound in bounds)


def _found(
    standing: Standing, places: Sequence[Place] | None, asked: Callable[[tuple[int, ...]], bool]
) -> Iterator[Stamp]:
    """Returns the pointstamps that hold the times in question."""
    graph = standing.graph
    outstanding = [
        (place, time, count)
        for (place, time), count in standing.pointstamps.items()
        # Pointstamps at a scope as a whole are counted inside it, too.
        if count > 0 and place.address[-1] != 0 and place.address not in graph.scopes
    ]
    outstanding.sort(key=lambda stamp: (stamp[1], stamp[0]))
    for place, time, count in outstanding[:MOST_SEARCHED]:
        reached = graph.reached(place, time)
        if places is None:
            yield Stamp(place, time, count, reached, ())
            continue
        for goal in places:
            result = next((result for result in reached.times.get(goal, ()) if asked(result)), None)
            if result is not None:
                yield Stamp(place, time, count, reached, tuple(graph.way(reached, goal, result)))
                break


def _roots(found: Sequence[Stamp]) -> set[int]:
    """Returns the numbers of pointstamps that none of the others could result in."""
    return {
        index
        for index, stamp in enumerate(found)
        if not any(
            other is not stamp
            and (other.place, other.time) != (stamp.place, stamp.time)
            and other.reached.by(stamp.place, stamp.time) is not None
            for other in found
        )
    }


def coordinates(time: Time) -> tuple[int, ...]:
    """A time as its coordinates."""
    return time if isinstance(time, tuple) else (time,)


def _subject(
    places: Sequence[Place] | None,
    before: Time | None,
    frontier: Sequence[Time],
    causes: Sequence[Holder],
    silent: Sequence[Silent],
) -> str:
    held = bool(causes or [one for one in silent if not one.ended])
    if places is None:
        return "What the dataflows wait for:" if held else "Nothing is outstanding in the dataflows."
    if not places:
        return "The probe is attached to no dataflow that runs: attach it with stream.probe_with(probe)."
    now = f"at the probe the frontier is [{', '.join(map(written, frontier))}]"
    if before is None:
        return f"{now.capitalize()}. What holds it:" if held else f"{now.capitalize()}, and nothing holds it."
    if held:
        return f"A time before {written(before)} is still possible: {now}. What holds it:"
    return f"No time before {written(before)} is possible any more: {now}."


def _workers(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"worker {numbers[0]}"
    return f"workers {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
