"""Orders that look at who got how much: finish-time fairness, dominant share, decayed usage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from dovetail.core.ordering import Ordering
from dovetail.core.view import Amounts, View
from dovetail.model.errors import UserError
from dovetail.model.job import Job, JobSpec

NONE = (0, 0, 0)


@dataclass(frozen=True)
class FinishTimeFairness(Ordering):
    """Whoever is treated worst goes first (Themis, NSDI'20): largest ratio first, preemptive.

    The ratio is the time the job will have spent here, age plus believed time left, over the time
    it would take on a private cluster of its fair share: its length, stretched where its GPUs
    exceed capacity divided by the number of active jobs. That number is taken at each re-ranking,
    so that ratios of one round can be compared; restarts are left out, or a job that was just
    stopped would rank before the one it was stopped for.
    """

    preempt: bool = True
    round: float = 300.0
    #: the round and the number of active jobs when it began
    _active: dict[int, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    rekeys: ClassVar[str] = "all"

    @property
    def pause(self) -> float | None:
        """All ratios move with time."""
        return self.round

    def key(self, job: Job, view: View) -> float:
        """The ratio, turned round."""
        share = view.gpus / self._count(view)
        alone = max(job.expected, 1e-9) * max(1.0, job.spec.request.gpus / share)
        return -(view.now - job.spec.submit + job.time_left(view.now)) / alone

    def _count(self, view: View) -> int:
        grid = int(view.now // self.round)
        if grid not in self._active:
            self._active.clear()
            self._active[grid] = max(len(view.jobs), 1)
        return self._active[grid]

    def snapshot(self) -> Any:
        """The round and its number of active jobs."""
        return [list(pair) for pair in self._active.items()]

    def restore(self, state: Any) -> None:
        """Take them back."""
        self._active.update(dict(state))


def weights(text: str) -> dict[str, float]:
    """`team-a*2/team-b*1` as a table; unnamed tenants weigh 1."""
    table = {}
    for item in filter(None, text.split("/")):
        name, _, value = item.partition("*")
        try:
            table[name] = float(value)
        except ValueError:
            raise UserError(f"weights={text}: write them as team-a*2/team-b*1") from None
        if not table[name] > 0:
            raise UserError(f"weights={text}: the weight of {name} must be above 0")
    return table


def check_by(by: str, name: str) -> None:
    """Refuse what shares cannot be counted by."""
    if by not in ("tenant", "user"):
        raise UserError(f"{name}:by={by}: say tenant or user")


@dataclass(frozen=True)
class DominantShare(Ordering):
    """Dominant resource fairness by tenant (progressive filling): least dominant share first.

    The dominant share is the largest of a tenant's shares of GPUs, CPU and memory. Each admission
    raises it, and the next goes to whoever is lowest then. Inside a tenant: arrival. Not
    preemptive; looks past misfits unless `skip=false`, else one tenant could block all.
    """

    skip: bool = True
    #: `team-a*2/team-b*1`; unnamed tenants weigh 1
    weights: str = ""
    #: among whom: tenant or user
    by: str = "tenant"
    _weights: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)

    by_tenant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_by(self.by, "dominant-share")
        self._weights.update(weights(self.weights))

    def account(self, spec: JobSpec) -> str:
        """Whose share a job counts in."""
        return spec.user if self.by == "user" else spec.tenant

    def key(self, job: Job, view: View) -> float:
        """Arrival, inside the tenant."""
        return job.spec.submit

    def prefix(self, tenant: str, view: View, extra: dict[str, Amounts]) -> float:
        """The tenant's dominant share, with what this plan gives it."""
        held = zip(view.held.get(tenant, NONE), extra.get(tenant, NONE), strict=True)
        amounts = zip((now + more for now, more in held), view.capacity, strict=True)
        shares = [amount / whole for amount, whole in amounts if whole]
        return max(shares, default=0.0) / self._weights.get(tenant, 1.0)


@dataclass(frozen=True)
class FairShare(Ordering):
    """Least decayed GPU-time by tenant first: past use is forgotten by half every `half_life`.

    Inside a tenant: arrival. Not preemptive; looks past misfits unless `skip=false`.
    """

    skip: bool = True
    #: seconds after which past use counts half
    half_life: float = 7 * 86400.0
    #: `team-a*2/team-b*1`; unnamed tenants weigh 1
    weights: str = ""
    #: among whom: tenant or user
    by: str = "tenant"
    _weights: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)
    _used: dict[str, tuple[float, float]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    by_tenant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.half_life > 0:
            raise UserError(f"fair-share:half_life={self.half_life}: must be above 0 seconds")
        check_by(self.by, "fair-share")
        self._weights.update(weights(self.weights))

    def account(self, spec: JobSpec) -> str:
        """Whose share a job counts in."""
        return spec.user if self.by == "user" else spec.tenant

    def key(self, job: Job, view: View) -> float:
        """Arrival, inside the tenant."""
        return job.spec.submit

    def prefix(self, tenant: str, view: View, extra: dict[str, Amounts]) -> float:
        """Decayed past use; what is held now counts as if held for one half-life more."""
        used = self._decayed(tenant, view.now)
        milli = view.held.get(tenant, NONE)[0] + extra.get(tenant, NONE)[0]
        return (used + milli / 1000 * self.half_life) / self._weights.get(tenant, 1.0)

    def _decayed(self, tenant: str, now: float) -> float:
        amount, at = self._used.get(tenant, (0.0, now))
        return amount * float(0.5 ** ((now - at) / self.half_life))

    def left(self, job: Job, view: View, done: bool) -> None:
        """Charge the run that just ended; the mark is what was charged before."""
        charged = job.mark or 0.0
        account = self.account(job.spec)
        amount = self._decayed(account, view.now)
        amount += (job.run_time - charged) * job.spec.request.milli_gpus / 1000
        job.mark = job.run_time
        self._used[account] = (amount, view.now)

    def snapshot(self) -> Any:
        """Use by tenant and when it was counted."""
        return {tenant: list(pair) for tenant, pair in self._used.items()}

    def restore(self, state: Any) -> None:
        """Take the use back."""
        self._used.update({tenant: (pair[0], pair[1]) for tenant, pair in state.items()})
