"""The cost of the package: the time of its import, the memory of a long stream, the size of the wheel."""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

from figures import leave

IMPORT = """
import time
start = time.perf_counter()
import pointstamp
seconds = time.perf_counter() - start
import sys
assert "pyarrow" not in sys.modules, "importing pointstamp imported pyarrow"
print(seconds)
"""

STREAM = """
import resource, sys
import records
functions = (lambda x: x * 3 + 1), (lambda x: x % 2 == 0)
records.our_map_filter(1, 10_000, *functions)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
records.our_map_filter(1, int(sys.argv[1]), *functions)
print(before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""

KIB = 1024 if sys.platform != "darwin" else 1  # `ru_maxrss` is in KiB, except on macOS
AIM_IMPORT_MS = 50
AIM_WHEEL_MB = 8


def _fresh(program: str, *arguments: str) -> list[float]:
    command = [sys.executable, "-c", program, *arguments]
    here = Path(__file__).parent
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=here, timeout=300)
    return [float(number) for number in done.stdout.split()]


def memory_of_map_filter(count: int) -> str:
    """The additional memory of a stream of many numbers over one of few; each in a fresh interpreter."""
    before, after = _fresh(STREAM, str(count))
    return f"peak memory grew by {(after - before) * KIB / 1e6:.1f} MB over that of 10,000 ints, on 1 worker"


def _said(what: str, value: float, unit: str, aim: float) -> str:
    return f"{what}: {value:.1f} {unit}   aim {aim} {'' if value <= aim else ' MISSED'}"


def figures(wheel: Path | None, turns: int) -> list[str]:
    """The time of an import, in fresh interpreters whose files are cached; the wheel's size."""
    times = [_fresh(IMPORT)[0] for _ in range(turns + 1)][1:]
    leave("Package", "import pointstamp", 1000 * statistics.median(times), unit="ms")
    lines = [_said("import pointstamp", 1000 * statistics.median(times), "ms", AIM_IMPORT_MS)]
    if wheel is not None:
        leave("Package", "the wheel", wheel.stat().st_size / 1e6, unit="MB")
        lines.append(_said(wheel.name, wheel.stat().st_size / 1e6, "MB", AIM_WHEEL_MB))
    return lines
