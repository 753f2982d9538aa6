"""One domain for everybody: the view is the cluster itself and binding is the identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail.core.protocols import Bound, Held, Seat
from dovetail.model.allocation import Allocation
from dovetail.model.cluster import Cluster
from dovetail.model.job import Job, JobSpec
from dovetail.model.plan import Reason
from dovetail.model.tenants import Overview


class Whole:
    """No tenancy: all jobs share one queue and all nodes."""

    whole = True
    lends = False
    domains: Sequence[str] = ("",)

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.touched: set[int] = set()

    def domain(self, spec: JobSpec) -> int | str:
        """Everybody is at home in the one domain."""
        return 0

    def turns(self, domains: list[int], now: float) -> Sequence[int]:
        """As they come: nobody has what another could use."""
        return domains

    def view(self, domain: int) -> Cluster:
        """The physical cluster; the scheduler itself keeps it current."""
        return self._cluster

    def apart(self, domain: int) -> bool:
        """There are no others."""
        return True

    def bind(
        self, domain: int, allocation: Allocation, spec: JobSpec, at: Allocation | None = None
    ) -> Bound | str:
        """Already physical."""
        return Bound(allocation)

    def adopt(self, running: Sequence[tuple[JobSpec, Allocation]]) -> list[Seat]:
        """Already at home."""
        return [Seat(0, physical) for _, physical in running]

    def release(self, domain: int, allocation: Allocation, job: int) -> None:
        """Nothing beyond the physical cluster to keep."""

    def loosen(self, domain: int, allocation: Allocation, job: int) -> None:
        """Nothing beyond the physical cluster to keep."""

    def resize(self, domain: int, allocation: Allocation, job: int) -> Sequence[int]:
        """Nothing beyond the physical cluster to keep."""
        return ()

    def hold(self, allocation: Allocation) -> None:
        """Nothing beyond the physical cluster to keep."""

    def free(self, allocation: Allocation) -> None:
        """Nothing beyond the physical cluster to keep."""

    def close(self, node: int, reason: str) -> None:
        """Nothing beyond the physical cluster to keep."""

    def open(self, node: int) -> None:
        """Nothing beyond the physical cluster to keep."""

    def explain(self, job: Job, reason: Reason) -> Reason:
        """Nothing is anybody's."""
        return reason

    def overview(self) -> Overview:
        """There are no tenants."""
        return Overview()

    def validate(self) -> None:
        """The cluster is checked with the books."""

    def snapshot(self) -> Any:
        """Who holds what says it all."""
        return None

    def dissolve(self) -> None:
        """Nothing points in circles."""

    def restore(self, state: Any, held: Sequence[Held]) -> None:
        """Nothing to take back."""
