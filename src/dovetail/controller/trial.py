"""Could a job ever run here? Asked of a scheduler of its own that has nothing on its machines.

For jobs the real scheduler does not hear of yet: what can never fit is refused when it is
submitted, not when it is released.
"""

from __future__ import annotations

from collections.abc import Callable

from dovetail.core.scheduler import Scheduler
from dovetail.model.event import Cancelled, Stopped, Submitted
from dovetail.model.job import JobSpec
from dovetail.model.plan import Reject

ENOUGH = 4096
"""Answers that are remembered before all are forgotten."""


class Trial:
    """Tries jobs out, one after the other."""

    def __init__(self, make: Callable[[], Scheduler]) -> None:
        self._make = make
        self._scheduler: Scheduler | None = None
        self._answers: dict[JobSpec, str | None] = {}

    def refusal(self, spec: JobSpec) -> str | None:
        """Why such a job can never run, or None."""
        alike = spec._replace(id=0, name="", submit=0.0, deadline=None)
        if alike not in self._answers:
            if len(self._answers) >= ENOUGH:
                self._answers.clear()
            self._answers[alike] = self._try(spec)
        return self._answers[alike]

    def _try(self, spec: JobSpec) -> str | None:
        if self._scheduler is None:
            self._scheduler = self._make()
        scheduler = self._scheduler
        plan = scheduler.step(0.0, [Submitted(spec)])
        # Whatever was decided is undone: the next one finds all machines empty again.
        scheduler.step(0.0, [Cancelled(spec.id)])
        scheduler.step(0.0, [Stopped(spec.id)])
        if scheduler.jobs:
            self._scheduler = None
        refused = [action.cause for action in plan.actions if isinstance(action, Reject)]
        return refused[0] if refused else None
