"""The picture of the Spark example: the most central modules, what they import of each other, and their ranks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import networkx
import pyarrow as pa
from matplotlib import patheffects
from matplotlib.figure import Figure

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
    graph = networkx.DiGraph()
    graph.add_nodes_from(top)
    pairs = zip(imports["source"].to_pylist(), imports["target"].to_pylist(), strict=True)
    graph.add_edges_from((source, target) for source, target in pairs if source in top and target in top)

    with mpl.rc_context({"font.family": "sans-serif", "font.size": 10}):
        figure = Figure(figsize=(15, 8.5), layout="constrained", facecolor="white")
        left, right = figure.subplots(1, 2, width_ratios=[2.4, 1])
        figure.suptitle(
            f"The most central of {len(rows):,} modules of Python's library", fontsize=17, fontweight="bold"
        )
        network(left, graph, top, colours)
        bars(right, rows[:BARS], colours)
        figure.savefig(path, dpi=110)


def colours_of(rows: list[dict[str, Any]]) -> dict[str, str]:
    """The standard library has one colour; the other packages have their own, as far as there are any."""
    packages = [row["package"] for row in rows]
    others = [package for package in dict.fromkeys(packages) if package not in sys.stdlib_module_names]
    colours = dict.fromkeys(packages, LIBRARY)
    for place, package in enumerate(others):
        colours[package] = COLOURS[min(place, len(COLOURS) - 1)]
    return colours


def network(axes: Any, graph: Any, top: dict[int, dict[str, Any]], colours: dict[str, str]) -> None:
    """The modules as discs whose area is their rank, and their imports of each other."""
    places = layout(graph, top)
    nodes = list(graph)
    greatest = max(top[node]["rank"] for node in nodes)
    sizes = {node: 120 + 2400 * top[node]["rank"] / greatest for node in nodes}
    networkx.draw_networkx_edges(
        graph,
        places,
        ax=axes,
        node_size=[sizes[node] for node in nodes],
        nodelist=nodes,
        edge_color=[colours[top[source]["package"]] for source, _ in graph.edges],
        alpha=0.25,
        width=0.9,
        arrowsize=9,
        connectionstyle="arc3,rad=0.12",
    )
    for node in nodes:
        row, (x, y) = top[node], places[node]
        axes.scatter(x, y, sizes[node], colours[row["package"]], edgecolors="white", linewidths=1.5, zorder=3)
        large = row["rank"] > 0.4 * greatest
        axes.annotate(
            row["module"],
            (x, y),
            (0, 0 if large else -(sizes[node] ** 0.5) / 2 - 3),
            textcoords="offset points",
            ha="center",
            va="center" if large else "top",
            fontsize=11 if large else 8.5,
            fontweight="bold" if large else "normal",
            zorder=4,
            path_effects=[patheffects.withStroke(linewidth=2.5, foreground="white")],
        )
    axes.set_title("An arrow leads from a module to one that it imports; areas are ranks", fontsize=11)
    axes.margins(0.08)
    axes.axis("off")


def layout(graph: Any, top: dict[int, dict[str, Any]]) -> dict[int, Any]:
    """Places that keep modules of one package together and all of them apart, the same in every run."""
    close = networkx.Graph()
    close.add_nodes_from(graph)
    for source, target in graph.edges:
        same = top[source]["package"] == top[target]["package"]
        close.add_edge(source, target, weight=3.0 if same else 1.0)
    places: dict[int, Any] = networkx.spring_layout(
        close, k=2.4 / max(len(close), 1) ** 0.5, iterations=400, seed=4, weight="weight"
    )
    return places


def bars(axes: Any, rows: list[dict[str, Any]], colours: dict[str, str]) -> None:
    """The ranks as bars, and by how many modules each is needed."""
    names = [row["module"] for row in rows]
    ranks = [row["rank"] for row in rows]
    axes.barh(names, ranks, color=[colours[row["package"]] for row in rows], height=0.7)
    for place, row in enumerate(rows):
        axes.text(
            row["rank"], place, f"  needed by {row['needed_by']:,}", va="center", fontsize=8.5, color="#555555"
        )
    axes.invert_yaxis()
    axes.set_xlim(0, 1.35 * max(ranks))
    axes.set_title("PageRank, and how many modules need it, directly or not", fontsize=11)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(left=False)
    axes.grid(axis="x", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    shown = {row["package"]: colours[row["package"]] for row in rows if colours[row["package"]] != LIBRARY}
    key = {"standard library": LIBRARY, **shown}
    handles = [mpl.patches.Patch(color=colour, label=label) for label, colour in key.items()]
    axes.legend(handles=handles, loc="lower right", frameon=False, fontsize=9)
