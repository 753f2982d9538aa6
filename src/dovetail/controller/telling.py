"""What the controller's log says: one line for each thing that was decided or came to an end."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from dovetail.controller.loop import Controller
from dovetail.controller.reading import places
from dovetail.model.allocation import Allocation
from dovetail.model.event import Event, Submitted
from dovetail.model.plan import Action, Change, Plan, Reject, Resume, Start, Stop, Suspend

log = logging.getLogger("dovetail")


class Teller:
    """Writes down decisions for people who watch."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def __call__(self, now: float, events: Sequence[Event], plan: Plan) -> None:
        """One decision."""
        new = [event.spec for event in events if isinstance(event, Submitted)]
        if len(new) > 3:
            first, last = (self._controller.roster.called(spec.id) for spec in (new[0], new[-1]))
            log.info("%d jobs submitted, %s to %s", len(new), first, last)
        else:
            for spec in new:
                named, user = self._controller.roster.called(spec.id), spec.user or "?"
                log.info("job %s (%s) submitted by %s", named, spec.name, user)
        for action in plan.actions:
            self._act(action)
        for job, reason in self._controller.scheduler.ended:
            named, why = self._controller.roster.called(job.id), _because(reason)
            log.info("job %s (%s) %s%s", named, job.spec.name, job.status, why)

    def _act(self, action: Action) -> None:
        named = self._controller.roster.called(action.job)
        if isinstance(action, Start | Resume):
            verb = "starts" if isinstance(action, Start) else "goes on"
            awaits = (
                f", after {self._controller.roster.called(*action.awaits)}" if action.awaits else ""
            )
            log.info("job %s %s on %s%s", named, verb, self._on(action.allocation), awaits)
        elif isinstance(action, Change):
            log.info("job %s now has %s", named, self._on(action.allocation))
        elif isinstance(action, Stop | Suspend):
            verb = "is stopped" if isinstance(action, Stop) else "is suspended"
            log.info("job %s %s%s", named, verb, _because(action.cause))
        elif isinstance(action, Reject):
            log.info("job %s rejected%s", named, _because(action.cause))

    def _on(self, allocation: Allocation) -> str:
        nodes = self._controller.scheduler.cluster.nodes
        return " + ".join(map(str, places(allocation, nodes)))


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""
