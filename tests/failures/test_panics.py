"""A panic in Rust is an exception, and prints nothing."""

import os
import subprocess
import sys
import textwrap

import pytest

DAMAGED = """
    import resource
    import pyarrow as pa
    import pointstamp as ps
    from pointstamp import _core

    words = pa.array(["a", "bc", None, "a"])
    lists = pa.array([[1], None, [], [2]])
    whole = _core.encode_batch(pa.record_batch({"t": words, "d": words.dictionary_encode(), "l": lists}))
    came = {"read": 0, "refused": 0}
    room = 1 << 30
    taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + room, taken + room))

    def read(data):
        try:
            _core.decode_batch(data)
            came["read"] += 1
        except ps.CodecError:
            came["refused"] += 1

    for at in range(16, len(whole)):
        read(whole[:at])
        for byte in (0, 127, 255, whole[at] ^ 1):
            read(whole[:at] + bytes([byte]) + whole[at + 1:])
        for lie in (2**31 - 1, 2**40, 2**64 - 1):
            read(whole[:at] + lie.to_bytes(8, "little") + whole[at + 8:])
    assert min(came.values()) > 100, came
"""

CAUGHT = """
    import pyarrow as pa
    from pointstamp import _core

    # Of a file whose names are no text.
    data = pa.schema([("name", pa.int64())]).serialize().to_pybytes()
    data = data.replace(b"name", bytes([255, 254]) + b"me")
    try:
        _core.Schema(pa.ipc.read_schema(pa.py_buffer(data)))
    except ValueError as error:
        assert "is not UTF-8" in str(error), error
    else:
        raise AssertionError
"""


def said_by(program: str, **environment: str) -> str:
    env = {name: value for name, value in os.environ.items() if name != "RUST_BACKTRACE"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=env | environment,
    )
    assert (done.returncode, done.stdout) == (0, ""), (done.stdout, done.stderr)
    return done.stderr


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is limited as Linux does it")
def test_columns_that_are_damaged_are_read_or_refused_and_print_nothing() -> None:
    pytest.importorskip("pyarrow")
    assert said_by(DAMAGED) == ""


def test_a_panic_that_becomes_an_exception_prints_nothing() -> None:
    pytest.importorskip("pyarrow")
    assert said_by(CAUGHT) == ""
    assert "panicked at" in said_by(CAUGHT, RUST_BACKTRACE="1")
