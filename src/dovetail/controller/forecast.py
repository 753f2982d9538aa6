"""Where and when a job would run if it were submitted now: the decision itself, on a fork."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.answers.foresight import Foresight, believed, fork
from dovetail.controller.loop import Controller
from dovetail.controller.reading import places
from dovetail.controller.submission import Submission
from dovetail.model.event import Submitted
from dovetail.model.live import Forecast

MOST_STEPS = 5000
"""Decisions looked ahead; further is guessing."""


def forecast(controller: Controller, submissions: Sequence[Submission]) -> Forecast:
    """What would become of the first of these jobs."""
    scheduler, now, count = controller.scheduler, controller.time.now(), len(submissions)
    number = controller.roster.next_id
    ahead = Foresight(fork(controller.make, scheduler.image()), now, believed, controller.wake_at)
    first = ahead.scheduler
    ahead.step([Submitted(submissions[0].spec(number, now))])
    if number not in first.jobs and number not in ahead.started:
        said = [reason for job, reason in first.ended if job.id == number]
        return Forecast(False, said[0] if said else "can never run here", jobs=count)
    why = first.explain(number).text
    for step in range(MOST_STEPS):
        if number in ahead.started:
            waits = ahead.started[number] - now
            held = first.jobs[number].allocation if number in first.jobs else None
            where = places(held, scheduler.cluster.nodes) if held else ()
            return Forecast(True, why if waits else "", waits, where, count, step > 0)
        if not ahead.advance():
            break
    return Forecast(True, why, None, (), count, True)
