"""A diagnostic path: an operator that answers questions about itself, while its data never waits for them.

The operator has two inputs and two outputs: data goes from the first to the first, and questions on the
second get answers on the second. No operator may assume that a question brings no more data, unless the
operator declares so: with no path from question to data, the data's frontier passes times at which questions
may still be asked.

    python examples/diagnostic_path.py
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pointstamp as ps


def counter(
    words: ps.Stream[str], questions: ps.Stream[str]
) -> tuple[ps.Stream[tuple[str, int]], ps.Stream[tuple[str, int]]]:
    """Running counts of words, and the counts at the moments when the program asks."""
    builder = words.scope.operator("Count words")
    data = builder.new_input(words, ps.Exchange(lambda word: word))
    asked = builder.new_input(questions, ps.Exchange(lambda word: word))
    counted, counts = builder.new_output()
    answered, answers = builder.new_output()
    builder.set_summary(asked, counted, None)  # no question results in data
    builder.set_summary(data, answered, None)  # and no data in an answer

    def constructor(capabilities: list[ps.Capability], info: ps.OperatorInfo) -> Callable[..., None]:
        for capability in capabilities:
            capability.drop()
        totals: Counter[str] = Counter()

        def logic(inputs: Any, outputs: Any) -> None:
            for message, batch in inputs[data]:
                totals.update(batch)
                with outputs[counted].session(message) as session:
                    session.give_all([(word, totals[word]) for word in batch])
            for message, batch in inputs[asked]:
                with outputs[answered].session(message.retain(answered)) as session:
                    session.give_all([(word, totals[word]) for word in batch])

        return logic

    builder.build(constructor)
    return counts, answers


def run(rounds: int, workers: int) -> list[tuple[int, list[tuple[str, int]]]]:
    """By worker: the rounds of data that were over while a question could still come, and the answers."""

    def main(worker: ps.Worker) -> tuple[int, list[tuple[str, int]]]:
        text: ps.InputHandle[str] = ps.InputHandle()
        asking: ps.InputHandle[str] = ps.InputHandle()
        heard: list[tuple[str, int]] = []
        with worker.dataflow("Diagnostics") as scope:
            counts, answers = counter(text.to_stream(scope), asking.to_stream(scope))
            data_probe = counts.probe()
            answer_probe = answers.inspect(heard.append).probe()
        over = 0
        for round in range(rounds):
            text.send_batch(["to", "be"])
            text.advance_to(round + 1)
            worker.step_while(lambda: data_probe.less_than(round + 1))  # noqa: B023  # called at once
            over += answer_probe.less_equal(0)  # data has come this far; questions have not moved
        if worker.index == 0:
            asking.send_batch(["to", "not"])
        asking.close()
        text.close()
        worker.run()
        return over, heard

    return ps.execute(main, workers=workers)


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="An operator with a diagnostic path.")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(argv)
    results = run(options.rounds, options.workers)
    answers = sorted(answer for _, heard in results for answer in heard)
    ahead = min(over for over, _ in results)
    print(f"{ahead} rounds of data were over while a question at time 0 could still come.")
    print(f"The answers: {answers}")
    right = ahead == options.rounds and answers == [("not", 0), ("to", options.rounds * options.workers)]
    if not right:
        print("WRONG")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
