"""The exceptions: their bases, their names, and that they survive a pickle."""

import pickle

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
