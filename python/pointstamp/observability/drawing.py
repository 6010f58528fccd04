"""Pictures of a dataflow's graph: Mermaid, DOT, and SVG for notebooks.

Names are shown verbatim: each form escapes its own special characters.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pointstamp.observability.layout import boxes, links, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pointstamp.observability.graph import Graph
    from pointstamp.observability.layout import Box

__all__ = ["to_dot", "to_mermaid", "to_svg"]

Address = tuple[int, ...]

MOVES = ("exchange", "broadcast")


def to_mermaid(graph: Graph, root: Address) -> str:
    """The graph of a scope as a flowchart of Mermaid."""
    lines = ["flowchart LR"]

    def scope(address: Address, indent: str) -> None:
        for child in _children(graph, address):
            name = _mermaid(graph.name(child))
            if child in graph.scopes:
                lines.append(f'{indent}subgraph {_id(child)}["{name}"]')
                scope(child, f"{indent}  ")
                lines.append(f"{indent}end")
            elif graph.operators[child].inputs:
                lines.append(f'{indent}{_id(child)}["{name}"]')
            else:
                lines.append(f'{indent}{_id(child)}(["{name}"])')

    scope(root, "  ")
    for source, target, pact in links(graph, root):
        arrow = f"== {pact} ==>" if pact in MOVES else "-.->" if pact == "watch" else "-->"
        lines.append(f"  {_id(source)} {arrow} {_id(target)}")
    return "\n".join(lines) + "\n"


def to_dot(graph: Graph, root: Address) -> str:
    """The graph of a scope in the language of Graphviz."""
    lines = [f'digraph "{_dot(graph.name(root))}" {{', "  rankdir=LR;", "  node [shape=box];"]

    def scope(address: Address, indent: str) -> None:
        for child in _children(graph, address):
            name = _dot(graph.name(child))
            if child in graph.scopes:
                lines.append(f"{indent}subgraph cluster_{_id(child)} {{")
                lines.append(f'{indent}  label="{name}";')
                scope(child, f"{indent}  ")
                lines.append(f"{indent}}}")
            else:
                shape = "" if graph.operators[child].inputs else ", shape=oval"
                lines.append(f'{indent}{_id(child)} [label="{name}"{shape}];')

    scope(root, "  ")
    for source, target, pact in links(graph, root):
        style = f' [label="{pact}", style=bold]' if pact in MOVES else ""
        style = " [style=dotted]" if pact == "watch" else style
        lines.append(f"  {_id(source)} -> {_id(target)}{style};")
    return "\n".join([*lines, "}"]) + "\n"


def to_svg(graph: Graph, root: Address) -> str:
    """The graph of a scope as a picture that stands alone, in colours for light and dark."""
    placed = boxes(graph, root)
    whole = placed[root]
    size = f'viewBox="0 0 {whole.width:.0f} {whole.height:.0f}" width="{whole.width:.0f}"'
    style = "max-width:100%;height:auto;font:12px system-ui,sans-serif;color:currentColor"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{style}">',
        '<g fill="none" stroke="currentColor">',
    ]
    for address in graph.scopes:
        if address[: len(root)] == root:
            box = placed[address]
            parts.append(
                f'<rect x="{box.x + 1:.0f}" y="{box.y + 1:.0f}" width="{box.width - 2:.0f}" '
                f'height="{box.height - 2:.0f}" rx="8" stroke-opacity=".35" fill="currentColor" '
                'fill-opacity=".04"/>'
            )
    for source, target, pact in links(graph, root):
        parts.append(_curve(placed[source], placed[target], pact))
    parts.append("</g>")
    for address, box in placed.items():
        name = graph.name(address)
        if address in graph.scopes:
            parts.append(
                f'<text x="{box.x + 12:.0f}" y="{box.y + 20:.0f}" fill="currentColor" fill-opacity=".65">'
                f"{escape(shown(name))}</text>"
            )
            continue
        made, fed = graph.operators[address].made, graph.operators[address].inputs
        middle, centre = box.x + box.width / 2, box.y + box.height / 2
        title = f"{name} {list(address)}" + (f"\n{made}" if made else "")
        parts.append(
            f'<g><title>{escape(title)}</title><rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" '
            f'height="{box.height:.0f}" rx="{5 if fed else box.height / 2:.0f}" '
            'fill="#3b82f6" fill-opacity=".14" stroke="#3b82f6"/>'
            f'<text x="{middle:.0f}" y="{centre + 4:.0f}" text-anchor="middle" '
            f'fill="currentColor">{escape(shown(name))}</text></g>'
        )
    parts.append("</svg>")
    return "".join(parts)


def _curve(source: Box, target: Box, pact: str) -> str:
    x, y = source.x + source.width, source.y + source.height / 2
    u, v = target.x, target.y + target.height / 2
    bend = max(24.0, abs(u - x) / 2)
    width = "2" if pact in MOVES else "1"
    dashes = ' stroke-dasharray="3 3"' if pact == "watch" else ""
    return (
        f'<path d="M{x:.0f},{y:.0f} C{x + bend:.0f},{y:.0f} {u - bend:.0f},{v:.0f} {u:.0f},{v:.0f}" '
        f'stroke-opacity=".6" stroke-width="{width}"{dashes}/>'
    )


def _children(graph: Graph, scope: Address) -> Iterator[Address]:
    for address in sorted({*graph.operators, *graph.scopes}):
        if len(address) == len(scope) + 1 and address[: len(scope)] == scope:
            yield address


def _id(address: Address) -> str:
    return "n" + "_".join(map(str, address))


def _mermaid(name: str) -> str:
    """A name between the quotes of Mermaid, which takes entities of HTML."""
    plain = " _-.,:+*/()="
    shown = " ".join(name.split())
    return "".join(char if char.isalnum() or char in plain else f"#{ord(char)};" for char in shown)


def _dot(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
