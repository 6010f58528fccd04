"""The names and lines of operators that one call of the program makes in several steps."""

import pointstamp as ps
from pointstamp import graphs
from pointstamp.observability.graph import Graph


def graph_of_strong_components() -> Graph:
    def main(worker: ps.Worker) -> Graph:
        with worker.dataflow() as scope:
            edges = scope.collection([(1, 2), (2, 1)])
            graphs.strongly_connected_components(edges).capture(name="kept")
        return scope.graph

    return ps.execute(main)[0]


def test_the_title_of_a_function_is_once_in_front_of_a_name() -> None:
    title = "graphs.strongly_connected_components: "
    names = [operator.name for operator in graph_of_strong_components().operators.values()]
    assert sum(name.startswith(title) for name in names) > 20
    assert not [name for name in names if title in name.removeprefix(title)]


def test_an_operator_deep_within_a_function_has_the_line_that_calls_it() -> None:
    lines = {operator.made for operator in graph_of_strong_components().operators.values()}
    assert len(lines) == 2  # that of the collection, and that of the function and the capture
    assert all("test_names.py:" in line for line in lines)
