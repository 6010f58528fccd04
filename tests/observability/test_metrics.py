"""Metrics: the numbers of a computation that runs, for Prometheus and for OpenTelemetry."""

from __future__ import annotations

import re
import threading
from concurrent.futures import Future
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.observability.cache import AnswerCache
from pointstamp.observability.dashboard_state import state_of
from pointstamp.observability.metrics import FAMILIES, prometheus

Sample = dict[str, float]

LONG = 120.0
"""Seconds for what comes in any case."""


def parsed(text: str) -> dict[str, Sample]:
    """The samples of a metrics page: by name, then by operator or another label."""
    metrics: dict[str, Sample] = {}
    for name, labels, value in re.findall(r"^(\w+)\{(.*)\} (\S+)$", text, re.MULTILINE):
        about = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        of = about.get("operator") or about.get("worker") or about["process"]
        metrics.setdefault(name, {})[of] = float(value)
    return metrics


PLACES: list[Any] = [{}, {"workers": 2}]


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_operators_say_what_they_keep_and_how_far_they_are(place: Any) -> None:
    config = ps.Config(**place, dashboard=0)
    peers = config.peers

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow("kept") as scope:
            numbers, collection = scope.new_collection()
            arranged = collection.map(lambda n: (n % 10, n)).arrange()
            trace = arranged.trace()
            probe = arranged.to_collection().probe()
            ahead, stream = scope.new_input()
            pairs = stream.key_by(lambda n: n % 7, lambda n: n)
            sums = pairs.scan(lambda _, n, total: total + n, default=int).probe()
        for n in range(worker.index, 1000, peers):
            numbers.insert(n)
            ahead.send(n)
        numbers.advance_to(1)
        ahead.advance_to(5)
        worker.step_while(lambda: probe.less_than(1) or sums.less_than(5))
        worker.barrier()
        asked = (
            prometheus(state_of(worker._collector.data(worker._engine, LONG))) if worker.index == 0 else None
        )
        worker.barrier()
        trace.close()
        return asked

    text = ps.execute(main, config=config)[0]
    metrics = parsed(text)
    assert metrics["pointstamp_operator_state_rows"]["arrange"] == 1000
    assert metrics["pointstamp_operator_state_rows"]["scan"] == 7
    assert metrics["pointstamp_operator_state_bytes"]["arrange"] > 8 * 1000
    assert metrics["pointstamp_operator_state_bytes"]["scan"] > 7 * 28
    assert metrics["pointstamp_operator_frontier"]["scan"] == 5
    assert metrics["pointstamp_operator_frontier_lag"]["scan"] == 0
    assert metrics["pointstamp_operator_frontier"]["arrange"] == 1
    assert metrics["pointstamp_operator_frontier_lag"]["arrange"] == 4
    assert metrics["pointstamp_operator_records_in_total"]["arrange"] == 1000
    assert metrics["pointstamp_process_resident_memory_bytes"]["0"] > 1 << 20
    assert metrics["pointstamp_worker_up"] == {str(worker): 1.0 for worker in range(peers)}
    for family in FAMILIES:
        assert f"# TYPE {family.prometheus} {family.kind}\n" in text


