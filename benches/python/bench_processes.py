"""Several processes, beside one, beside threads, and beside bare sockets: as ratios of one run.

    python benches/python/bench_processes.py [NAME...]

Names are words, exchange, rounds and progress; all of them when none is given. A figure is the best of
three runs, of all sides in turns. Every run is a cluster of its own, started by `python -m pointstamp run`.
Unless it says otherwise, its seconds are those from when all processes are connected to the end of the last.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import records
from figures import leave

import pointstamp as ps

TURNS = 3

MOST = 4
"""Processes, and workers of each, up to which the cost of progress is measured."""

# ---------------------------------------------------------------- running a side


def cluster(program: str, *arguments: object, processes: int = 1, workers: int = 1) -> list[dict[str, Any]]:
    """Runs a function on some processes, and returns what each worker reported.

    Added to it is `whole`: the seconds that everything took, with starting the interpreters.

    Args:
        program: A function of this file, or ``FILE:FUNCTION``.
        arguments: The program's own.
        processes: How many.
        workers: How many each of them has.
    """
    if ":" not in program:
        program = f"{__file__}:{program}"
    command = [sys.executable, "-m", "pointstamp", "run", "-n", processes, "-w", workers]
    start = time.perf_counter()
    result = subprocess.run(
        [*map(str, command), program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    whole = time.perf_counter() - start
    return [json.loads(line) | {"whole": whole} for line in result.stdout.splitlines()]


def report(**figures: object) -> None:
    """Says what a worker has measured, in one line."""
    sys.stdout.write(json.dumps(figures) + "\n")
    sys.stdout.flush()


def since(before: ps.Traffic, after: ps.Traffic) -> dict[str, int]:
    """The traffic of this process in between, by name."""
    return {name: now - then for name, then, now in zip(before._fields, before, after, strict=True)}


def seconds(reports: list[dict[str, Any]]) -> float:
    """The time from when all were connected until the last was done."""
    return max(found["seconds"] for found in reports)


def best(**sides: Callable[[], float]) -> dict[str, float]:
    """The least of each side's figures, of sides that run by turns."""
    found: dict[str, float] = {}
    for _ in range(TURNS):
        for name, side in sides.items():
            figure = side()
            found[name] = min(figure, found.get(name, figure))
    return found


# ---------------------------------------------------------------- words


def count_words(worker: ps.Worker) -> None:
    """Counts the words of lines; each line and each word goes through Python closures."""
    lines = records.make_lines(int(sys.argv[1]))[worker.index :: worker.peers]
    per_word = sys.argv[2] == "words"
    table: Counter[str] = Counter()

    def count(words: list[str]) -> Any:
        return Counter(words).items()

    def add(_time: ps.Time, pairs: list[tuple[str, int]]) -> None:
        for word, n in pairs:
            table[word] += n

    def one(word: str) -> tuple[str, int]:
        return word, 1

    worker.barrier()
    before = worker.traffic()
    start, start_cpu = time.perf_counter(), time.process_time()
    with worker.dataflow() as scope:
        words = scope.to_stream(lines).flat_map(lambda line: line.split()).map(lambda word: word.strip(".,;"))
        words = words.filter(lambda word: not word.startswith("#"))
        pairs = words.map(one) if per_word else words.map_batches(count)
        pairs.exchange(lambda pair: pair[0]).inspect_batch(add)
    worker.run()
    sent = worker.traffic()
    worker.barrier()
    worked = time.process_time() - start_cpu
    took = time.perf_counter() - start
    report(seconds=took, worked=worked, total=table.total(), **since(before, sent))


