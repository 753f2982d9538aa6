"""What stays the same from turn to turn while one controller lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dovetail.model.cluster import Cluster

Backoff = Callable[[int], float]
"""Seconds to rest after the n-th failure."""


class Circumstances(NamedTuple):
    """The machines and the settings that batches are made under."""

    #: which boot of the controller's machine this is
    boot: str
    #: do starts and stops take effect at once, so that nobody confirms them?
    instant: bool
    backoff: Backoff


def circumstances(cluster: Cluster, boot: str, backoff: Backoff) -> Circumstances:
    """Those of a controller that begins."""
    instant = all(pool.capabilities.start_latency is None for pool in cluster.pools)
    return Circumstances(boot, instant, backoff)


def doubling(first: float = 5.0, most: float = 600.0) -> Backoff:
    """Rests that double with each failure."""
    return lambda failures: min(most, first * 2.0 ** min(failures - 1, 30))
