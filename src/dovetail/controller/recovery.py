"""After a restart: ask the engine what became of everything the journal says was under way.

Effects of a plan are performed after it was written down, so of each attempt the engine may know
less than the journal, never more. What it does not know is started now or counts as lost; what was
asked once is asked again, which engines must take calmly.
"""

from __future__ import annotations

from dovetail.controller.performing import Effect, Performer
from dovetail.controller.roster import OVER, Live, Roster, Run
from dovetail.core.scheduler import Scheduler
from dovetail.executors.protocol import Ended
from dovetail.model.job import Job, Status
from dovetail.model.plan import Change, Plan, Resume

LOST = "it was lost while the controller was away"
NEVER_BEGAN = "it was stopped before it began"


def reconcile(
    scheduler: Scheduler, roster: Roster, performer: Performer, last: Plan
) -> list[Effect]:
    """The calls that bring the engine to where the journal is; losses become news."""
    in_doubt = {action.job: action for action in last.actions}
    effects: list[Effect] = []
    for live in [*roster.values(), *roster.orphans.values()]:
        if live.run is None:
            continue
        if not performer.executor.adopt(performer.launch(live, live.run)):
            effects += _unknown(live, live.run, performer)
        elif live.run.stopping or live.state in OVER:
            effects.append(performer.stop(live.run.attempt, live.submission.grace))
        else:
            job = scheduler.jobs[live.id]
            effects += _known(job, live.run, performer, in_doubt.get(live.id))
    return effects


def _unknown(live: Live, run: Run, performer: Performer) -> list[Effect]:
    """The engine never heard of an attempt, or forgot it."""
    if not run.confirmed and not run.stopping and live.state not in OVER:
        return [performer.start(live, run)]
    reason = LOST if run.confirmed else NEVER_BEGAN
    performer.news.append(Ended(run.attempt, None, None, reason))
    return []


def _known(job: Job, run: Run, performer: Performer, doubtful: object) -> list[Effect]:
    if job.status is Status.SUSPENDED or job.residual is not None:
        return [performer.suspend(run.attempt)]
    if isinstance(doubtful, Change):
        return [performer.resize(run.attempt, run.allocation)]
    if isinstance(doubtful, Resume) and not doubtful.awaits:
        return [performer.resume(run.attempt)]
    return []
