"""Draws nested_scope.svg: a scope with a loop in the graph of its parent, and the graph inside."""

from drawing import BLUE, FAINT, GREEN, INK, TINTS, Picture

from pointstamp.progress import Graph, Source, Target

# The inside: node 0 is what surrounds the scope.
graph = Graph(dims=2)
outside = graph.add_node(1, 1, {}, name="outside")
body = graph.add_node(2, 1, name="body")
feedback = graph.add_node(1, 1, {(0, 0): [(0, 1)]}, name="feedback")
graph.add_edge(Source(outside, 0), Target(body, 0))
graph.add_edge(Source(body, 0), Target(feedback, 0))
graph.add_edge(Source(feedback, 0), Target(body, 1))
graph.add_edge(Source(body, 0), Target(outside, 0))
[inside] = graph.path_summaries(Source(outside, 0), Target(outside, 0))
around = inside[:1]  # the parent's coordinate

picture = Picture(760, 330, "A scope in its parent's graph, and the graph inside")
picture.text(24, 34, "The parent's graph", anchor="start", bold=True)
picture.text(24, 136, "The graph inside of the scope", anchor="start", bold=True)


def node(x: float, y: float, width: float, name: str, color: str) -> None:
    """A node with its name."""
    picture.box(x, y, width, 40, fill=TINTS[color], stroke=color)
    picture.text(x + width / 2, y + 25, name, size=13)


node(40, 54, 110, "input", FAINT)
node(300, 54, 160, "the scope", BLUE)
node(610, 54, 110, "sink", FAINT)
picture.arrow([(150, 74), (300, 74)])
picture.arrow([(460, 74), (610, 74)])
picture.text(380, 112, f"adds {around[0]} on the way", size=12, color=BLUE)

picture.box(24, 152, 712, 160, fill="#ffffff", stroke=BLUE)
node(40, 180, 110, "node 0", FAINT)
picture.text(95, 238, "its output is", size=12)
picture.text(95, 254, "the scope's input", size=12)
node(610, 180, 110, "node 0", FAINT)
picture.text(665, 238, "its input is", size=12)
picture.text(665, 254, "the scope's output", size=12)
node(320, 180, 120, "body", GREEN)
node(320, 256, 120, "feedback", GREEN)
picture.arrow([(150, 200), (320, 200)])
picture.text(235, 192, "(t) becomes (t, 0)", size=12, color=INK)
picture.arrow([(440, 200), (610, 200)])
picture.text(525, 192, "(t, n) becomes (t)", size=12, color=INK)
picture.arrow([(440, 208), (480, 208), (480, 276), (440, 276)])
picture.arrow([(320, 276), (280, 276), (280, 212), (320, 212)])
picture.text(380, 250, "adds (0, 1)", size=12, color=GREEN)
picture.save("nested_scope.svg")
