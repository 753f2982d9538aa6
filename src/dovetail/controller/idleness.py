"""Jobs that hold GPUs and make nothing of them: noticed, and dealt with as the admin chose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from dovetail.controller.intake import Intake, seconds
from dovetail.controller.roster import REQUEUE, Live
from dovetail.executors.protocol import Attempt, Use
from dovetail.model.amounts import duration
from dovetail.model.errors import UserError
from dovetail.model.event import Cancelled

Action = Literal["nothing", "tell", "requeue", "cancel"]


@dataclass(frozen=True)
class IdleRule:
    """When a job counts as idle, and what then happens to it."""

    #: seconds
    after: float = 1800.0
    #: percent
    below: float = 5.0
    action: Action = "tell"

    def reason(self, of: str) -> str:
        """The sentence its owner reads."""
        return f"it has used less than {self.below:g} % {of} for {seconds(self.after)}"


def read_rule(text: str | None) -> IdleRule:
    """`30m:cancel`, `1h:requeue`, `30m` (which only tells), `nothing`."""
    if text is None:
        return IdleRule()
    after, _, action = text.partition(":")
    if text == "nothing":
        return IdleRule(action="nothing")
    for known in get_args(Action):
        if known == (action or "tell"):
            return IdleRule(duration(after), action=known)
    raise UserError(f"{text!r}: write 30m:tell, 30m:requeue, 30m:cancel or nothing")


class Idleness:
    """Since when attempts have been idle."""

    def __init__(self, rule: IdleRule) -> None:
        self.rule = rule
        self._since: dict[Attempt, float] = {}

    def look(self, uses: Mapping[Attempt, Use], intake: Intake) -> None:
        """Take in one round of measurements."""
        now, rule = intake.entry.now, self.rule
        before, self._since = self._since, {}
        for attempt, use in uses.items():
            live = intake.roster.get(attempt.job)
            if live is None or live.run is None or live.run.attempt != attempt:
                continue
            if use.percent >= rule.below or not live.submission.request.gpus:
                self._busy(live, use, intake)
                continue
            since = self._since[attempt] = before.get(attempt, now)
            if now - since >= rule.after:
                self._act(live, use, intake)

    def _busy(self, live: Live, use: Use, intake: Intake) -> None:
        if live.reason and live.reason == self.rule.reason(use.of):
            intake.note(live, "")

    def _act(self, live: Live, use: Use, intake: Intake) -> None:
        assert live.run is not None
        reason = self.rule.reason(use.of)
        if live.run.fate or live.run.stopping or live.reason == reason:
            return
        if self.rule.action == "requeue":
            intake.end_run(live, REQUEUE, reason)
            return
        intake.note(live, reason)
        if self.rule.action == "cancel":
            intake.events.append(Cancelled(live.id))
