"""Ends of workers: others are notified, memory is freed, and records are sent or an error is raised."""

import pytest

from clusters import Cluster
from harness import script
from reentrant import PRELUDE, output

PANIC = """
import pyarrow as pa
from pointstamp._core import PactKind, StageKind, chain
def main(worker):
    records, batches = ps.InputHandle(), ps.ArrowInput(pa.schema([("x", pa.int64())]))
    with worker.dataflow() as scope:
        rows, columns = records.to_stream(scope), batches.to_stream(scope)
        rows, columns = (scope._building.take(one._output, one._output.form) for one in (rows, columns))
        # What the public interface has no way to write: an index that is out of bounds.
        {break_it}
    if worker.index == 0:
        {send}
    records.close()
    batches.close()
    worker.run()
"""

IN_OPERATOR = PANIC.format(
    break_it='chain(rows, [(StageKind.MAP, "no part", str, 0, None)], [])',
    send="records.send(1)",
)
IN_MAIN = PANIC.format(
    break_it='columns.forward("no column", PactKind.EXCHANGE_COLUMNS, [99])',
    send='batches.send(pa.table({"x": [1, 2, 3]})); worker.step()',
)


# Where there is one worker, rows are not taken apart by columns.
@pytest.mark.parametrize(("where", "workers"), [(IN_OPERATOR, 1), (IN_OPERATOR, 2), (IN_MAIN, 2)])
def test_a_panic_ends_every_worker(where: str, workers: int) -> None:
    said = script(PRELUDE + where + f"attempt(main, {workers})\n", timeout=380)
    assert "raised pointstamp.PointstampError worker 0 panicked" in said


@pytest.mark.parametrize("where", [IN_OPERATOR, IN_MAIN])
def test_a_panic_ends_every_process(where: str) -> None:
    with Cluster(where, workers=2, stall_timeout=3.0) as cluster:
        cluster.end(25)
        assert "pointstamp.PointstampError: worker 0 panicked" in cluster.processes[0].err
        assert "pointstamp.ClusterError: process 0" in cluster.processes[1].err
        assert "panicked" in cluster.processes[1].err


def test_a_thread_that_dies_before_main_starts_ends_the_others() -> None:
    said = output(
        """
        import pointstamp.runtime.execution as execution
        class Broken(execution.Worker):
            def __init__(self, core, collector, *more):
                if core.index == 1:
                    raise SystemExit("no worker")
                super().__init__(core, collector, *more)
        execution.Worker = Broken
        def main(worker):
            worker.barrier()
        attempt(main, 2)

        class Threading:
            def __getattr__(self, name):
                return getattr(threading, name)
            def get_ident(self):
                if threading.current_thread().name == "pointstamp-worker-1":
                    raise MemoryError("before it starts")
                return threading.get_ident()
        execution.threading = Threading()
        attempt(main, 2)
        """
    )
    assert "raised builtins.SystemExit no worker" in said
    assert "raised builtins.MemoryError before it starts" in said


WAITS = ["worker.run()", "worker.step_while(lambda: not probe.done())", "while worker.step_or_park(): pass"]


@pytest.mark.parametrize("wait", WAITS)
def test_a_dataflow_that_another_worker_dropped_is_not_waited_for(wait: str) -> None:
    said = output(
        f"""
        def main(worker):
            inp = ps.InputHandle()
            with worker.dataflow() as scope:
                probe = inp.to_stream(scope).exchange(lambda x: x).probe()
            if worker.index == 0:
                worker.drop_dataflow(0)
                return "dropped"
            inp.close()
            {wait}
            return "ran"
        attempt(main, 2)
        """
    )
    assert said.startswith("raised pointstamp.GraphError dataflow 0 'Dataflow' was dropped on worker 0")


@pytest.mark.parametrize("wait", [*WAITS, "worker.barrier()"])
def test_a_dataflow_that_another_worker_never_built_is_not_waited_for(wait: str) -> None:
    said = output(
        f"""
        def main(worker):
            if worker.index == 0:
                return "none"
            with worker.dataflow() as scope:
                probe = scope.to_stream([1]).exchange(lambda x: x).probe()
            {wait}
        attempt(main, 2)
        """
    )
    assert "raised pointstamp.GraphError the workers built different dataflows" in said


