"""A controller over Slurm as a process of its own, which tests may kill. Ends when all jobs have.

    python slurm_controller.py FOLDER POLICY INTERVAL

The folder has `tasks.json`; the controller submits them when their time has come, each once.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from slurm_workload import COUNT, Task, read

from dovetail.controller.commands import Submit
from dovetail.controller.journal import Journal
from dovetail.controller.loop import Controller, Settings
from dovetail.controller.parts import Parts, composer
from dovetail.controller.store import Store
from dovetail.controller.submission import Submission
from dovetail.executors.slurm import Options, Slurm
from dovetail.model.costs import Costs
from dovetail.model.request import gang

RESTART = 2.0
"""Seconds a restart costs here: a stop and a start, with Slurm's latency."""


def parts_of(policy: str) -> Parts:
    return Parts(policy, costs=Costs(restart=RESTART))


def submission(number: int, task: Task, states: Path) -> Submission:
    return Submission(
        ("sh", "-c", COUNT),
        gang(task.gpus),
        f"t{number}",
        directory=str(states),
        environment={"STATE": str(states / str(number)), "STEPS": str(task.steps)},
        model=task.model,
        estimate=task.length,
        resumable=True,
        grace=5.0,
    )


async def submit(controller: Controller, tasks: list[Task], states: Path, begun: float) -> None:
    """Submit what is due; jobs are numbered in their order, so none is submitted twice."""
    while (done := controller.roster.next_id - 1) < len(tasks):
        due = [task for task in tasks[done:] if task.at <= time.monotonic() - begun]
        if due:
            numbered = enumerate(due, done + 1)
            await controller.ask(Submit(tuple(submission(n, t, states) for n, t in numbered)))
        await asyncio.sleep(0.05)
    while controller.roster:
        await asyncio.sleep(0.05)
    controller.end()


async def live(folder: Path, policy: str, interval: float) -> None:
    executor = Slurm(folder / "data", Options(interval=interval))
    store = Store(f"sqlite:///{folder / 'dovetail.db'}")
    parts = parts_of(policy)
    settings = Settings(pace=0.05)
    controller = Controller(
        composer(parts, executor), Journal(store), executor, settings, parts=parts
    )
    begun = folder / "begun"
    if not begun.exists():
        begun.write_text(str(time.monotonic()))
    tasks = read(folder / "tasks.json")
    feed = submit(controller, tasks, folder / "states", float(begun.read_text()))
    await asyncio.gather(controller.run(), feed)
    executor.close()
    store.close()
    (folder / "calls").write_text(str(dict(executor.commands.calls)))


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
