"""Records are sent at the time at which they were given, or an error ends the computation.

That goes for what a function gives that routes records, while these are sent, too.
"""

import pytest

from reentrant import output

GIVES_MORE = """
def main(worker):
    with worker.dataflow() as scope:
        first, second = ps.InputHandle(), ps.InputHandle()
        unordered, cap, stream = scope.new_unordered_input()
        session = []
        def key(x):
            if x < 3:
                {gives}
            return x
        routed = stream.exchange(key).concat(first.to_stream(scope).exchange(key))
        out = routed.concat(second.to_stream(scope)).capture()
    session.append(unordered.session(cap))
    {start}
    {then}
    return out
out, = ps.execute(main)
say([(time, sorted(records)) for time, records in out.extract()])
"""

ONE, ALL = "[(0, [1, 2])]", "[(0, [1, 2, 3])]"


@pytest.mark.parametrize(
    "then", ["pass", "worker.step()", "first.advance_to(5)", "first.close()", "first.flush()"]
)
@pytest.mark.parametrize("gives", ["first.send(x + 1)", "first.send(x + 1); worker.step()"])
def test_an_input_to_which_its_own_key_function_gives(gives: str, then: str) -> None:
    said = output(GIVES_MORE.format(gives=gives, start="first.send(1)", then=then))
    assert said == ALL + "\n"


@pytest.mark.parametrize("then", ["pass", "worker.step()", "first.advance_to(5)", "first.close()"])
def test_an_input_to_which_another_ones_key_function_gives(then: str) -> None:
    program = GIVES_MORE.format(gives="x == 1 and second.send(2)", start="first.send(1)", then=then)
    assert output(program) == ONE + "\n"


@pytest.mark.parametrize("then", ["pass", "worker.step()", "cap.downgrade(5)", "session[0].flush()"])
def test_a_session_to_which_the_key_function_gives(then: str) -> None:
    program = GIVES_MORE.format(gives="session[0].give(x + 1)", start="session[0].give(1)", then=then)
    assert output(program) == ALL + "\n"


@pytest.mark.parametrize(
    "flush", ["first.flush()", "first.advance_to(7)", "first.close()", "first.send_batch([9])"]
)
def test_what_cannot_be_sent_now_is_kept(flush: str) -> None:
    gives = f"""
                first.send(x + 1)
                try:
                    {flush}
                except ps.GraphError as error:
                    assert "routing function" in str(error)
                else:
                    say("worked")
    """
    program = GIVES_MORE.format(gives=gives, start="first.send(1)", then="worker.step()")
    assert output(program) == ALL + "\n"


def test_a_function_may_give_more_than_a_batch_to_the_input_that_is_sent() -> None:
    said = output(
        """
        def main(worker):
            inp = ps.InputHandle()
            with worker.dataflow() as scope:
                def key(x):
                    if x == 1:
                        for n in range(5000): inp.send(n + 2)
                    return x
                out = inp.to_stream(scope).exchange(key).count().capture()
            inp.send(1)
            return out
        out, = ps.execute(main)
        say(out.extract())
        """
    )
    assert said == "[(0, [5001])]\n"


def test_a_capability_that_goes_while_its_session_sends_does_not_cut_it_in_two() -> None:
    said = output(
        """
        def main(worker, change):
            with worker.dataflow() as scope:
                unordered, cap, stream = scope.new_unordered_input()
                def key(x):
                    if x == 0: change(cap)
                    return x
                out = stream.exchange(key).count().capture()
            with unordered.session(cap) as session:
                session.give_all(list(range(5000)))
            cap.drop()
            worker.run()
            return out.extract()
        for change in (ps.Capability.drop, lambda cap: cap.downgrade(7)):
            attempt(lambda worker: main(worker, change))
        """
    )
    assert said == "returned [[(0, [5000])]]\n" * 2


@pytest.mark.parametrize("workers", [1, 2])
def test_an_input_that_is_closed_while_it_sends_ends_the_computation(workers: int) -> None:
    said = output(
        f"""
        def main(worker):
            inp = ps.InputHandle()
            with worker.dataflow() as scope:
                def key(x):
                    if x == 0:
                        for n in range(1, 5000): inp.send(n)
                    if x == 1: inp.close()
                    return x
                inp.to_stream(scope).exchange(key)
            inp.send(0)
            inp.flush()
            try:
                inp.flush()
            except ps.CapabilityError:
                say("caught")
            worker.run()
            return "half of it was lost"
        attempt(main, {workers})
        """
    )
    assert "caught" in said
    assert said.splitlines()[-1].startswith("raised pointstamp.CapabilityError the input is closed")
