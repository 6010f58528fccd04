"""Groups of friends, live: friendships begin and end, and each person's group is known after each change.

The dataflow is one line, `graphs.connected_components`. A friendship that ends may split a group, which takes
nothing that was computed of the others. The example checks its groups against a search from scratch now and
then.

    python examples/live_components.py --people 2000 --friendships 2200 --changes 300
"""

import argparse
import random
from collections import Counter
from typing import Any

import pointstamp as ps
from pointstamp import graphs

Friendship = tuple[int, int]


def groups_of(friendships: set[Friendship]) -> dict[int, int]:
    """The least member of each person's group, by a search from scratch."""
    near: dict[int, set[int]] = {}
    for one, other in friendships:
        near.setdefault(one, set()).add(other)
        near.setdefault(other, set()).add(one)
    least: dict[int, int] = {}
    for person in sorted(near):
        waiting = [] if person in least else [person]
        while waiting:
            member = waiting.pop()
            if least.setdefault(member, person) == person:
                waiting.extend(friend for friend in near[member] if friend not in least)
    return least


def main(worker: ps.Worker, arguments: argparse.Namespace) -> None:
    """Builds the dataflow, changes friendships one at a time, and prints the effect of each change."""
    chance = random.Random(arguments.seed)
    groups: dict[int, int] = {}
    changed: Counter[str] = Counter()

    def note(record: tuple[int, int], _: Any, diff: int) -> None:
        changed["updates"] += 1
        person, least = record
        if diff > 0:
            groups[person] = least
        elif groups.get(person) == least:
            del groups[person]

    with worker.dataflow() as scope:
        handle, friendships = scope.new_collection()
        components = graphs.connected_components(friendships).consolidate()
        probe = components.inspect(note).probe()

    def two() -> Friendship:
        one, other = chance.sample(range(arguments.people), 2)
        return one, other

    there: set[Friendship] = set()
    while len(there) < arguments.friendships:
        there.add(two())
    handle.insert_many(there)
    handle.advance_to(1)
    worker.step_while(lambda: probe.less_than(1))
    print(f"{len(groups)} people in {len(set(groups.values()))} groups, from {changed['updates']} updates")
    assert groups == groups_of(there)

    changed.clear()
    for time in range(1, arguments.changes + 1):
        if time % 2:
            ended = chance.choice(sorted(there))
            there.discard(ended)
            handle.remove(ended)
        else:
            begun = two()
            if begun not in there:
                there.add(begun)
                handle.insert(begun)
        handle.advance_to(time + 1)
        worker.step_while(lambda now=time + 1: probe.less_than(now))  # type: ignore[misc]
        if time % 50 == 0:
            assert groups == groups_of(there)
    handle.close()
    print(
        f"{arguments.changes} friendships began or ended: {changed['updates']} updates, now "
        f"{len(set(groups.values()))} groups"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--people", type=int, default=2000)
    parser.add_argument("--friendships", type=int, default=2200)
    parser.add_argument("--changes", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    ps.execute(lambda worker: main(worker, chosen))
