"""The floors of a crate, lowest first: files and folders. A file uses its own floor and those below."""

from collections.abc import Iterable, Mapping, Sequence, Set

Floors = Sequence[Set[str]]


def violations(graph: Mapping[str, Iterable[str]], floors: Floors) -> list[str]:
    """Arrows that point up, files on no floor, and names that are listed and not there.

    Args:
        graph: What each file names of the others, as paths.
        floors: Of each floor, its files (without their ending) and folders. Of several that a path lies in,
            the longest counts: a file may lie on another floor than the rest of its folder.
    """
    said = []
    used = set()
    level = {name: n for n, floor in enumerate(floors, start=1) for name in floor}
    placed = {}
    for path in sorted(graph):
        names = [name for name in _around(path) if name in level]
        if names:
            used.add(names[0])
            placed[path] = level[names[0]]
        else:
            said.append(f"{path} is on no floor: say in tools/layers/known.py on which")
    said.extend(
        f"{source} (floor {placed[source]}) uses {target} (floor {placed[target]}), which is above it"
        for source, targets in sorted(graph.items())
        for target in sorted(targets)
        if source in placed and target in placed and placed[target] > placed[source]
    )
    said.extend(
        f"{name} has no files: take it off the list in tools/layers/known.py"
        for name in sorted(level.keys() - used)
    )
    return said


def _around(path: str) -> list[str]:
    """A file without its ending, and the folders around it, innermost first."""
    parts = path.rpartition(".")[0].split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]