def step_until(worker: ps.Worker, event: threading.Event) -> None:
    while not event.is_set():
        worker.step_or_park(0.02)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_at_event_times_records_are_counted_and_not_the_batches_that_carry_them(place: Any) -> None:
    config = ps.Config(**place, dashboard=0)
    records = 5000

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            open_, _ = scope.new_input()  # so that the dataflow is still there when it is asked
            numbers, stream = scope.new_input()
            on_time, late = stream.event_time(lambda n: n // 10, lateness=records)
            probes = [late.probe()]
            probes.append(on_time.map(lambda n: n + 1, name="one more").probe())
            moved = on_time.exchange(lambda n: n % 3, name="moved").filter(lambda n: True, name="all")
            keyed = moved.key_by(lambda n: n % 7).map_values(lambda n: n)
            probes.append(keyed.scan(lambda _, n, total: total + n, default=int, name="sums").probe())
        for n in range(worker.index, records, config.peers):
            numbers.send(n)
        numbers.close()
        worker.step_while(lambda: not all(probe.done() for probe in probes))
        worker.barrier()
        asked = (
            prometheus(state_of(worker._collector.data(worker._engine, LONG))) if worker.index == 0 else None
        )
        worker.barrier()
        open_.close()
        return asked

    metrics = parsed(ps.execute(main, config=config)[0])
    taken = metrics["pointstamp_operator_records_in_total"]
    names = ("one more", "at event times", "moved", "sums")
    found = {name: [count for of, count in taken.items() if name in of] for name in names}
    assert all(counts == [records] * len(counts) and counts for counts in found.values()), taken
    assert set(metrics["pointstamp_operator_queued_records"].values()) == {0}


def test_no_counter_goes_down_while_a_worker_is_busy() -> None:
    asked, busy, gate, over = (threading.Event() for _ in range(4))
    states: list[Any] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            probe = stream.map(lambda x: x, name="seen").probe()
        numbers.send_batch(range(100))
        numbers.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        if worker.index == 0:
            thread = threading.Thread(target=look, args=(AnswerCache(worker._collector),))
            thread.start()
            step_until(worker, over)
            thread.join()
        else:
            step_until(worker, asked)
            busy.set()
            gate.wait(LONG)

    def look(steady: AnswerCache) -> None:
        try:
            state = steady.state()
            while any(one["silent"] for one in state["workers"]):  # the machine may be slow
                state = steady.state()
            states.append(state)
            asked.set()
            busy.wait(LONG)
            states.append(steady.state())
        finally:
            asked.set()
            gate.set()
            over.set()

    ps.execute(main, config=ps.Config(workers=2, dashboard=0))
    before, after = states
    assert [one["silent"] for one in after["workers"]][1]
    assert after["workers"][1]["parked"] >= before["workers"][1]["parked"]
    for old, new in zip(before["dataflows"][0]["operators"], after["dataflows"][0]["operators"], strict=True):
        for counter in ("runs", "nanoseconds", "records_in", "records_out"):
            assert new[counter] >= old[counter], (old["name"], counter)
    seen = next(one for one in after["dataflows"][0]["operators"] if one["name"] == "seen")
    assert seen["records_in"] == 200


def test_all_who_watch_a_busy_worker_share_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, gate, shared = threading.Event(), threading.Event(), threading.Semaphore(0)

    class Counted(Future[Any]):
        def result(self, timeout: float | None = None) -> Any:
            shared.release()
            return super().result(timeout)

    class Busy:
        calls = 0

        def data(self) -> list[Any]:
            self.calls += 1
            asked.set()
            assert gate.wait(LONG)
            return []

    monkeypatch.setattr("pointstamp.observability.cache.Future", Counted)
    busy: Any = Busy()
    steady = AnswerCache(busy)
    watching = [threading.Thread(target=steady.state) for _ in range(8)]
    watching[0].start()
    assert asked.wait(LONG)
    for thread in watching[1:]:
        thread.start()
    try:
        for _ in range(6):  # all but the first, and the one that asks for the others
            assert shared.acquire(timeout=LONG)
    finally:
        gate.set()
    for thread in watching:
        thread.join(LONG)
    assert busy.calls == 2


def test_a_question_that_fails_fails_for_who_asked_and_for_nobody_after() -> None:
    class Failing:
        calls = 0

        def data(self) -> list[Any]:
            self.calls += 1
            if self.calls == 1:
                raise RuntimeError("gone")
            return []

    failing: Any = Failing()
    steady = AnswerCache(failing)
    with pytest.raises(RuntimeError, match="gone"):
        steady.state()
    assert steady.state()["workers"] == []


def test_what_was_kept_ends_with_its_dataflow() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            numbers, collection = scope.new_collection()
            arranged = collection.map(lambda n: (n, n)).arrange()
            trace = arranged.trace()
            probe = arranged.to_collection().probe()
        numbers.insert(1)
        numbers.close()
        worker.step_while(lambda: not probe.done())
        worker.run()
        trace.close()
        return parsed(prometheus(state_of(worker._collector.data(worker._engine, LONG)))).get(
            "pointstamp_operator_state_rows"
        )

    assert ps.execute(main, config=ps.Config()) == [None]


def test_opentelemetry_reads_the_same_numbers() -> None:
    from opentelemetry import metrics
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))  # once for a process: no other test may

    def read() -> dict[str, dict[str, Any]]:
        data = reader.get_metrics_data()
        found: dict[str, dict[str, Any]] = {}
        for resource in [] if data is None else data.resource_metrics:
            for scope in resource.scope_metrics:
                assert scope.scope.name == "pointstamp"
                for metric in scope.metrics:
                    points: Any = metric.data.data_points
                    found[metric.name] = {
                        str(point.attributes.get("operator", point.attributes.get("process"))): point.value
                        for point in points
                    }
        return found

    for _ in range(2):  # the instruments are made once, and observed again

        def main(worker: ps.Worker) -> Any:
            with worker.dataflow() as scope:
                numbers, stream = scope.new_input()
                probe = stream.map(str, name="shown").probe()
            numbers.send_batch(range(100))
            numbers.advance_to(1)
            worker.step_while(lambda: probe.less_than(1))
            return asked(worker)

        def asked(worker: ps.Worker) -> Any:
            import threading

            answers: list[Any] = []
            thread = threading.Thread(target=lambda: answers.append(read()))
            thread.start()
            while thread.is_alive():
                worker.step_or_park(0.01)
            thread.join()
            return answers[0]

        [found] = ps.execute(main, config=ps.Config(telemetry=True))
        assert found["pointstamp.operator.records_in"]["shown"] == 100
        assert found["pointstamp.operator.frontier"]["shown"] == 1
        assert found["pointstamp.operator.time"]["shown"] > 0
        assert found["pointstamp.process.resident_memory"]["0"] > 1 << 20
    assert all(not points for points in read().values())
