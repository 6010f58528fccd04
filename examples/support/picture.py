"""The picture of the Spark example: the most central modules, their imports, and their ranks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path as Shape

Colours = dict[str, str]

LIBRARY = "#4c78a8"
COLOURS = ["#e45756", "#54a24b", "#f2a900", "#9d67ae", "#72b7b2", "#b8744f", "#ff7fbf", "#7f7f7f"]
SHOWN = 40
BARS = 20


def draw(rows: list[dict[str, Any]], imports: pa.Table, path: Path) -> None:
    """Writes the picture.

    Args:
        rows: The modules, by falling rank.
        imports: The graph, as columns `source` and `target` of their nodes.
        path: Where to; its suffix says in which format.
    """
    top = {row["node"]: row for row in rows[:SHOWN]}
    colours = colours_of(list(top.values()))
    pairs = zip(imports["source"].to_pylist(), imports["target"].to_pylist(), strict=True)
    links = [(source, target) for source, target in pairs if source in top and target in top]

    with mpl.rc_context({"font.family": "sans-serif", "font.size": 10}):
        figure = Figure(
            figsize=(16, 9.4), layout=ConstrainedLayoutEngine(w_pad=0.2, h_pad=0.2), facecolor="white"
        )
        left, right = figure.subplots(1, 2, width_ratios=[2, 1])
        figure.suptitle(
            f"The most central of {len(rows):,} modules of Python's library", fontsize=18, fontweight="bold"
        )
        network(left, links, top, colours)
        bars(right, rows[:BARS], colours)
        figure.savefig(path, dpi=110)


def colours_of(rows: list[dict[str, Any]]) -> Colours:
    """The standard library has one colour; the other packages have their own, as far as there are any."""
    packages = [row["package"] for row in rows]
    others = [package for package in dict.fromkeys(packages) if package not in sys.stdlib_module_names]
    own = {package: COLOURS[min(place, len(COLOURS) - 1)] for place, package in enumerate(others)}
    return {**{package: LIBRARY for package in packages if package not in own}, **own}


def network(
    axes: Any, links: list[tuple[int, int]], top: dict[int, dict[str, Any]], colours: Colours
) -> None:
    """The modules around a circle, those of a package side by side, and their imports of each other."""
    order = list(dict.fromkeys(colours.values()))
    nodes = sorted(top, key=lambda node: (order.index(colours[top[node]["package"]]), top[node]["module"]))
    angles = dict(zip(nodes, np.pi / 2 - 2 * np.pi * np.arange(len(nodes)) / len(nodes), strict=True))
    places = {node: np.array([np.cos(angle), np.sin(angle)]) for node, angle in angles.items()}
    for source, target in links:
        # The further two modules are apart, the nearer to the middle the line between them.
        middle = (places[source] + places[target]) * 0.18
        curve = Shape([places[source], middle, places[target]], [Shape.MOVETO, Shape.CURVE3, Shape.CURVE3])
        colour = colours[top[target]["package"]]
        axes.add_patch(PathPatch(curve, facecolor="none", edgecolor=colour, alpha=0.3, linewidth=1.1))
    greatest = max(row["rank"] for row in top.values())
    for node in nodes:
        row, (x, y), angle = top[node], places[node], np.degrees(angles[node])
        size = 60 + 1500 * row["rank"] / greatest
        axes.scatter(x, y, size, colours[row["package"]], edgecolors="white", linewidths=1.5, zorder=3)
        turned = x < -1e-9
        axes.annotate(
            row["module"],
            (x, y),
            (np.array([x, y]) * (size**0.5 / 2 + 5)).tolist(),
            textcoords="offset points",
            rotation=angle + 180 if turned else angle,
            rotation_mode="anchor",
            ha="right" if turned else "left",
            va="center",
            fontsize=9 + 5 * (row["rank"] / greatest) ** 0.7,
        )
    note = "Curves: imports, in the colour of what is imported. The larger a disc, the higher the rank."
    axes.text(0, -1.62, note, fontsize=11, color="#555555", ha="center", va="bottom")
    axes.set_aspect("equal")
    axes.set_xlim(-1.55, 1.55)
    axes.set_ylim(-1.64, 1.56)
    axes.axis("off")


def bars(axes: Any, rows: list[dict[str, Any]], colours: Colours) -> None:
    """The ranks as bars, and the number of modules that need each."""
    names = [row["module"] for row in rows]
    ranks = [row["rank"] for row in rows]
    axes.barh(names, ranks, color=[colours[row["package"]] for row in rows], height=0.7)
    for place, row in enumerate(rows):
        axes.text(
            row["rank"],
            place,
            f"  needed by {row['needed_by']:,}",
            va="center",
            fontsize=8.5,
            color="#555555",
        )
    axes.invert_yaxis()
    axes.set_xlim(0, 1.35 * max(ranks))
    axes.set_title("PageRank, and how many modules need it", fontsize=11, color="#555555")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    axes.grid(axis="x", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    others = {package: colour for package, colour in colours.items() if colour != LIBRARY}
    key = {"standard library": LIBRARY, **others}
    handles = [Patch(color=colour, label=label) for label, colour in key.items()]
    axes.legend(handles=handles, loc="lower right", frameon=False, fontsize=9)
