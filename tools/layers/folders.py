"""The layers of a crate or package: folders, each of which may use the folders that are listed for it."""

from collections.abc import Iterable, Mapping, Set


def violations(graph: Mapping[str, Iterable[str]], layers: Mapping[str, Set[str]]) -> list[str]:
    """Returns the uses that the list forbids, and the folders that are listed and not there.

    Args:
        graph: The files that each file names, as paths.
        layers: For each folder (or file without its ending), the folders that it may use besides itself.
            Files in none of them are free to use, and to be used by, any.
    """
    said = []
    seen = set()
    for source, targets in sorted(graph.items()):
        folder = _layer(source, layers)
        seen.add(folder)
        for target in sorted(targets):
            other = _layer(target, layers)
            if folder is not None and other is not None and other != folder and other not in layers[folder]:
                said.append(f"{source} uses {target}: {folder}/ may not know {other}/")
    said.extend(
        f"{folder}/ has no files: take it off the list in tools/layers/rules.py"
        for folder in sorted(set(layers) - seen)
    )
    return said


def _layer(path: str, layers: Mapping[str, Set[str]]) -> str | None:
    first = path.partition("/")[0].partition(".")[0]
    return first if first in layers else None
