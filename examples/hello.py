"""The timely dataflow book's first program: rounds of numbers, each seen by the worker that it belongs to.

python examples/hello.py               one worker sees every number
python examples/hello.py --workers 2   two share them: by a number's remainder
"""

import pointstamp as ps


def main(worker: ps.Worker) -> None:
    """The program of each worker."""
    numbers: ps.InputHandle[int] = ps.InputHandle()

    # A new input, its records exchanged between the workers, and the records that arrive.
    with worker.dataflow() as scope:
        probe = (
            scope.input_from(numbers)
            .exchange(lambda x: x)
            .inspect(lambda x: print(f"worker {worker.index}:\thello {x}"))
            .probe()
        )

    # Introduce records and watch. A round ends, on every worker, before the next begins.
    for round in range(10):
        if worker.index == 0:
            numbers.send(round)
        numbers.advance_to(round + 1)
        worker.step_while(lambda: probe.less_than(numbers.time))


if __name__ == "__main__":
    ps.execute_from_args(main)
