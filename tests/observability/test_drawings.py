"""Pictures of a dataflow: their parts, their layout, and escaped names."""

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.observability.graph import Graph
from pointstamp.observability.layout import boxes, links

NASTY = "\"]; <script>alert('x')</script> & end\n%%"


def nested(worker: ps.Worker) -> Any:
    with worker.dataflow("outer") as scope:
        start = scope.to_stream([5])
        with scope.iterative("turns") as inner:
            handle, back = inner.loop_variable()
            merged = start.enter(inner).concat(back)
            with inner.region("deep") as deep:
                lower = merged.enter(deep).map(lambda x: x - 1, name=NASTY).leave()
            again = lower.exchange(lambda x: x).filter(lambda x: x > 0)
            again.connect_loop(handle)
        lower.leave().inspect(str)
        with pytest.raises(ps.GraphError, match="drawn once its"):
            scope.to_dot()
        assert scope._repr_html_() is None
    return scope, inner


def drawn() -> Any:
    result = []

    def main(worker: ps.Worker) -> None:
        scope, inner = nested(worker)
        result.append(
            (scope.graph, scope.to_mermaid(), scope.to_dot(), scope._repr_html_(), inner.to_mermaid())
        )

    ps.execute(main)
    return result[0]


def test_every_operator_and_edge_is_in_each_form() -> None:
    graph, mermaid, dot, svg, inner = drawn()
    names = {operator.name for operator in graph.operators.values()}
    assert {"to_stream", NASTY, "exchange", "filter", "feedback", "inspect"} <= names
    assert {scope.name for scope in graph.scopes.values()} == {"outer", "turns", "deep"}
    arrows = links(graph, (0,))
    for name in names - {NASTY}:
        assert f'"{name}"' in mermaid
        assert f'label="{name}"' in dot
        assert f">{name}</text>" in svg
    assert mermaid.count("-->") + mermaid.count("==>") == len(arrows) == dot.count(" -> ")
    assert mermaid.count("== exchange ==>") == 1
    assert '"turns"' in mermaid
    assert '"turns"' not in inner  # it is the whole picture
    assert "to_stream" not in inner


def test_names_are_shown_as_they_are() -> None:
    _, mermaid, dot, svg, _ = drawn()
    assert "<script>" not in mermaid
    assert "<script>" not in svg
    shown = ElementTree.fromstring(svg)
    titles = [title.text for title in shown.iter("{http://www.w3.org/2000/svg}title")]
    assert any(title is not None and title.startswith(NASTY) for title in titles)
    assert '\\"]; <script>' in dot
    assert not re.search(r'(?<!\\)"\]', dot.replace('"];', ""))


def test_boxes_hold_what_is_in_them_and_do_not_overlap() -> None:
    graph, *_ = drawn()
    placed = boxes(graph, (0,))
    assert placed.keys() == {*graph.operators, *graph.scopes}
    for address, box in placed.items():
        outer = placed.get(address[:-1])
        if outer is not None:
            assert outer.x <= box.x <= box.x + box.width <= outer.x + outer.width
            assert outer.y <= box.y <= box.y + box.height <= outer.y + outer.height
        for other, beside in placed.items():
            if other != address and other[:-1] == address[:-1]:
                apart_x = box.x + box.width <= beside.x or beside.x + beside.width <= box.x
                apart_y = box.y + box.height <= beside.y or beside.y + beside.height <= box.y
                assert apart_x or apart_y


def test_the_graph_is_the_same_after_json_and_knows_the_programs_lines() -> None:
    import json

    graph, *_ = drawn()
    again = Graph.from_data(json.loads(json.dumps(graph.to_data())))
    assert again.to_data() == graph.to_data()
    made = next(one.made for one in graph.operators.values() if one.name == NASTY)
    assert made.endswith(f"test_drawings.py:{nested.__code__.co_firstlineno + 7}")
