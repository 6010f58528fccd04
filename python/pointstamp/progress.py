"""The progress tracker by itself: a graph, the pointstamps in it, and the frontiers that follow.

A pointstamp is a timestamp at a place in a dataflow graph: a message that waits at an input, or a capability
of an output. It could result in another one when a path leads there that takes its timestamp to that one or
before it. `Tracker` keeps, at every port, the frontier of the times that may still appear there; `Scheduler`
keeps the same knowledge in the form in which Naiad had it, a table of the active pointstamps. Dataflows run
on the tracker; the table is small and plain, for readers who want to see how it works.

Examples:
    An input feeds a loop, whose feedback adds 1 to the time:

    >>> from pointstamp.progress import Graph, Source, Target
    >>> graph = Graph()
    >>> entry = graph.add_node(0, 1, name="entry")
    >>> body = graph.add_node(2, 1, name="body")
    >>> feedback = graph.add_node(1, 1, {(0, 0): [1]}, name="feedback")
    >>> graph.add_edge(Source(entry, 0), Target(body, 0))
    >>> graph.add_edge(Source(body, 0), Target(feedback, 0))
    >>> graph.add_edge(Source(feedback, 0), Target(body, 1))
    >>> tracker = graph.build()
    >>> tracker.update(Source(entry, 0), 7, 1)
    >>> len(tracker.propagate())
    6
    >>> tracker.frontier(Target(body, 0)), tracker.frontier(Target(body, 1))
    (Antichain([7]), Antichain([8]))
"""

from typing import NamedTuple

from pointstamp._core import Graph, Scheduler, Tracker

__all__ = ["Graph", "Scheduler", "Source", "Target", "Tracker"]


class Source(NamedTuple):
    """An output port of a node. Not equal to the input port of the same numbers.

    Examples:
        >>> from pointstamp.progress import Source
        >>> Source(1, 0)
        Source(node=1, port=0)
    """

    node: int
    port: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(("source", *self))


class Target(NamedTuple):
    """An input port of a node. Not equal to the output port of the same numbers.

    Examples:
        >>> from pointstamp.progress import Target
        >>> Target(2, 0)
        Target(node=2, port=0)
    """

    node: int
    port: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(("target", *self))
