"""A capture that is written anew while it is read: the next bytes are of another, and are refused."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pointstamp as ps
from pointstamp.capture.events import EventReader, Messages


def write(path: Path, day: int, count: int, *, overwrite: bool = False) -> None:
    """A capture of a day's records; those of two days take as many bytes."""

    def build(scope: ps.Scope) -> None:
        numbers = scope.to_stream([(n, f"day {day}") for n in range(count)]).delay(
            lambda record, _: record[0]
        )
        numbers.capture_into(ps.EventWriter(path, overwrite=overwrite))

    ps.example(build)


def cut(path: Path) -> bytes:
    """Takes the last event of a capture away, as of one whose program died."""
    whole = path.read_bytes()
    path.write_bytes(whole[:-48])
    return whole


def days(events: Iterator[object]) -> Iterator[list[str]]:
    return ([day for _, day in event.data] for event in events if isinstance(event, Messages))


def in_place(path: Path) -> None:
    write(path, 2, 300, overwrite=True)


def shorter(path: Path) -> None:
    write(path, 2, 1, overwrite=True)


def emptied(path: Path) -> None:
    ps.EventWriter(path, overwrite=True)


def replaced(path: Path) -> None:
    write(path.with_name("new"), 2, 300)
    os.replace(path.with_name("new"), path)


WAYS: dict[str, tuple[Callable[[Path], None], str]] = {
    "written anew": (in_place, "it was written anew: what was read of it stands there no more"),
    "shorter": (shorter, r"it was shortened: it has \d+ bytes, and \d+ were read"),
    "emptied": (emptied, r"it was shortened: it has 0 bytes, and \d+ were read"),
    "replaced": (
        replaced,
        "it was replaced: the name is another file's, and the capture that was read had not",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_reader_that_follows_refuses_what_is_another_capture(way: str, tmp_path: Path) -> None:
    path = tmp_path / "words.events"
    write(path, 1, 200)
    cut(path)
    reader = EventReader(path, allow_pickle=True, follow=True)
    read = days(iter(reader))
    got = [next(read) for _ in range(200)]
    again, says = WAYS[way]
    again(path)
    with pytest.raises(ps.CodecError, match=rf"words\.events: {says}.*writes to a path of its own"):
        got.extend(read)
    assert got == [["day 1"]] * 200
    assert list(reader) == []


def test_a_replay_that_follows_refuses_what_is_another_capture(tmp_path: Path) -> None:
    path = tmp_path / "words.events"
    write(path, 1, 200)
    cut(path)
    seen: list[str] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            reader = EventReader(path, allow_pickle=True, follow=True)
            scope.replay([reader]).inspect(lambda record: seen.append(record[1]))
        worker.step_while(lambda: len(seen) < 200)
        write_elsewhere(path)
        worker.run()

    def write_elsewhere(path: Path) -> None:
        write(path.with_name("new"), 2, 300)
        path.write_bytes(path.with_name("new").read_bytes())

    with pytest.raises(ps.CodecError, match=r"words\.events: it was written anew"):
        ps.execute(main)
    assert seen == ["day 1"] * 200


def test_a_large_event_of_two_captures_is_refused_as_that(tmp_path: Path) -> None:
    path = tmp_path / "words.events"
    ps.example(lambda scope: scope.to_stream(["a" * 1_000_000]).capture_into(ps.EventWriter(path)))
    whole = path.read_bytes()
    path.write_bytes(whole[:500_000])
    reader = EventReader(path, allow_pickle=True, follow=True)
    reader._begin()
    while reader._feed.next(True) is not None:
        pass  # up to the middle of the event
    path.write_bytes(whole.replace(b"a" * 1000, b"b" * 1000))
    with pytest.raises(ps.CodecError, match=r"words\.events: it was written anew"):
        list(reader)


def test_a_file_that_grows_and_one_without_a_name_are_read_on(tmp_path: Path) -> None:
    path = tmp_path / "words.events"
    write(path, 1, 200)
    whole = cut(path)
    reader = EventReader(path, allow_pickle=True, follow=True)
    read = days(iter(reader))
    got = [next(read) for _ in range(200)]
    os.rename(path, path.with_name("old"))
    with open(path.with_name("old"), "ab") as file:
        file.write(whole[-48:])
    got.extend(read)
    assert got == [["day 1"]] * 200
    assert reader.frontier == []


def test_a_position_of_what_was_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "words.events"
    write(path, 1, 20)
    reader = EventReader(path, allow_pickle=True)
    places = []
    while not isinstance(reader._feed.next(False), bool):
        places.append(reader.position)
    places.append(reader.position)  # of one that was let go of
    assert places[-1] == places[-2]
    for place in places:
        EventReader(path, allow_pickle=True).seek(place)
    write(path, 2, 20, overwrite=True)
    for place in places[2:]:  # two captures begin alike
        with pytest.raises(
            ps.CodecError, match=rf"written anew: what was read up to byte {place.offset} stands"
        ):
            EventReader(path, allow_pickle=True).seek(place)
        EventReader(path, allow_pickle=True).seek(place._replace(mark=None))
