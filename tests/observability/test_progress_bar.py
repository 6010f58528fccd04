"""The progress bar follows the probe."""

import io
import sys

import pytest

import pointstamp as ps


@pytest.mark.parametrize("dims", [1, 2])
def test_the_bar_stands_where_the_probe_does(dims: int) -> None:
    def main(worker: ps.Worker) -> list[int]:
        with worker.dataflow(dims=dims) as scope:
            days, stream = scope.new_input()
            probe = stream.probe()
        stood = []
        for day in (4, 7, 9):
            with ps.progress_bar(probe, total=9, name="days", file=io.StringIO()) as bar:
                days.advance_to(day if dims == 1 else (day, 0))
                worker.step_while(lambda day=day: probe.less_than(day if dims == 1 else (day, 0)))  # type: ignore[misc]
            stood.append(bar.n)
        return stood

    assert ps.execute(main) == [[4, 7, 9]]


def test_a_stream_that_has_ended_is_at_the_end_and_the_name_is_shown() -> None:
    shown = io.StringIO()

    def main(worker: ps.Worker) -> int:
        with worker.dataflow() as scope:
            probe = scope.to_stream([1]).probe()
        with ps.progress_bar(probe, total=50, name="all days", file=shown) as bar:
            worker.run()
        return int(bar.n)

    assert ps.execute(main) == [50]
    assert "all days" in shown.getvalue()
    assert "50/50" in shown.getvalue()


def test_what_a_bar_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ps.ConfigError, match="above 0"), ps.progress_bar(ps.ProbeHandle(), total=0):
        pass
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ps.ConfigError, match="pip install tqdm"), ps.progress_bar(ps.ProbeHandle(), total=1):
        pass
