"""Rounds of the demo: the same jobs are submitted to a controller, and what came of them is kept.

Every job is so long that it takes its stated seconds with an even share of the processor, whatever
this machine is and whoever else is on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from dovetail.demo.measuring import Known, command
from dovetail.live import Box
from dovetail.live.box import ENDED
from dovetail.live.tasks import task
from dovetail.model.errors import UserError
from dovetail.model.live import Description

PACE = 0.5
"""Seconds between two looks at the queue."""
LENGTHS = {"image": 7.0, "speech": 3.5, "text": 3.5}
"""Seconds with an even share."""
MIX = (
    *("image", "text", "text", "speech", "image"),
    *("text", "image", "speech", "text", "image"),
)
"""Kinds of jobs in the order they come."""


@dataclass(frozen=True)
class Order:
    """A job to be submitted."""

    name: str
    kind: str
    steps: int


@dataclass(frozen=True)
class Outcome:
    """What was measured of one round."""

    #: seconds from submission to end, by job
    times: Mapping[str, float]
    #: steps per second of running, by job
    speeds: Mapping[str, float]
    makespan: float

    @property
    def jct(self) -> float:
        """Mean seconds from submission to end."""
        return mean(self.times.values())


def orders(found: Sequence[Known], cores: float) -> list[Order]:
    """The mix in steps of this machine, where so many cores go with a GPU."""
    known = {each.kind.name: each for each in found}
    # On a busy machine fewer steps take as long.
    ease = min(each.disturbed for each in found)
    each = {kind: LENGTHS[kind] * known[kind].speed(cores) * ease for kind in LENGTHS}
    return [
        Order(f"{kind}-{number}", kind, max(1, round(each[kind])))
        for number, kind in enumerate(MIX, 1)
    ]


def play(
    box: Box,
    wanted: Sequence[Order],
    watch: Callable[[list[Description]], None],
    stated: Mapping[str, str],
) -> Outcome:
    """Submit all at once and wait for them; `watch` sees the jobs again and again."""
    tasks = [
        task(command(order.kind, order.steps), gpus=1, name=order.name, model=order.kind, **stated)
        for order in wanted
    ]
    numbers = [receipt.jobs[0] for receipt in box.submit_all(tasks)]
    while True:
        jobs = _look(box, numbers)
        watch(jobs)
        if all(job.state in ENDED for job in jobs):
            return _outcome(wanted, jobs)
        time.sleep(PACE)


def _look(box: Box, numbers: Sequence[int]) -> list[Description]:
    """The jobs in the order they came, ended ones included."""
    there = {job.id: job for job in (*box.queue(), *box.history(limit=len(numbers)))}
    return [there.get(number) or box.show(number).job for number in numbers]


def _outcome(wanted: Sequence[Order], jobs: Sequence[Description]) -> Outcome:
    times, speeds, last = {}, {}, 0.0
    for order, job in zip(wanted, jobs, strict=True):
        if job.state != "done" or job.started is None or job.ended is None:
            raise UserError(f"job {job.id} ({job.name}) {job.state}: {job.reason or 'no reason'}")
        times[order.name] = job.ended - job.submitted
        speeds[order.name] = order.steps / (job.ended - job.started)
        last = max(last, job.ended)
    return Outcome(times, speeds, last - min(job.submitted for job in jobs))
