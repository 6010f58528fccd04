"""Draws could_result_in.svg: a message at time 7 in a loop, and the earliest times that come of it."""

from drawing import BLUE, FAINT, ORANGE, TINTS, Picture

from pointstamp.progress import Graph, Source, Target

graph = Graph()
start = graph.add_node(0, 1, name="start")
body = graph.add_node(2, 1, name="body")
feedback = graph.add_node(1, 1, {(0, 0): [1]}, name="feedback")
end = graph.add_node(1, 0, name="end")
EDGES = [
    (Source(start, 0), Target(body, 0)),
    (Source(body, 0), Target(feedback, 0)),
    (Source(feedback, 0), Target(body, 1)),
    (Source(body, 0), Target(end, 0)),
]
for edge in EDGES:
    graph.add_edge(*edge)

HERE, NOW = Target(feedback, 0), 7
tracker = graph.build()
tracker.update(HERE, NOW, 1)
tracker.propagate()

picture = Picture(720, 316, "The pointstamps that one could result in")
picture.text(24, 34, f"A message waits at the feedback at time {NOW}", anchor="start", bold=True)

places = {start: (70, 130), body: (340, 130), end: (640, 130), feedback: (340, 236)}
names = {start: "start", body: "body", end: "end", feedback: "feedback: + 1"}
half = {start: 44, body: 60, end: 44, feedback: 70}
ports = {
    Source(start, 0): (70 + 44, 120),
    Target(body, 0): (340 - 60, 120),
    Target(body, 1): (340 - 60, 142),
    Source(body, 0): (340 + 60, 130),
    Target(end, 0): (640 - 44, 130),
    Target(feedback, 0): (340 + 70, 236),
    Source(feedback, 0): (340 - 70, 236),
}
picture.arrow([ports[Source(start, 0)], ports[Target(body, 0)]])
picture.arrow([ports[Source(body, 0)], ports[Target(end, 0)]])
picture.arrow([ports[Source(body, 0)], (490, 130), (490, 236), ports[Target(feedback, 0)]])
picture.arrow([ports[Source(feedback, 0)], (196, 236), (196, 142), ports[Target(body, 1)]])
for node, (x, y) in places.items():
    color = ORANGE if node == feedback else BLUE
    picture.box(x - half[node], y - 24, 2 * half[node], 48, fill=TINTS[color], stroke=color)
    picture.text(x, y + 5, names[node])

labels = {
    Source(start, 0): (144, 102),
    Target(body, 0): (250, 102),
    Target(body, 1): (250, 164),
    Source(body, 0): (432, 114),
    Target(end, 0): (564, 114),
    Target(feedback, 0): (442, 258),
    Source(feedback, 0): (238, 258),
}
for port, (x, y) in labels.items():
    earliest = list(tracker.frontier(port))
    color = ORANGE if port == HERE else BLUE if earliest else FAINT
    text = earliest[0] if earliest else "never"
    picture.box(x - 22, y - 12, 44, 20, stroke=color, radius=10)
    picture.text(x, y + 3, text, size=12, color=color, bold=bool(earliest))
picture.text(
    24,
    300,
    "At each port: the earliest time that the message could result in there.",
    anchor="start",
    size=13,
)
picture.save("could_result_in.svg")
