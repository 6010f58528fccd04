"""Two threads that lower nodes at once find modules of rules complete."""

import subprocess
import sys

PROGRAM = """
import sys
import threading

import pointstamp
from pointstamp.lowering import rules
from pointstamp.plan import columns

register = rules.rule
threads = []


def registering(*kinds):
    # The first rule is registered while the module is imported: its last functions are not there yet.
    def decorate(function):
        made = register(*kinds)(function)
        if not threads:
            threads.append(threading.Thread(target=look))
            threads[0].start()
            threads[0].join(0.5)
        return made

    return decorate


def look():
    rules.rules_of(columns.MAP_BATCHES)
    print(hasattr(sys.modules["pointstamp.lowering.columns"], "_read_schema"))


rules.rule = registering
rules.rules_of(columns.MAP_BATCHES)
threads[0].join()
"""


def test_a_rule_of_a_module_that_another_thread_imports_is_waited_for() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True"], done.stderr