@pytest.mark.parametrize("wait", WAITS)
def test_a_dataflow_that_another_process_dropped_is_not_waited_for(wait: str) -> None:
    program = f"""
        def main(worker):
            inp = ps.InputHandle()
            with worker.dataflow() as scope:
                probe = inp.to_stream(scope).exchange(lambda x: x).probe()
            if worker.index == 0:
                worker.drop_dataflow(0)
                return "dropped"
            inp.close()
            {wait}
    """
    with Cluster(program) as cluster:
        cluster.end(20)
        for process in cluster.processes.values():
            assert "pointstamp.GraphError: dataflow 0 'Dataflow' was dropped on worker 0" in process.err


def test_dataflows_may_be_dropped_one_worker_after_the_other() -> None:
    said = output(
        """
        def main(worker):
            for n in range(200):
                inp, other = ps.InputHandle(), ps.InputHandle()
                with worker.dataflow() as scope:
                    probe = inp.to_stream(scope).exchange(lambda x: x).probe()
                with worker.dataflow() as scope:
                    other.to_stream(scope)
                inp.send_batch([1, 2])
                inp.advance_to(1)
                worker.step_while(lambda: probe.less_than(1))
                for number in worker.installed_dataflows():
                    worker.drop_dataflow(number)
                worker.barrier()
            return "fine"
        attempt(main, 2)
        """
    )
    assert said == "returned ['fine', 'fine']\n"


def test_records_keep_the_time_at_which_they_were_given() -> None:
    said = output(
        """
        def main(worker):
            with worker.dataflow() as scope:
                h, cap, s = scope.new_unordered_input()
                out = s.count().capture()
            with h.session(cap) as session:
                for _ in range(1500): session.give("given at 0")
                cap.downgrade(7)
                session.give("given at 7")
            cap.drop(); worker.run()
            return out.extract()
        attempt(main)
        """
    )
    assert said == "returned [[(0, [1500]), (7, [1])]]\n"


def test_a_dataflow_gets_nothing_that_was_sent_before_it_was_connected() -> None:
    said = output(
        """
        def main(worker):
            inp = ps.InputHandle()
            with worker.dataflow() as scope:
                a = inp.to_stream(scope).count().capture()
            for i in range(1500):
                inp.send(i)
            with worker.dataflow() as scope:
                b = inp.to_stream(scope).count().capture()
            inp.send(1500)
            inp.close()
            worker.run()
            return a.extract(), b.extract()
        attempt(main)
        """
    )
    assert said == "returned [([(0, [1501])], [(0, [1])])]\n"


@pytest.mark.parametrize(
    "then",
    ["cap.drop()", "pass", "cap.downgrade(3)", "worker.step(); cap.drop()", "worker.step_or_park(0.01)"],
)
def test_a_session_whose_last_reference_goes_on_another_thread_sends(then: str) -> None:
    said = output(
        f"""
        def main(worker):
            with worker.dataflow() as scope:
                h, cap, s = scope.new_unordered_input()
                out = s.capture()
            box = [h.session(cap)]
            box[0].give("kept")
            t = threading.Thread(target=box.clear); t.start(); t.join()
            {then}
            return out
        out, = ps.execute(main)
        say(out.extract())
        """
    )
    assert said == "[(0, ['kept'])]\n"


def test_a_session_whose_capability_is_dropped_first_is_an_error() -> None:
    said = output(
        """
        def main(worker):
            with worker.dataflow() as scope:
                h, cap, s = scope.new_unordered_input()
            session = h.session(cap)
            session.give("kept")
            cap.drop()
            del session
            worker.run()
        attempt(main)
        """
    )
    assert said.startswith("raised pointstamp.CapabilityError the capability was dropped")


@pytest.mark.parametrize("then", ["pass", "cap.downgrade(3)"])
def test_a_session_that_is_kept_holds_nothing_back(then: str) -> None:
    said = output(
        f"""
        def main(worker):
            with worker.dataflow() as scope:
                h, cap, s = scope.new_unordered_input()
                out = s.capture()
            session = h.session(cap)
            session.give("kept")
            {then}
            return session, out
        (session, out), = ps.execute(main)
        say(out.extract())
        """
    )
    assert said == "[(0, ['kept'])]\n"


