"""What allocators that share out whole nodes have in common: GPUs alone decide who is admitted."""

from __future__ import annotations

from typing import ClassVar

from dovetail.core.claims import Curve
from dovetail.model.cluster import Cluster
from dovetail.model.request import Replica


class Joint:
    """CPU and memory never keep a job out: they are taken back from those who have more."""

    by_model: ClassVar[bool] = False

    def grant(
        self, cluster: Cluster, node: int, each: Replica, gpus: int, curve: Curve | None
    ) -> tuple[int, int]:
        """Nothing must be free besides GPUs."""
        return 0, 0
