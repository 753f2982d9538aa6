"""Two orderings of your own. Copy this file, change a key, and run

dovetail simulate TRACE --cluster 16x8 --policy ordering.py:Ageing:weight=0.5
"""

from dataclasses import dataclass

from dovetail.core.ordering import Ordering


@dataclass(frozen=True)
class Ageing(Ordering):
    """Shortest first, but a second of waiting makes up for `weight` seconds of length."""

    skip: bool = True  # the base class has skip, preempt, backfill, depth and patience
    weight: float = 0.1  # a field is a parameter

    def key(self, job, view):
        # All waiting jobs age alike, so the time of submission says as much as the wait.
        return job.expected + self.weight * job.spec.submit


@dataclass(frozen=True)
class LeastRun(Ordering):
    """Whoever has run for the least time goes first, and takes the place of others."""

    preempt: bool = True

    @property
    def pause(self):
        return 300.0  # seconds between re-rankings

    def key(self, job, view):
        return job.held_for(view.now)

    def slope(self, gpus):
        return 1.0  # the key of a running job grows by one each second
