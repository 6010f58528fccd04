"""Drawing of the pictures: SVG as text, identical whenever it is written.

A picture has a light ground of its own, so that it can be read on a dark page too. Coordinates are in pixels.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.sax.saxutils import escape

INK = "#1f2933"
FAINT = "#9aa5b1"
PALE = "#e4e7eb"
GROUND = "#ffffff"
BLUE = "#2b6cb0"
ORANGE = "#c05621"
GREEN = "#2f855a"
TINTS = {BLUE: "#e3effa", ORANGE: "#fdeee3", GREEN: "#e2f4ea", FAINT: "#f5f7fa"}

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def number(x: float) -> str:
    """A coordinate, without the noise of binary fractions."""
    return f"{round(x, 2):g}"


class Picture:
    """An SVG picture that is drawn from back to front."""

    def __init__(self, width: float, height: float, title: str) -> None:
        size = f"{number(width)} {number(height)}"
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {size}" width="{width:g}">',
            f'<title>{escape(title)}</title><g font-family="{FONT}">',
        ]
        self.box(0, 0, width, height, fill=GROUND, stroke="none", radius=8)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = GROUND,
        stroke: str = INK,
        radius: float = 5,
    ) -> None:
        """A rectangle with round corners."""
        self._parts.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}" '
            f'rx="{number(radius)}" fill="{fill}" stroke="{stroke}" stroke-width="1.5"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        text: object,
        *,
        anchor: str = "middle",
        color: str = INK,
        size: float = 14,
        bold: bool = False,
    ) -> None:
        """Text on a baseline at `y`."""
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}" fill="{color}" '
            f'font-size="{number(size)}"{weight}>{escape(str(text))}</text>'
        )

    def line(
        self, points: list[tuple[float, float]], *, color: str = INK, width: float = 1.5, dashed: bool = False
    ) -> None:
        """A line through points."""
        path = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self._parts.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{number(width)}" '
            f'stroke-linejoin="round"{dashes}/>'
        )

    def dot(self, x: float, y: float, radius: float, color: str) -> None:
        """A filled circle."""
        self._parts.append(f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" fill="{color}"/>')

    def arrow(self, points: list[tuple[float, float]], *, color: str = INK, dashed: bool = False) -> None:
        """A line through points with a head at the last."""
        (x0, y0), (x1, y1) = points[-2:]
        length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
        dx, dy = (x1 - x0) / length, (y1 - y0) / length
        self.line([*points[:-1], (x1 - 6 * dx, y1 - 6 * dy)], color=color, dashed=dashed)
        head = [
            (x1, y1),
            (x1 - 9 * dx - 4.5 * dy, y1 - 9 * dy + 4.5 * dx),
            (x1 - 9 * dx + 4.5 * dy, y1 - 9 * dy - 4.5 * dx),
        ]
        path = " ".join(f"{number(x)},{number(y)}" for x, y in head)
        self._parts.append(f'<polygon points="{path}" fill="{color}"/>')

    def save(self, name: str) -> None:
        """Writes the picture to the folder that the command line names, or beside this script."""
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
        (folder / name).write_text("\n".join([*self._parts, "</g></svg>", ""]), encoding="utf-8")
