"""A debugger, or anything that traces, works in a process that has run a computation, however that ended.

CPython 3.11 never gets past a function that it traces while an exception sent to a thread is not raised.
"""

import pytest

from harness import script

ENDS = {
    "well": "worker.step()",
    "with a failure": "1 / worker.index",
    "with an interruption": """
        if worker.index == 0:
            raise ZeroDivisionError
        while True:
            pass
    """,
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_tracing_after_a_run(workers: int, end: str) -> None:
    program = f"""
import sys, textwrap
import pointstamp as ps
body = {ENDS[end]!r}
code = "def main(worker):\\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ")
exec(code)
try:
    ps.execute(main, workers={workers})
except ZeroDivisionError:
    pass
calls = []
def trace(frame, event, argument):
    calls.append(event)
def function():
    return 1
sys.settrace(trace)
function()
sys.settrace(None)
print(calls)
"""
    assert "['call']" in script(program, timeout=380)
