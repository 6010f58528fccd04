"""The rooms of a crate or package: folders, each of which may use the rooms that are listed for it."""

from collections.abc import Iterable, Mapping, Set


def violations(graph: Mapping[str, Iterable[str]], rooms: Mapping[str, Set[str]]) -> list[str]:
    """Arrows from a room to one that it may not use, and rooms that are listed and not there.

    Args:
        graph: What each file names of the others, as paths.
        rooms: For each room (a folder, or a file without its ending), the rooms that it may use besides.
            Files in no room are free to use, and to be used by, any.
    """
    said = []
    seen = set()
    for source, targets in sorted(graph.items()):
        room = _room(source, rooms)
        seen.add(room)
        for target in sorted(targets):
            other = _room(target, rooms)
            if room is not None and other is not None and other != room and other not in rooms[room]:
                said.append(f"{source} uses {target}: {room}/ may not know {other}/")
    said.extend(
        f"{room}/ has no files: take it off the list in tools/layers/known.py"
        for room in sorted(set(rooms) - seen)
    )
    return said


def _room(path: str, rooms: Mapping[str, Set[str]]) -> str | None:
    first = path.partition("/")[0].partition(".")[0]
    return first if first in rooms else None
