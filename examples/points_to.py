"""Points-to analysis in 20 lines: which objects may a variable of a program refer to?

Andersen's analysis is four rules, of which each says what follows from what is known. A compiler runs it over
a whole program; here it is kept up to date while the program is edited, one statement at a time.

    python examples/points_to.py
"""

from typing import Any

import pointstamp as ps

Pairs = ps.Collection[tuple[str, str]]


def points_to(news: Pairs, copies: Pairs, loads: Pairs, stores: Pairs) -> Pairs:
    """Pairs ``(variable, object)`` of each variable of a program and the objects that it may refer to.

    ``x = new o``, ``x = y``, ``x = *y`` and ``*x = y`` are pairs of the left and the right side.
    """
    with news.scope.iterative() as loop:
        variable = loop.variable(news.enter(loop))
        known = variable.collection.arrange()  # variable -> object
        # x = y: what y refers to, x refers to.
        copied = known.join(copies.enter(loop).map(turned), lambda y, thing, x: (x, thing))
        # *x = y: what y refers to, the objects that x refers to hold.
        stored = known.join(stores.enter(loop), lambda x, thing, y: (y, thing))
        held = stored.join(known, lambda y, box, thing: (box, thing))
        # x = *y: what the objects that y refers to hold, x refers to.
        loaded = known.join(loads.enter(loop).map(turned), lambda y, box, x: (box, x))
        read = loaded.join(held, lambda box, x, thing: (x, thing))
        result = news.enter(loop).concat(copied, read).distinct()
        variable.set(result)
        return result.leave()


def turned(pair: tuple[str, str]) -> tuple[str, str]:
    """The pair the other way round."""
    return pair[1], pair[0]


KINDS = ["new", "copy", "load", "store"]
PROGRAM = [
    ("new", ("list", "LIST")),
    ("new", ("item", "ITEM")),
    ("copy", ("alias", "list")),
    ("store", ("alias", "item")),  # *alias = item
    ("load", ("first", "list")),  # first = *list
    ("copy", ("result", "first")),
]


def main(worker: ps.Worker) -> None:
    """Analyses the program, then edits it."""
    facts: dict[Any, int] = {}

    def note(fact: tuple[str, str], _: Any, diff: int) -> None:
        facts[fact] = facts.get(fact, 0) + diff

    with worker.dataflow() as scope:
        inputs, collections = zip(*(scope.new_collection() for _ in KINDS), strict=True)
        probe = points_to(*collections).inspect(note).probe()

    time = 0

    def edit(changes: list[tuple[str, tuple[str, str]]], diff: int) -> None:
        nonlocal time
        for kind, statement in changes:
            inputs[KINDS.index(kind)].update(statement, diff)
        time += 1
        for handle in inputs:
            handle.advance_to(time)
        worker.step_while(lambda: probe.less_than(time))
        print(", ".join(f"{x} -> {thing}" for (x, thing), there in sorted(facts.items()) if there))

    edit(PROGRAM, 1)
    print("without 'alias = list':")
    edit([("copy", ("alias", "list"))], -1)
    print("with 'alias = list' again, and '*list = list':")
    edit([("copy", ("alias", "list")), ("store", ("list", "list"))], 1)
    for handle in inputs:
        handle.close()


if __name__ == "__main__":
    ps.execute(main)
