"""Who goes first. `BUILTIN` is the whole list; a new ordering is one file and one line here."""

from __future__ import annotations

from dovetail.core.ordering import Ordering
from dovetail.core.registry import Registry
from dovetail.orderings.arrival import Fifo, Priority, SmallestFirst
from dovetail.orderings.attained import LeastAttained
from dovetail.orderings.deadline import Deadline
from dovetail.orderings.fairness import DominantShare, FairShare, FinishTimeFairness
from dovetail.orderings.gittins import Gittins
from dovetail.orderings.length import (
    LongestFirst,
    ShortestFirst,
    ShortestRemaining,
    ShortestRemainingService,
)
from dovetail.orderings.packing import Tetris

BUILTIN: dict[str, type[Ordering]] = {
    "fifo": Fifo,
    "sjf": ShortestFirst,
    "ljf": LongestFirst,
    "smallest-first": SmallestFirst,
    "srtf": ShortestRemaining,
    "srsf": ShortestRemainingService,
    "las": LeastAttained,
    "gittins": Gittins,
    "priority": Priority,
    "deadline": Deadline,
    "finish-time-fairness": FinishTimeFairness,
    "dominant-share": DominantShare,
    "fair-share": FairShare,
    "tetris": Tetris,
}

ORDERINGS: Registry[Ordering] = Registry(
    "ordering", BUILTIN, "dovetail.orderings", ("key", "slope", "backfill", "rekeys")
)
