"""Where and when a job would run if it were submitted now: the decision itself, on a fork."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.controller.foresight import Foresight
from dovetail.controller.loop import Controller
from dovetail.controller.reading import places
from dovetail.controller.submission import Submission
from dovetail.model.event import Submitted
from dovetail.model.job import Status
from dovetail.model.live import Forecast

MOST_STEPS = 2000
"""Decisions looked ahead; further is guessing."""


def forecast(controller: Controller, submissions: Sequence[Submission]) -> Forecast:
    """What would become of the first of these jobs."""
    scheduler, now, count = controller.scheduler, controller.time.now(), len(submissions)
    ahead = Foresight(scheduler, controller.make, now)
    number = controller.roster.next_id
    ahead.submit([Submitted(submissions[0].spec(number, now))])
    if number not in ahead.scheduler.jobs:
        said = [reason for job, reason in ahead.scheduler.ended if job.id == number]
        return Forecast(False, said[0] if said else "it can never run here", jobs=count)
    why = ahead.scheduler.explain(number).text
    nodes = scheduler.cluster.nodes
    for step in range(MOST_STEPS):
        job = ahead.scheduler.jobs.get(number)
        if job is None:
            break
        if job.allocation is not None and job.status in (Status.STARTING, Status.RUNNING):
            held = places(job.allocation, nodes)
            waits = ahead.now - now
            return Forecast(True, why if waits else "", waits, held, count, step > 0)
        if not ahead.advance():
            break
    return Forecast(True, why, None, (), count, True)
