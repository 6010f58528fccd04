"""Draws scopes.svg: the time of one record outside of scopes, in a region, in a loop, in a scope inside."""

from drawing import BLUE, FAINT, GREEN, INK, ORANGE, TINTS, Picture

import pointstamp as ps

PLACES = ("outside", "region", "iterative", "scoped", "left")


def build(scope):
    """A record at time 5 on its way through scopes; returns its time in each."""
    times = {}

    def keep(place):
        return lambda record, time: times.setdefault(place, time)

    records = scope.to_stream(["record"]).delay(lambda record, time: 5)
    records.inspect_time(keep("outside"))
    with scope.region() as region:
        records.enter(region).inspect_time(keep("region"))
    with scope.iterative() as loop:
        inside = records.enter(loop).inspect_time(keep("iterative"))
        with loop.scoped(dims=2) as deeper:
            inside.enter(deeper).inspect_time(keep("scoped"))
        inside.leave().inspect_time(keep("left"))
    return times


times = ps.example(build)
assert tuple(times) == PLACES

picture = Picture(760, 336, "A record's time in scopes")
picture.text(24, 34, "The time of one record, outside and inside of scopes", anchor="start", bold=True)


def stop(x: float, y: float, place: str) -> None:
    """An operator that sees the record, with the record's time there."""
    picture.box(x - 56, y - 17, 112, 34)
    picture.text(x, y + 5, str(times[place]), size=14, bold=True)


picture.box(24, 52, 712, 262, fill=TINTS[FAINT], stroke=FAINT)
picture.text(36, 74, "the dataflow, dims=1", anchor="start", size=13)
picture.box(230, 70, 180, 76, fill=TINTS[GREEN], stroke=GREEN)
picture.text(242, 90, "region()", anchor="start", size=12, color=GREEN)
picture.box(230, 162, 346, 138, fill=TINTS[BLUE], stroke=BLUE)
picture.text(242, 182, "iterative()", anchor="start", size=12, color=BLUE)
picture.box(400, 176, 160, 76, fill=TINTS[ORANGE], stroke=ORANGE)
picture.text(412, 196, "scoped(dims=2)", anchor="start", size=12, color=ORANGE)

picture.arrow([(152, 214), (192, 214), (192, 118), (252, 118)], color=INK)
picture.arrow([(152, 222), (252, 222)], color=INK)
picture.text(192, 240, "enter", size=12, color=INK)
picture.arrow([(364, 222), (424, 222)], color=INK)
picture.arrow([(308, 239), (308, 278), (662, 278), (662, 239)], color=INK)
picture.text(620, 270, "leave", size=12, color=INK)
stop(96, 218, "outside")
stop(308, 118, "region")
stop(308, 222, "iterative")
stop(480, 222, "scoped")
stop(662, 222, "left")
picture.save("scopes.svg")
