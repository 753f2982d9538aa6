"""Where and when a job would run if it were submitted now: the decision itself, on a fork.

The fork is made at once and may be driven in another thread, so that nobody waits for the answer
but whoever asked.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from dovetail.answers import lengths
from dovetail.answers.foresight import Foresight, Lengths
from dovetail.controller.loop import Controller
from dovetail.controller.present import whole
from dovetail.controller.reading import places
from dovetail.controller.submission import Submission
from dovetail.model.event import Submitted
from dovetail.model.job import Job
from dovetail.model.live import Forecast

NEVER = float("inf")
PATIENCE = 2.0
"""Seconds spent on looking ahead; further is guessing anyway."""


class Forecasting:
    """A question about the future, with all that is needed to answer it."""

    def __init__(self, controller: Controller, submissions: Sequence[Submission]) -> None:
        self._nodes = controller.scheduler.cluster.nodes
        self._begun = controller.time.now()
        self._first, self._count = submissions[0], len(submissions)
        self._number = controller.roster.next_id
        self._waits = set(self._first.after) & controller.roster.keys()
        self._named = controller.roster.called(*sorted(self._waits))
        self._lengths = believed(controller, {self._number: self._first})
        self._rests = dict(controller.roster.resting)
        self._present = whole(controller)

    def answer(self) -> Forecast:
        """What would become of the first of the jobs."""
        with self._present.forked() as forked:
            wake_at = self._present.wake_at
            return self._foreseen(
                Foresight(forked, self._begun, self._lengths, wake_at, self._rests)
            )

    def _foreseen(self, ahead: Foresight) -> Forecast:
        until = time.monotonic() + PATIENCE
        if self._first.held:
            return self._untold("its owner would hold it")
        if self._waits:
            why = f"it would wait for job{'s' * (len(self._waits) > 1)} {self._named} to end"
            while self._waits & ahead.scheduler.jobs.keys():
                if time.monotonic() > until or not ahead.advance():
                    return self._untold(why)
        else:
            why = ""
        ahead.step([Submitted(self._first.spec(self._number, ahead.now))])
        if self._number not in ahead.scheduler.jobs:
            said = [reason for job, reason in ahead.scheduler.ended if job.id == self._number]
            return Forecast(False, said[0] if said else "can never run here", jobs=self._count)
        why = why or ahead.scheduler.explain(self._number).text
        while job := ahead.scheduler.jobs.get(self._number):
            if job.allocation is not None:
                held, waits = places(job.allocation, self._nodes), ahead.now - self._begun
                reason = why if waits or job.awaits else ""
                return Forecast(True, reason, waits, held, self._count, waits > 0)
            if time.monotonic() > until or not ahead.advance():
                break
        return self._untold(why)

    def _untold(self, why: str) -> Forecast:
        return Forecast(True, why, jobs=self._count)


def believed(controller: Controller, new: Mapping[int, Submission]) -> Lengths:
    """Lengths as far as they are more than a guess; a time limit ends any job."""
    roster, predictor = controller.roster, controller.scheduler.predictor
    now = controller.time.now()

    def length(job: Job) -> float:
        live = roster.get(job.id)
        asked = live.submission if live is not None else new.get(job.id)
        told = live.progress if live is not None else None
        known = predictor.knows(job.spec) or bool(told and told.total and told.rate > 0)
        expected = lengths.believed(predictor, job, now) if known else NEVER
        limit = asked.time_limit if asked is not None else None
        return expected if limit is None else min(expected, limit)

    return length
