"""Philly-like jobs: the sizes, lengths, owners and rhythm of Microsoft's 2017 trace.

The constants were counted in the published trace (Jeon et al., "Analysis of Large-Scale
Multi-Tenant GPU Clusters for DNN Training Workloads", ATC'19; 82,247 jobs, 2017-09-04 to 12-22):
jobs of each size; for five classes of size the lengths at fixed quantiles (three digits, joined by
straight lines in the logarithm) and the jobs of each virtual cluster; arrivals by weekday and by
hour (UTC). Drawn lengths have the mean of the trace within 5 % in each class. What is not modelled:
bursts of equal jobs, and weeks that differ from each other. Times are whole seconds, as in the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dovetail.traces.kinds.stream import Drawn, Floats, Ints, Stream

#: GPUs -> jobs of that size
SIZES = {1: 76627, 2: 1818, 4: 1870, 8: 1643, 12: 7, 16: 199, 24: 7, 32: 67, 64: 6, 128: 3}

#: largest size of each class; larger ones are in the last
CLASSES = (1, 2, 4, 8)

# fmt: off
LEVELS = (0, .01, .05, .1, .2, .3, .4, .5, .6, .7, .75, .8, .85, .9, .93, .95, .97, .98, .99, .995,
          .998, .999, 1)

#: seconds at those levels, for each class
LENGTHS = (
    (1, 30, 52, 62, 76, 215, 600, 1120, 1730, 2460, 2720, 3750, 5340, 8510, 12300, 19100, 44200,
     68300, 135000, 267000, 502000, 866000, 3260000),
    (2, 5, 9, 11, 15, 17, 19, 21, 25, 33, 76, 149, 22300, 72700, 138000, 197000, 268000, 344000,
     523000, 808000, 1400000, 1470000, 2580000),
    (3, 35, 75, 138, 405, 1700, 7470, 17400, 36300, 78700, 89400, 106000, 151000, 184000, 206000,
     274000, 449000, 533000, 907000, 1210000, 1860000, 2450000, 2750000),
    (1, 33, 125, 216, 785, 4010, 12400, 23700, 65000, 141000, 173000, 203000, 242000, 352000,
     424000, 526000, 668000, 795000, 1060000, 2000000, 2230000, 2660000, 4630000),
    (1, 3, 35, 72, 345, 890, 3170, 21100, 53700, 73300, 104000, 159000, 182000, 248000, 340000,
     443000, 515000, 614000, 923000, 1270000, 1510000, 1610000, 1710000),
)

#: virtual cluster -> its jobs in each class
TENANTS = {
    "6214e9": (40841, 50, 144, 191, 0), "7f04ca": (204, 0, 329, 179, 11),
    "11cb48": (14607, 1415, 40, 10, 19), "b436b2": (7237, 3, 72, 51, 60),
    "ee9e8c": (597, 109, 266, 420, 119), "e13805": (215, 3, 102, 36, 18),
    "6c71a0": (9054, 37, 396, 455, 11), "2869ce": (64, 4, 10, 293, 51),
    "ed69ec": (1137, 0, 0, 0, 0), "103959": (1571, 33, 330, 0, 0),
    "0e4a51": (1090, 164, 181, 0, 0),
}

#: thousandths of the arrivals, from Monday and from midnight
WEEK = (123, 152, 163, 184, 206, 87, 85)
DAY = (53, 41, 47, 46, 29, 48, 70, 87, 46, 42, 43, 36, 31, 29, 27, 27, 37, 28, 33, 30, 42, 38, 47,
       42)
# fmt: on

HOURS = np.arange(7 * 24 + 1) * 3600.0
"""The edges of a week's hours, in seconds."""


def _arrivals_by_hour() -> Floats:
    """At each edge the share of a week's arrivals before it, scaled to the length of a week."""
    share: Floats = np.outer(WEEK, DAY).ravel().cumsum() / (sum(WEEK) * sum(DAY))
    return np.concatenate((np.zeros(1), share * HOURS[-1]))


ARRIVALS = _arrivals_by_hour()


@dataclass(frozen=True)
class PhillyLike(Stream):
    """Jobs like Philly's, starting on a Monday at midnight."""

    def draw(self, random: np.random.Generator, count: int) -> Drawn:
        """Size first; length and owner depend on its class."""
        size = _pick(random.random(count), SIZES.values())
        gpus = np.array(list(SIZES), dtype=np.int64)[size]
        level, owner = random.random(count), random.random(count)
        tenant, work = np.empty(count, dtype=np.int64), np.empty(count)
        kind = np.searchsorted(CLASSES, gpus)
        for number, lengths in enumerate(LENGTHS):
            members = np.flatnonzero(kind == number)
            work[members] = np.exp(np.interp(level[members], LEVELS, np.log(lengths)))
            weights = [jobs[number] for jobs in TENANTS.values()]
            tenant[members] = _pick(owner[members], weights)
        names = list(TENANTS)
        return Drawn(gpus, np.rint(work), map(names.__getitem__, tenant.tolist()))

    def times(self, fractions: Floats, span: float) -> Floats:
        """More jobs by day than by night, and fewer at the weekend."""
        week = HOURS[-1]
        weeks, rest = divmod(span, week)
        whole, part = np.divmod(fractions * (weeks * week + np.interp(rest, HOURS, ARRIVALS)), week)
        arrivals: Floats = np.floor(whole * week + np.interp(part, ARRIVALS, HOURS))
        return arrivals


def _pick(uniform: Floats, weights: Iterable[int]) -> Ints:
    """Indices drawn in proportion to the weights."""
    edges = np.cumsum(list(weights), dtype=float)
    return np.searchsorted(edges / edges[-1], uniform, side="right").astype(np.int64)
