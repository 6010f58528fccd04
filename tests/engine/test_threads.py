"""Threads that are waited for run, however late they begin."""

import threading

import pytest

from pointstamp.runtime.threads import Helper


class Late(Helper):
    """A thread that has been started, and does not come to run for a while."""

    def __init__(self, ran: list[int]) -> None:
        super().__init__(lambda: ran.append(1), "late")
        self.go = threading.Event()

    def run(self) -> None:
        self.go.wait(60)
        super().run()


def test_a_thread_that_begins_late_is_waited_for() -> None:
    ran: list[int] = []
    thread = Late(ran)
    thread.start()
    ended = thread.ends(0.01)
    thread.go.set()
    assert not ended
    assert thread.ends(60)
    assert ran == [1]


def test_a_thread_whose_start_was_interrupted_never_runs_after_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[int] = []
    thread = Late(ran)
    start = threading.Thread.start

    def interrupted(self: threading.Thread) -> None:
        start(self)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            thread.start()
    assert thread.ends(0.01)
    thread.go.set()
    thread.join(60)
    assert ran == []
