"""The exceptions: their bases, their names, and that they survive a pickle."""

import pickle
import threading

import pytest

import pointstamp as ps

BASES: dict[type[Exception], tuple[type[Exception], ...]] = {
    ps.PointstampError: (Exception,),
    ps.ConfigError: (ps.PointstampError, ValueError),
    ps.TimeError: (ps.PointstampError, ValueError),
    ps.CapabilityError: (ps.PointstampError,),
    ps.GraphError: (ps.PointstampError,),
    ps.ClusterError: (ps.PointstampError, ConnectionError),
    ps.CodecError: (ps.PointstampError,),
}


@pytest.mark.parametrize("error", BASES, ids=lambda error: error.__name__)
def test_bases_and_name(error: type[Exception]) -> None:
    assert error.__bases__ == BASES[error]
    assert error.__module__ == "pointstamp"
    assert getattr(ps, error.__name__) is error
    assert error.__doc__


@pytest.mark.parametrize("error", BASES, ids=lambda error: error.__name__)
def test_pickle(error: type[Exception]) -> None:
    copy = pickle.loads(pickle.dumps(error("what to do next")))
    assert type(copy) is error
    assert str(copy) == "what to do next"


def test_a_worker_that_is_stopped_sees_no_exception_that_it_may_catch() -> None:
    """Checks the statements of docs/errors.md on the other workers, when one has failed."""
    seen: list[BaseException] = []
    waits = threading.Event()

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.new_input()
        if worker.index == 0:
            waits.wait()
            raise LookupError("own")
        waits.set()
        try:
            worker.run()
        except BaseException as error:
            seen.append(error)
            raise

    with pytest.raises(LookupError, match="own"):
        ps.execute(main, workers=2)
    assert [type(error).__name__ for error in seen] == ["WorkerStopped"]
    assert not isinstance(seen[0], Exception)
