"""What the controller's log says: one line for each thing that was decided or came to an end."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from dovetail.controller.loop import Controller
from dovetail.controller.reading import places
from dovetail.model.allocation import Allocation
from dovetail.model.event import Event, Submitted
from dovetail.model.plan import Change, Plan, Reject, Resume, Start, Stop, Suspend

log = logging.getLogger("dovetail")


class Teller:
    """Writes down decisions for people who watch."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def __call__(self, now: float, events: Sequence[Event], plan: Plan) -> None:
        """One decision."""
        new = [event.spec for event in events if isinstance(event, Submitted)]
        if len(new) > 3:
            log.info("%d jobs submitted, %s to %s", len(new), new[0].id, new[-1].id)
        else:
            for spec in new:
                log.info("job %d (%s) submitted by %s", spec.id, spec.name, spec.user or "?")
        for action in plan.actions:
            self._act(action)
        for job, reason in self._controller.scheduler.ended:
            log.info("job %d (%s) %s%s", job.id, job.spec.name, job.status, _because(reason))

    def _act(self, action: object) -> None:
        if isinstance(action, Start | Resume):
            verb = "starts" if isinstance(action, Start) else "goes on"
            awaits = f", after {', '.join(map(str, action.awaits))}" if action.awaits else ""
            log.info("job %d %s on %s%s", action.job, verb, self._on(action.allocation), awaits)
        elif isinstance(action, Change):
            log.info("job %d now has %s", action.job, self._on(action.allocation))
        elif isinstance(action, Stop | Suspend):
            verb = "is stopped" if isinstance(action, Stop) else "is suspended"
            log.info("job %d %s%s", action.job, verb, _because(action.cause))
        elif isinstance(action, Reject):
            log.info("job %d rejected%s", action.job, _because(action.cause))

    def _on(self, allocation: Allocation) -> str:
        nodes = self._controller.scheduler.cluster.nodes
        return " + ".join(map(str, places(allocation, nodes)))


def _because(reason: str) -> str:
    return f": {reason}" if reason else ""
