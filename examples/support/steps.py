"""Shows the progress of a Spark program: a line with a bar for each of its steps.

A bar counts the tasks of the Spark jobs that a step has started; a step that starts none only shows that
it goes on. Where the output is no terminal, each step is a line once it is over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

POLL = 0.2  # seconds


class Steps:
    """The steps of a program on a Spark context."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.context: Any = None
        self._count = 0

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """A step: the jobs that are started in the block are its tasks."""
        self._count += 1
        group = f"step {self._count}"
        if self.context is not None:
            self.context.setJobGroup(group, title)
        start = time.perf_counter()
        columns = [
            SpinnerColumn(finished_text="[green]✓"),
            TextColumn("{task.description:<44}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[tasks]:>13}"),
            TimeElapsedColumn(),
        ]
        if not self.console.is_terminal:
            yield
            self.console.print(f"✓ {title}: {time.perf_counter() - start:.1f} s")
            return
        with Progress(*columns, console=self.console) as progress:
            bar = progress.add_task(title, total=None, tasks="")
            over = threading.Event()
            watcher = threading.Thread(target=self._watch, args=(group, progress, bar, over), daemon=True)
            watcher.start()
            try:
                yield
            finally:
                over.set()
                watcher.join()
            # A bar that is over is full, also where a stage ended after the last look at it.
            total = progress.tasks[0].total
            said = f"{total:.0f} tasks" if total else ""
            progress.update(bar, total=total or 1, completed=total or 1, tasks=said)

    def _watch(self, group: str, progress: Progress, bar: TaskID, over: threading.Event) -> None:
        """Follows the stages of a step's jobs."""
        stages: dict[int, tuple[int, int]] = {}
        while not over.wait(POLL) and self.context is not None:
            tracker = self.context.statusTracker()
            for job in map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)):
                for stage in map(tracker.getStageInfo, job.stageIds if job else ()):
                    # A step whose results exist already is left out by Spark, and has none of either.
                    if stage is not None and stage.numActiveTasks + stage.numCompletedTasks > 0:
                        stages[stage.stageId] = stage.numCompletedTasks, stage.numTasks
            if stages:
                done, total = (sum(counts) for counts in zip(*stages.values(), strict=True))
                progress.update(bar, completed=done, total=total, tasks=f"{done}/{total} tasks")