def test_an_input_whose_reader_was_dropped_keeps_nothing() -> None:
    said = output(
        """
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096
        def main(worker):
            inp = ps.InputHandle()
            with worker.dataflow() as scope:
                inp.to_stream(scope).map(lambda x: x)
            with worker.dataflow() as scope:
                probe = inp.to_stream(scope).probe()
            worker.drop_dataflow(0)
            for t in range(150_000):
                inp.send(0); inp.advance_to(t + 1)
                if t % 100 == 0: worker.step()
                if t == 50_000:
                    worker.step_while(lambda: probe.less_than(t))
                    before = resident()
            worker.step_while(lambda: probe.less_than(t))
            return resident() - before
        attempt(main)
        """
    )
    grown = int(said.removeprefix("returned [").removesuffix("]\n"))
    assert grown < 4 << 20, said


AFTER = [
    "worker.step()",
    "worker.run()",
    "worker.step_or_park(1)",
    "worker.step_while(lambda: True)",
    "worker.barrier()",
    "worker.dataflow().__enter__()",
    "worker.installed_dataflows()",
    "worker.drop_dataflow(0)",
    "inp.send(1)",
    "inp.advance_to(3)",
    "cap.downgrade(3)",
    "cap.delayed(3)",
    "session.give(1)",
    "h.session(cap)",
]


def test_what_is_used_after_the_end_says_that_main_has_returned() -> None:
    said = output(
        f"""
        def main(worker):
            inp = ps.InputHandle()
            with worker.dataflow() as scope:
                h, cap, s = scope.new_unordered_input()
                inp.to_stream(scope)
            return worker, inp, h, cap, h.session(cap)
        for workers in (1, 2):
            (worker, inp, h, cap, session), *_ = ps.execute(main, workers=workers)
            for code in {AFTER!r}:
                for thread in (False, True):
                    def use():
                        try:
                            eval(code)
                            say("worked", code)
                        except ps.PointstampError as error:
                            say("raised", code, error)
                    if thread:
                        t = threading.Thread(target=use); t.start(); t.join()
                    else:
                        use()
            cap.drop()
            inp.close()
        """
    )
    assert "worked" not in said, said
    for code in AFTER:
        lines = [line for line in said.splitlines() if line.startswith(f"raised {code} ")]
        assert len(lines) == 4, (code, lines)
        assert all("main has returned" in line for line in lines), lines


def test_threads_that_use_a_session_after_the_end_do_not_meet() -> None:
    said = output(
        """
        import pyarrow as pa
        schema = pa.schema([("x", pa.int64())])
        def main(worker):
            batches = ps.ArrowInput(schema)
            with worker.dataflow() as scope:
                batches.to_stream(scope)
                h, cap, s = scope.new_unordered_input()
            return batches, h.session(cap), cap
        (batches, session, cap), = ps.execute(main)
        table = pa.table({"x": list(range(1000))})
        errors = []
        def use():
            for _ in range(2000):
                for call in (lambda: batches.send(table), lambda: session.give(1), lambda: cap.clone()):
                    try:
                        call()
                        errors.append("worked")
                    except ps.PointstampError as error:
                        errors.append(str(error))
        threads = [threading.Thread(target=use) for _ in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        say(len(errors), set(errors))
        """
    )
    assert said.startswith("24000 {")
    assert "worked" not in said
    assert "main has returned" in said


def test_objects_that_die_on_many_threads_after_the_end_die_one_after_another() -> None:
    output(
        """
        def main(worker):
            with worker.dataflow() as scope:
                h, cap, s = scope.new_unordered_input()
            return [[cap.clone() for _ in range(5000)] for _ in range(4)], cap
        for _ in range(5):
            (lists, cap), = ps.execute(main)
            del cap
            threads = [threading.Thread(target=part.clear) for part in lists]
            for t in threads: t.start()
            for t in threads: t.join()
        """
    )
