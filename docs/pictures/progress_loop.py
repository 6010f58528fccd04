"""Draws progress_loop.svg: a dataflow that limits itself by a loop that carries progress and no records."""

from drawing import BLUE, FAINT, INK, ORANGE, TINTS, Picture

picture = Picture(760, 218, "A loop of progress")
picture.text(24, 34, "Records go once from left to right; progress comes around", anchor="start", bold=True)


def node(x: float, y: float, width: float, name: str, color: str) -> None:
    """An operator."""
    picture.box(x, y, width, 40, fill=TINTS[color], stroke=color)
    picture.text(x + width / 2, y + 25, name, size=13)


node(24, 70, 96, "to_stream", FAINT)
node(190, 70, 96, "buffer", ORANGE)
node(356, 70, 96, "flat_map", BLUE)
node(502, 70, 96, "inspect", BLUE)
node(648, 70, 96, "filter", BLUE)
node(356, 150, 96, "feedback", ORANGE)
picture.arrow([(120, 84), (190, 84)])
picture.arrow([(286, 90), (356, 90)])
picture.arrow([(452, 90), (502, 90)])
picture.arrow([(598, 90), (648, 90)])
picture.arrow([(696, 110), (696, 170), (452, 170)], color=ORANGE, dashed=True)
picture.arrow([(356, 170), (150, 170), (150, 100), (190, 100)], color=ORANGE, dashed=True)
picture.text(155, 76, "work", size=12, color=INK)
picture.text(144, 140, "done", anchor="end", size=12, color=ORANGE)
picture.text(574, 162, "no records, only a frontier", size=12, color=ORANGE)
picture.text(404, 206, "adds 1 to each time", size=12, color=ORANGE)
picture.save("progress_loop.svg")
