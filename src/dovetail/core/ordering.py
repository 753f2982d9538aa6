"""Who goes first: the base class of all orderings.

A new ordering is normally one method, `key`: smaller goes first. Keys are floats, or tuples where
`slope` is zero. Ties fall by submit time, then id, without the author's help. The planner keeps
keys; it asks again when a job's state changes, when `turn` said so, and every `round` seconds for
the jobs named by `rekeys`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dovetail.core.view import Amounts, View
from dovetail.model.errors import UserError
from dovetail.model.job import Job, JobSpec


@dataclass(frozen=True)
class Ordering:
    """Parameters are dataclass fields: `--policy name:skip=true` sets them."""

    #: look past jobs that do not fit
    skip: bool = False
    #: earlier jobs displace later ones that run
    preempt: bool = False
    #: none, easy (reserve for the head) or conservative (reserve for all)
    backfill: str = "none"
    #: how many waiting jobs a backfilling walk looks at behind a reservation
    depth: int = 100
    #: a job that has waited that many seconds is not passed any more; none: it may be for ever
    patience: float | None = None
    #: lower: higher priorities come first and displace running jobs of lower ones; or none
    displace: str = "none"
    #: seconds a job keeps its devices, once it has them, before it may be displaced
    min_run: float = 0.0

    #: whose keys are asked for again every `round` seconds: none, running or all
    rekeys: ClassVar[str] = "none"
    #: does a job of rate 1 rank no worse for being started and no better for being stopped, and
    #: does its rank get worse only at re-rankings and turns? Saying so spares walks much work
    steady: ClassVar[bool] = False
    #: does `prefix` differ by tenant?
    by_tenant: ClassVar[bool] = False
    #: does the order depend on what is free? Then `score` is asked at every decision
    by_free: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.backfill not in ("none", "easy", "conservative"):
            raise UserError(f"backfill={self.backfill}: say none, easy or conservative")
        if self.depth < 1:
            raise UserError(f"depth={self.depth}: a backfilling walk must look at one job at least")
        if self.patience is not None and not 0 < self.patience < float("inf"):
            raise UserError(f"patience={self.patience}: must be more than 0 seconds, or none")
        if self.backfill != "none" and self.preempt:
            raise UserError("backfill and preempt exclude each other: drop one of them")
        if (self.by_tenant or self.by_free) and (self.preempt or self.backfill != "none"):
            kind = "by tenant" if self.by_tenant else "by what is free"
            raise UserError(f"orders {kind} neither preempt nor backfill: drop that parameter")
        self._check_displacing()
        if self.pause is not None and not self.pause > 0:
            raise UserError(f"round={self.pause}: must be more than 0 seconds")

    def _check_displacing(self) -> None:
        if self.displace not in ("none", "lower"):
            raise UserError(f"displace={self.displace}: say none or lower")
        if self.displace != "none":
            if self.preempt or self.backfill == "conservative":
                raise UserError("displace excludes preempt and backfill=conservative: drop one")
            if (self.by_tenant or self.by_free) and not self.skip:
                raise UserError("displace needs skip=true here: the order changes with who holds")
        if not 0 <= self.min_run < float("inf"):
            raise UserError(f"min-run={self.min_run}: must be 0 seconds or more")
        if self.min_run and not self.preempt and self.displace == "none":
            raise UserError("min-run protects from being displaced: give preempt or displace too")

    @property
    def pause(self) -> float | None:
        """Seconds between re-rankings; None: order changes only with events."""
        return None

    def key(self, job: Job, view: View) -> Any:
        """The rank of a job now; smaller goes first."""
        raise NotImplementedError

    def slope(self, gpus: int) -> float:
        """How fast the key of a running job of that size grows by itself, per second."""
        return 0.0

    def turn(self, job: Job, view: View) -> float | None:
        """The next moment at which this job's key jumps by itself, if any."""
        return None

    def turned(self, job: Job, view: View) -> None:
        """That moment has come; the job's `mark` may be changed before `key` is asked again."""

    def account(self, spec: JobSpec) -> str:
        """Whom a job counts for, where `by_tenant`."""
        return spec.tenant

    def prefix(self, tenant: str, view: View, extra: dict[str, Amounts]) -> float:
        """Rank of a tenant, compared before keys; `extra`: what this plan gives each."""
        return 0.0

    def score(self, job: Job, view: View, given: Amounts) -> float:
        """Rank of a job that is first among those of its request, compared before keys.

        `view.free` is what was free when the decision began and `given` what it has given away so
        far; with more given, no score may become smaller.
        """
        return 0.0

    def left(self, job: Job, view: View, done: bool) -> None:
        """A job let go of its devices, because it is done or for another reason."""

    def admit(self, job: Job, view: View) -> str | None:
        """Called once per job at submission; a sentence refuses the job."""
        return None

    def report(self) -> dict[str, Any]:
        """Figures the ordering tells about itself, for the result."""
        return {}

    def snapshot(self) -> Any:
        """State that jobs do not carry, as plain values."""
        return None

    def restore(self, state: Any) -> None:
        """Take back what `snapshot` gave."""
