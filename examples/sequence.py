"""A sequence: workers push commands, and all of them apply all of these in the same order.

Deposits and withdrawals do not commute where an account cannot be overdrawn, yet every worker ends with the
same accounts: a sequencer gives one order to the values that any worker pushes.

    python examples/sequence.py --commands 1000 --workers 4
"""

import argparse
import random
import sys

import pointstamp as ps

Command = tuple[str, int]
"""An account, and the amount to add to it; a negative one is a withdrawal."""

ACCOUNTS = ["ann", "bob", "cleo"]


def run(commands: int, workers: int) -> list[dict[str, int]]:
    """The accounts as each worker has them at the end."""

    def main(worker: ps.Worker) -> dict[str, int]:
        sequence: ps.Sequencer[Command] = worker.sequencer()
        chosen = random.Random(worker.index)
        accounts = dict.fromkeys(ACCOUNTS, 0)
        applied = pushed = 0
        while applied < commands * worker.peers:
            if pushed < commands:
                sequence.push((chosen.choice(ACCOUNTS), chosen.randint(-100, 100)))
                pushed += 1
                worker.step()
            else:
                worker.step_or_park()
            while (command := sequence.next()) is not None:
                account, amount = command
                if accounts[account] + amount >= 0:  # else it is refused, on every worker
                    accounts[account] += amount
                applied += 1
        return accounts

    return ps.execute(main, workers=workers)


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="One order for the commands of all workers.")
    parser.add_argument("--commands", type=int, default=200, help="from each worker (default: 200)")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args(argv)
    results = run(options.commands, options.workers)
    for worker, accounts in enumerate(results):
        print(f"worker {worker}: {accounts}")
    if any(accounts != results[0] for accounts in results):
        print("WRONG: the workers disagree")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
