"""Questions to an index that is kept up to date: who follows whom, two steps away.

One dataflow keeps the index: who follows whom, by follower, while people follow and stop following. It
knows nothing of questions. Each kind of question is a dataflow of its own that is added later and uses the
same index; a question is a record, and its answer stays right until the question is withdrawn. The example
asks, changes the graph, and compares the answers with a search.

    python examples/interactive_query.py --people 20000 --follows 60000 --questions 20
"""

import argparse
import random
import time
from collections import Counter
from typing import Any

import pointstamp as ps
from pointstamp import key, left, right

Follow = tuple[int, int]


def two_away(follows: set[Follow], person: int) -> set[int]:
    """The people followed by those that a person follows, by a search."""
    near = {other for one, other in follows if one == person}
    return {other for one, other in follows if one in near}


def main(worker: ps.Worker, arguments: argparse.Namespace) -> None:
    """Builds the index, adds the dataflow of questions, and asks while the graph changes."""
    chance = random.Random(arguments.seed)
    # The index. Its trace is all that others need.
    with worker.dataflow("index") as scope:
        graph, follows = scope.new_collection()
        index = follows.arrange()
        trace, indexed = index.trace(), index.to_collection().probe()
    there: set[Follow] = set()
    while len(there) < arguments.follows:
        one, other = chance.randrange(arguments.people), chance.randrange(arguments.people)
        there.add((one, other))
    graph.insert_many(there)
    graph.advance_to(1)
    worker.step_while(lambda: indexed.less_than(1))

    # A kind of question: the index is imported, not copied.
    answers: Counter[Follow] = Counter()

    def note(answer: Follow, _: Any, diff: int) -> None:
        answers[answer] += diff
        if not answers[answer]:
            del answers[answer]

    with worker.dataflow("two away") as scope:
        asked, people = scope.new_collection()
        known = scope.import_trace(trace)
        first = people.map(lambda person: (person, None)).join(known, (right, key))
        found = first.join(known, (left, right)).distinct()
        answered = found.inspect(note).probe()
    trace.close()
    asked.advance_to(1)

    now = 1
    took = []
    current: list[int] = []
    for question in range(arguments.questions):
        person = chance.choice(sorted(there))[0]
        current.append(person)
        asked.insert(person)
        if len(current) > 3:
            asked.remove(current.pop(0))  # its answer is kept up no longer
        # The graph keeps changing.
        gone = chance.choice(sorted(there))
        come = (person, chance.randrange(arguments.people))
        there.discard(gone)
        graph.remove(gone)
        if come not in there:
            there.add(come)
            graph.insert(come)
        now += 1
        began = time.perf_counter()
        graph.advance_to(now)
        asked.advance_to(now)
        worker.step_while(lambda now=now: answered.less_than(now))  # type: ignore[misc]
        took.append(time.perf_counter() - began)
        if question % 5 == 4:
            wanted = Counter((who, other) for who in set(current) for other in two_away(there, who))
            assert answers == wanted, person
    graph.close()
    asked.close()
    median = sorted(took)[len(took) // 2]
    print(
        f"{arguments.questions} questions to {len(there)} pairs while these changed; half within "
        f"{median * 1000:.1f} ms"
    )
    print(f"{len(answers)} answers are right now, for {len(set(current))} people")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--follows", type=int, default=60_000)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    ps.execute(lambda worker: main(worker, chosen))
