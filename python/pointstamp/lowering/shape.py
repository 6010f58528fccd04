"""Rules of nodes that move streams between scopes, put them together, and watch them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.lowering.rules import makes, rule
from pointstamp.plan import shape
from pointstamp.plan.node import Form

if TYPE_CHECKING:
    from pointstamp.lowering.building import Building
    from pointstamp.plan.node import Node

__all__: list[str] = []


@rule(shape.EXCHANGE, shape.BROADCAST)
def forward(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Moves records by a pact."""
    return stream.forward(node.title, *node["pact"])


@rule(shape.CONCATENATE)
def concatenate(building: Building, node: Node, *streams: _core.Stream) -> _core.Stream:
    """Makes one stream of several."""
    return building.scopes[node.scope].concatenate(streams)


@rule(shape.TO_STREAM)
def to_stream(building: Building, node: Node) -> _core.Stream:
    """Makes a stream of an iterable."""
    return building.scopes[node.scope].to_stream(node["items"])


@rule(shape.EMPTY)
def empty(building: Building, node: Node) -> _core.Stream:
    """Makes a stream without records."""
    return building.scopes[node.scope].empty()


@makes(shape.ENTER)
def enter(building: Building, node: Node, form: Form) -> Any:
    """Brings an output from outside into a scope, in the form in which it is read there."""
    outside = building.take(node.inputs[0].output, form)
    scope = building.scopes[node.scope]
    if form in (Form.BY_KEY, Form.BY_RECORD):
        return _core.enter_arrangement(outside, scope)
    return scope.enter(outside)


@rule(shape.LEAVE)
def leave(building: Building, _node: Node, stream: _core.Stream) -> _core.Stream:
    """Brings a stream out of its scope, once for all that ask for it."""
    return building.left(stream)


@rule(shape.CONNECT)
def connect(_building: Building, node: Node, stream: _core.Stream) -> None:
    """Closes a loop."""
    assert node.closes is not None
    node.closes["end"].connect(stream)


@rule(shape.PROBE)
def probe(building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Attaches a probe."""
    probed = stream.probe_with(node["handle"])
    building.attached(node)
    return probed


@rule(shape.CAPTURE)
def capture(_building: Building, node: Node, stream: _core.Stream) -> None:
    """Keeps the events of a stream in memory."""
    stream.capture(node["queue"])


@rule(shape.CAPTURE_INTO)
def capture_into(_building: Building, node: Node, stream: _core.Stream) -> None:
    """Writes the events of a stream."""
    node["sink"].capture(stream, node.inputs[0].output.schema)


@rule(shape.REPLAY)
def replay(building: Building, node: Node) -> _core.Stream:
    """Plays captures."""
    return _core.replay(building.scopes[node.scope], node["played"], node["carries"])


@rule(shape.OPERATOR)
def operator(_building: Building, node: Node, *streams: _core.Stream) -> None:
    """Connects the inputs of a custom operator, and builds it."""
    core: _core.Builder = node["core"]
    ports = []
    for stream, (pact, key, frontier) in zip(streams, node["pacts"], strict=True):
        connect = core.new_frontiered_input if frontier else core.new_input
        ports.append(connect(stream, pact, key))
    for input, output, summary in node["summaries"]:
        core.set_summary(input, output, summary)
    core.build(node["logic"], node["ports"](ports), node["notify"], node["start"])


@rule(shape.WATCH)
def watch(building: Building, node: Node, stream: _core.Stream) -> None:
    """Has a probe follow the times downstream of a stream."""
    scope = building.scopes[node.scope]
    scope.watch_downstream(stream, node["probe"], node["activator"], node["retained"])


@rule(shape.RETAINING)
def retaining(building: Building, node: Node, stream: _core.Stream) -> None:
    """Finds the operators downstream that may need any record for as long as they run."""
    node["found"](building.scopes[node.scope].retaining_forever(stream))
