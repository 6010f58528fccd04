"""Reading a capture from where another reader of it was."""

from pathlib import Path

import pytest

import pointstamp as ps
from pointstamp.capture.events import EventReader, Messages, Position


def write(path: Path) -> None:
    def build(scope: ps.Scope) -> None:
        numbers = scope.to_stream(range(20)).delay(lambda x, _: x // 4)
        numbers.capture_into(ps.EventWriter(path))

    ps.example(build)


def read(reader: EventReader) -> list[tuple[object, list[int]]]:
    return [(event.time, event.data) for event in reader if isinstance(event, Messages)]


def positions(path: Path) -> list[Position]:
    """The position after each event."""
    reader = EventReader(path, allow_pickle=True)
    found = [reader.position]
    while not isinstance(reader._feed.next(False), bool):
        found.append(reader.position)
    return found


def test_from_each_position_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "numbers.events"
    write(path)
    whole = read(EventReader(path, allow_pickle=True))
    assert sorted(x for _, data in whole for x in data) == list(range(20))
    places = positions(path)
    assert len(places) > 6
    lengths = []
    for place in places:
        reader = EventReader(path, allow_pickle=True)
        reader.seek(place)
        rest = read(reader)
        assert rest == whole[len(whole) - len(rest) :]
        assert reader.frontier == []
        lengths.append(len(rest))
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-1] == 0


def test_a_position_that_the_file_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "numbers.events"
    write(path)
    place = positions(path)[-1]
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-16])
    with pytest.raises(ps.CodecError, match=f"damaged at byte {size}: .* now ends at byte {size - 16}"):
        EventReader(path, allow_pickle=True).seek(place)
    amid = EventReader(path, allow_pickle=True)
    middle = positions(path)[3]
    amid.seek(middle._replace(offset=middle.offset + 16, mark=None))
    with pytest.raises(ps.CodecError, match="damaged at byte"):
        read(amid)


def test_a_position_keeps_what_was_promised(tmp_path: Path) -> None:
    path = tmp_path / "numbers.events"
    write(path)
    places = positions(path)
    reader = EventReader(path, allow_pickle=True)
    reader.seek(places[2]._replace(counts=[(9, 1)]))  # as if all before 9 were over
    with pytest.raises(ps.CodecError, match="which the events before it have excluded"):
        read(reader)
