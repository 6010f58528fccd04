"""A build system's view of the standard library: what each module needs, and what an edit makes stale.

The imports are read from the library's own source. The dataflow keeps three things right while imports are
added and removed: all that a module needs, directly or not; the circles of modules that need each other; and
what has to be checked again when a module is edited, for the module that is being edited. Each edit costs
work for what it changes and not for the library. The example compares the results with a search after every
few edits.

    python examples/import_graph.py --modules 150 --edits 20
"""

import argparse
import ast
import random
import sysconfig
from collections import Counter
from pathlib import Path
from typing import Any

import pointstamp as ps
from pointstamp import graphs

Import = tuple[str, str]


def imports(limit: int) -> set[Import]:
    """Pairs ``(module, module that it imports)`` of the standard library's top-level modules."""
    library = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(library.glob("*.py"))[:limit]
    names = {file.stem for file in files}
    found = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8", errors="replace"))):
            if isinstance(node, ast.Import):
                needed = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                needed = {node.module.partition(".")[0]}
            else:
                continue
            found |= {(file.stem, name) for name in needed & names if name != file.stem}
    return found


def build(needs: ps.Collection[Import], edited: ps.Collection[str]) -> tuple[Any, Any, Any]:
    """The needs of each module, the circles, and the stale modules, as collections."""

    def further(inner: ps.Scope, known: ps.Collection[Import]) -> ps.Collection[Import]:
        over = known.map(lambda pair: (pair[1], pair[0]))
        longer = over.join(needs.enter(inner), lambda _, module, needed: (module, needed))
        return longer.concat(needs.enter(inner)).distinct()

    closure = needs.iterate(further)
    components = graphs.strongly_connected_components(needs)
    sizes = components.map(lambda pair: (pair[1], pair[0])).map_groups(
        lambda _, modules: [tuple(name for name, _ in modules)] if len(modules) > 1 else []
    )
    circles = sizes.map(lambda pair: pair[1])
    dependents = closure.map(lambda pair: (pair[1], pair[0]))
    stale = (
        dependents.join(edited.map((ps.record, None)), how="semi")
        .map(lambda pair: pair[1])
        .concat(edited)
        .distinct()
    )
    return closure, circles, stale


def needed_by(there: set[Import], module: str) -> set[str]:
    """All that a module needs, by a search."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        current = waiting.pop()
        new = {needed for one, needed in there if one == current} - found
        found |= new
        waiting.extend(new)
    return found


def main(worker: ps.Worker, arguments: argparse.Namespace) -> None:
    """Reads the library, and edits it."""
    chance = random.Random(arguments.seed)
    there = imports(arguments.modules)
    state: dict[str, Counter[Any]] = {"closure": Counter(), "circles": Counter(), "stale": Counter()}
    changes = Counter[str]()

    def note(which: str) -> Any:
        def noted(record: Any, _: Any, diff: int) -> None:
            changes[which] += 1
            state[which][record] += diff
            if not state[which][record]:
                del state[which][record]

        return noted

    with worker.dataflow() as scope:
        source, needs = scope.new_collection()
        editor, edited = scope.new_collection()
        results = zip(state, build(needs, edited), strict=True)
        probes = [result.consolidate().inspect(note(which)).probe() for which, result in results]

    def settle(time: int) -> None:
        source.advance_to(time)
        editor.advance_to(time)
        worker.step_while(lambda: any(probe.less_than(time) for probe in probes))

    def check() -> None:
        modules = sorted({module for pair in there for module in pair})
        wanted = {module: needed_by(there, module) for module in modules}
        assert set(state["closure"]) == {(one, other) for one in modules for other in wanted[one]}
        circles = {
            tuple(m for m in modules if m == n or (m in wanted[n] and n in wanted[m])) for n in modules
        }
        assert set(state["circles"]) == {circle for circle in circles if len(circle) > 1}
        assert set(state["stale"]) == {edit} | {one for one in modules if edit in wanted[one]}

    source.insert_many(there)
    edit = chance.choice(sorted(there))[1]
    editor.insert(edit)
    settle(1)
    check()
    largest = max(state["circles"], key=len, default=())
    print(
        f"{len(there)} imports: {len(state['closure'])} needs, {len(state['circles'])} circles, "
        f"one of {len(largest)}"
    )
    changes.clear()
    for time in range(1, arguments.edits + 1):
        gone = chance.choice(sorted(there))
        come = (gone[0], chance.choice(sorted(there))[1])
        there.discard(gone)
        source.remove(gone)
        if come not in there and come[0] != come[1]:
            there.add(come)
            source.insert(come)
        editor.remove(edit)
        edit = gone[0]
        editor.insert(edit)
        settle(time + 1)
        if time % 5 == 0:
            check()
    source.close()
    editor.close()
    print(
        f"{arguments.edits} edits: {dict(changes)} changes; an edit of '{edit}' makes "
        f"{len(state['stale'])} modules stale"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--modules", type=int, default=150, help="how many modules, in the order of names")
    parser.add_argument("--edits", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    ps.execute(lambda worker: main(worker, chosen))