def words(scale: float) -> None:
    """Word count on 2 processes against 1."""
    lines = int(400_000 * scale)
    for how, title in [("counts", "counted before they are exchanged"), ("words", "exchanged one by one")]:
        wholes: dict[int, list[float]] = {1: [], 2: []}
        worked: dict[int, list[float]] = {1: [], 2: []}

        def run(
            processes: int,
            how: str = how,
            wholes: dict[int, list[float]] = wholes,
            worked: dict[int, list[float]] = worked,
        ) -> float:
            reports = cluster("count_words", lines, how, processes=processes)
            if sum(found["total"] for found in reports) != 10 * lines:
                raise SystemExit(f"wrong: {reports}")
            wholes[processes].append(reports[0]["whole"])
            worked[processes].append(max(found["worked"] for found in reports))
            return seconds(reports)

        def apart(how: str = how) -> float:
            with ThreadPoolExecutor(2) as pool:
                halves = [pool.submit(cluster, "count_words", lines // 2, how) for _ in range(2)]
                return max(seconds(half.result()) for half in halves)

        found = best(one=lambda: run(1), two=lambda: run(2), apart=apart)
        print(
            f"words: {10 * lines:,} words, {title}: {found['one']:.2f} s on 1 process, "
            f"{found['two']:.2f} s on 2: {found['one'] / found['two']:.2f} times as fast (aim 1.6); "
            f"with starting, {min(wholes[1]) / min(wholes[2]):.2f} times; two processes that have "
            f"nothing to do with each other, half of the words each: {found['one'] / found['apart']:.2f} "
            f"times; the busier process works {min(worked[1]) / min(worked[2]):.2f} times less",
            flush=True,
        )
        program = f"{10 * lines:,} words by closures, {title}, 2 processes"
        leave("Processes", program, found["two"], "1 process", found["one"], aim=1 / 1.6)


# ---------------------------------------------------------------- exchange

BATCH = 1 << 16
"""Rows of a batch, of one int64 column: half a mebibyte."""


def keys_of(peer: int) -> pa.RecordBatch:
    """A batch whose rows all belong to one of two workers."""

    def main(worker: ps.Worker) -> list[int]:
        source = ps.ArrowInput(pa.schema([("k", pa.int64())]))
        with worker.dataflow() as scope:
            out = source.to_stream(scope).exchange("k").capture()
        if worker.index == 0:
            source.send(pa.record_batch({"k": pa.array(range(4 * BATCH))}))
        source.close()
        worker.run()
        return [key for _, batches in out.extract() for batch in batches for key in batch["k"].to_pylist()]

    return pa.record_batch({"k": pa.array(ps.execute(main, workers=2)[peer][:BATCH], pa.int64())})


def send_rows(worker: ps.Worker) -> None:
    """Worker 0 sends rows of one int64 column, all of which belong to worker 1."""
    rows, batch = int(sys.argv[1]), keys_of(1)
    received = 0

    def add(_time: ps.Time, batch: pa.RecordBatch) -> None:
        nonlocal received
        received += batch.num_rows

    source = ps.ArrowInput(batch.schema)
    with worker.dataflow() as scope:
        probe = source.to_stream(scope).exchange("k").inspect_batch(add).probe()
    worker.barrier()
    start = time.perf_counter()
    for turn in range(rows // BATCH if worker.index == 0 else 0):
        source.send(batch)
        source.advance_to(turn + 1)
        worker.step_while(lambda least=turn - 16: least > 0 and probe.less_than(least))
    source.close()
    worker.run()
    worker.barrier()
    report(seconds=time.perf_counter() - start, received=received)


def receive_bytes(address: tuple[str, int], size: int) -> None:
    """The other end of a bare copy: says when it has all."""
    buffer = bytearray(8 * BATCH)
    with socket.create_connection(address) as connection:
        connection.sendall(b"?")
        while size > 0:
            size -= connection.recv_into(buffer)
        connection.sendall(b"!")


def copy_bytes(rows: int) -> float:
    """The same bytes from one process to another through a bare socket."""
    block = memoryview(bytes(8 * BATCH))
    with socket.create_server(("127.0.0.1", 0)) as server:
        context = multiprocessing.get_context("spawn")
        arguments = (server.getsockname(), rows // BATCH * len(block))
        receiver = context.Process(target=receive_bytes, args=arguments)
        receiver.start()
        connection, _ = server.accept()
        with connection:
            connection.recv(1)
            start = time.perf_counter()
            for _ in range(rows // BATCH):
                connection.sendall(block)
            connection.recv(1)
            passed = time.perf_counter() - start
        receiver.join()
    return passed


def exchange(scale: float) -> None:
    """Rows from one process to another, beside a bare copy of their bytes."""
    rows = int((1 << 27) * scale) // BATCH * BATCH

    def ours(processes: int, workers: int) -> float:
        reports = cluster("send_rows", rows, processes=processes, workers=workers)
        if sorted(found["received"] for found in reports) != [0, rows]:
            raise SystemExit(f"wrong: {reports}")
        return seconds(reports)

    found = best(processes=lambda: ours(2, 1), threads=lambda: ours(1, 2), bare=lambda: copy_bytes(rows))
    rate = {side: 8 * rows / figure / 1e9 for side, figure in found.items()}
    print(
        f"exchange: {rows:,} rows of an int64, all to the other worker: {rate['processes']:.2f} GB/s "
        f"between 2 processes; a bare socket copy of the same bytes {rate['bare']:.2f} GB/s: "
        f"{rate['processes'] / rate['bare']:.2f} of it (aim 0.5); 2 threads {rate['threads']:.2f} GB/s",
        flush=True,
    )
    program = f"{rows:,} int64 to the other process"
    leave("Processes", program, found["processes"], "a bare socket copy", found["bare"], aim=2.0)
    leave("Processes", program, found["processes"], "2 threads", found["threads"])


# ---------------------------------------------------------------- rounds


def barriers(worker: ps.Worker) -> None:
    """A loop of which every round waits until all workers have come to the end of the one before."""
    rounds = int(sys.argv[1])

    def logic(_input: Any, _output: Any, notificator: ps.Notificator) -> None:
        for capability, _ in notificator:
            if capability.time < rounds:
                notificator.notify_at(capability.delayed(capability.time + 1))

    worker.barrier()
    before, start = worker.traffic(), time.perf_counter()
    with worker.dataflow() as scope:
        loop, stream = scope.feedback(1)
        stream.unary_notify(ps.Pipeline(), "Barrier", (0,), logic).connect_loop(loop)
    worker.run()
    report(seconds=time.perf_counter() - start, **since(before, worker.traffic()))


def answer(address: tuple[str, int], rounds: int) -> None:
    """The other end of a bare ping-pong."""
    with socket.create_connection(address) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(b"?")
        for _ in range(rounds):
            connection.sendall(connection.recv(64))


def ping_pong(rounds: int) -> float:
    """So many round trips of one byte between two processes, through a bare socket."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        context = multiprocessing.get_context("spawn")
        other = context.Process(target=answer, args=(server.getsockname(), rounds))
        other.start()
        connection, _ = server.accept()
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.recv(1)
            start = time.perf_counter()
            for _ in range(rounds):
                connection.sendall(b"!")
                connection.recv(64)
            passed = time.perf_counter() - start
        other.join()
    return passed


def rounds(scale: float) -> None:
    """Barriers across processes, beside threads, and beside what a bare socket takes to go there and back."""
    count = int(20_000 * scale)
    found = best(
        processes=lambda: seconds(cluster("barriers", count, processes=2)),
        threads=lambda: seconds(cluster("barriers", count, workers=2)),
        bare=lambda: ping_pong(count),
    )
    rate = {side: count / figure for side, figure in found.items()}
    print(
        f"rounds: {rate['processes']:,.0f} barriers/s across 2 processes, {rate['threads']:,.0f} across 2 "
        f"threads: {rate['processes'] / rate['threads']:.2f} of it; round trips of a bare socket "
        f"{rate['bare']:,.0f}/s: {rate['processes'] / rate['bare']:.2f} of it",
        flush=True,
    )
    program = f"{count:,} barriers between 2 processes"
    leave("Processes", program, found["processes"], "round trips of a bare socket", found["bare"])
    leave("Processes", program, found["processes"], "2 threads", found["threads"])


# ---------------------------------------------------------------- progress


def rounds_of_all(worker: ps.Worker) -> None:
    """Rounds in which every worker sends a record to every worker, and waits for all."""
    count = int(sys.argv[1])
    numbers: ps.InputHandle[int] = ps.InputHandle()
    with worker.dataflow() as scope:
        probe = scope.input_from(numbers).exchange(lambda x: x).probe()
    worker.barrier()
    before, start = worker.traffic(), time.perf_counter()
    for turn in range(count):
        numbers.send_batch(range(worker.peers))
        numbers.advance_to(turn + 1)
        worker.step_while(lambda time=turn + 1: probe.less_than(time))
    passed, after = time.perf_counter() - start, worker.traffic()
    report(
        seconds=passed,
        index=worker.index,
        messages=after.progress_messages - before.progress_messages,
        bytes=after.progress_bytes - before.progress_bytes,
    )


def progress(scale: float) -> None:
    """The cost of progress as processes and workers grow."""
    count = int(300 * scale)
    print(
        f"progress: messages and bytes between processes per round of {count}, "
        "and as many for every pair of processes"
    )
    print("  processes x workers   messages    per pair      bytes    per pair   rounds/s")
    for processes in range(1, MOST + 1):
        for workers in range(1, MOST + 1):
            reports = cluster("rounds_of_all", count, processes=processes, workers=workers)
            firsts = [found for found in reports if found["index"] % workers == 0]  # one of each process
            messages = sum(found["messages"] for found in firsts) / count
            size = sum(found["bytes"] for found in firsts) / count
            pairs = max(1, processes * (processes - 1))
            print(
                f"  {processes:>9} x {workers:<7} {messages:>11.1f} {messages / pairs:>11.2f} {size:>10.0f} "
                f"{size / pairs:>11.1f} {count / seconds(reports):>10,.0f}",
                flush=True,
            )
            if processes > 1:
                program = f"a round, {processes} processes of {workers} workers, for each pair of processes"
                leave("Progress between processes", program, messages / pairs, unit="messages")


BENCHES: dict[str, Callable[[float], None]] = {
    "words": words,
    "exchange": exchange,
    "rounds": rounds,
    "progress": progress,
}


def main() -> None:
    """Runs the benches that are named, or all."""
    global TURNS, MOST
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHES)}")
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the work, for a quick look")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"runs of each side (default: {TURNS})")
    parser.add_argument("--most", type=int, default=MOST, help="processes, and workers of each, of progress")
    arguments = parser.parse_args()
    TURNS, MOST = arguments.turns, arguments.most
    for name, bench in BENCHES.items():
        if not arguments.names or name in arguments.names:
            bench(arguments.scale)


if __name__ == "__main__":
    main()
