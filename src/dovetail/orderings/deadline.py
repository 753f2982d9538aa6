"""Earliest deadline first, with a word at submission on whether the deadline can be kept.

The admission test is the classical demand bound on believed lengths: the job alone must fit before
its deadline, and the GPU-seconds of all jobs due no later must fit into the capacity until then.
By default it only reports (`promised`, `doubtful`); `admission=reject` refuses doubtful jobs.
Jobs without a deadline come last, in order of arrival.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dovetail.core.ordering import Ordering
from dovetail.core.view import View
from dovetail.model.errors import UserError
from dovetail.model.job import Job

NEVER = float("inf")


@dataclass(frozen=True)
class Deadline(Ordering):
    """EDF; strict unless told otherwise."""

    #: report or reject
    admission: str = "report"
    _verdicts: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.admission not in ("report", "reject"):
            raise UserError(f"deadline:admission={self.admission}: say report or reject")

    def key(self, job: Job, view: View) -> float:
        """The deadline."""
        return NEVER if job.spec.deadline is None else job.spec.deadline

    def admit(self, job: Job, view: View) -> str | None:
        """Test the deadline and remember the verdict."""
        if job.spec.deadline is None:
            return None
        doubt = self._doubt(job, job.spec.deadline, view)
        verdict = "doubtful" if doubt else "promised"
        self._verdicts[verdict] = self._verdicts.get(verdict, 0) + 1
        if doubt and self.admission == "reject":
            return doubt
        return None

    def _doubt(self, job: Job, deadline: float, view: View) -> str:
        needed = view.now + job.expected
        if needed > deadline:
            return f"its deadline is {needed - deadline:.0f} s too early even if it started now"
        demand = job.expected * job.spec.request.gpus
        demand += sum(
            other.time_left(view.now) * other.spec.request.gpus
            for other in view.jobs.values()
            if other.spec.deadline is not None and other.spec.deadline <= deadline
        )
        capacity = view.gpus * (deadline - view.now)
        if demand > capacity:
            return f"jobs due by then need {demand / max(capacity, 1e-9):.2f} times the capacity"
        return ""

    def report(self) -> dict[str, Any]:
        """How many deadlines were promised at submission, and how many were in doubt."""
        return {"admission": {"promised": 0, "doubtful": 0, **self._verdicts}}

    def snapshot(self) -> Any:
        """The verdicts so far."""
        return dict(self._verdicts)

    def restore(self, state: Any) -> None:
        """Take the verdicts back."""
        self._verdicts.update(state)
