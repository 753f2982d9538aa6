"""Speed from profiles: a job runs as fast as its poorest replica's cores and memory allow.

On top of the plain model (mode, GPU type, spread). Jobs without a profile do not depend on CPU and
memory here: nothing is known about them. Nor does anything where the cluster states neither.
"""

from __future__ import annotations

from dovetail.model.allocation import Allocation
from dovetail.model.cluster import Cluster
from dovetail.model.job import JobSpec
from dovetail.model.profile import Profile
from dovetail.speed.locality import Locality


class Sensitivity:
    """Rate 1 for a consolidated job at its profile's reference share."""

    def __init__(self, profiles: dict[str, Profile], plain: Locality) -> None:
        self.profiles = profiles
        self.plain = plain
        #: rates are asked for again and again for the same few shares
        self._rates: dict[tuple[str, str, int, int, int], float] = {}

    def rate(self, spec: JobSpec, allocation: Allocation, cluster: Cluster) -> float:
        """Work per second."""
        rate = self.plain.rate(spec, allocation, cluster)
        profile = self.profiles.get(spec.model) if spec.model else None
        if profile is None or not (cluster.limits_cpu and cluster.limits_memory):
            return rate
        slowest = min(
            (
                self._share(profile, cluster.nodes[part.node].type, gpus, part.cpu, part.memory)
                for part in allocation.parts
                if (gpus := part.devices.bit_count())
            ),
            default=1.0,
        )
        return rate * slowest

    def _share(self, profile: Profile, kind: str, gpus: int, cpu: int, memory: int) -> float:
        key = (profile.name, kind, gpus, cpu, memory)
        rate = self._rates.get(key)
        if rate is None:
            rate = profile.rate(cpu / (1000 * gpus), memory / (1024 * gpus), kind)
            self._rates[key] = rate
        return rate
