"""Every few seconds: who else is on the machines, and do our jobs use what they hold?

Asks the engine and hands what it says on. What cannot be measured this time is measured next time.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from dovetail.controller.idleness import Idleness, IdleRule
from dovetail.controller.intake import Intake
from dovetail.controller.others import Others
from dovetail.core.scheduler import Scheduler
from dovetail.executors.protocol import Attempt, Executor, Use

log = logging.getLogger(__name__)


class Watch:
    """Looks at the machines now and then."""

    def __init__(
        self, executor: Executor, scheduler: Scheduler, every: float, rule: IdleRule
    ) -> None:
        self.executor = executor
        self.every = every
        self._others = Others(scheduler)
        self._idleness = Idleness(rule)
        self._next = float("-inf")
        #: what attempts made of their devices when last looked at
        self.uses: Mapping[Attempt, Use] = {}

    def look(self, intake: Intake) -> None:
        """Take in what there is to see, if it is time."""
        now = intake.entry.now
        if now < self._next:
            return
        self._next = now + self.every
        try:
            found = self.executor.used_by_others()
            idle = self._idleness.rule.action != "nothing"
            self.uses = self.executor.uses() if idle else {}
        except Exception as error:
            # Engines are other people's code: a look that fails is no reason to end.
            log.warning("the machines could not be looked at: %s", error)
            return
        intake.events += self._others.look(found, intake.scheduler)
        self._idleness.look(self.uses, intake)
