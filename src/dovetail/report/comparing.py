"""What a what-if found, in words and figures: for a page and for a terminal."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from dovetail.model.what_if import BOUNDS, Comparison, Outcome
from dovetail.report import words

ROWS: dict[str, Callable[[Outcome], str]] = {
    "jobs that end": lambda told: words.count(told.jobs),
    "mean completion": lambda told: words.duration(told.mean_jct),
    "mean wait": lambda told: words.duration(told.mean_wait),
    "GPU use": lambda told: words.percent(told.utilisation),
    "preemptions": lambda told: words.count(told.preemptions),
    "makespan": lambda told: words.duration(told.makespan),
}
"""What is told of each replay."""


def headline(told: Comparison) -> str:
    """The one sentence to remember."""
    was, instead = told.before.mean_jct, told.after.mean_jct
    counts = (
        f"{words.plural(told.sooner, 'job')} would end sooner, {told.later:,} later, "
        f"{told.same:,} at the same time within a minute"
    )
    change = instead / was - 1 if was else 0.0
    if abs(change) < 0.0005:
        return f"On average nothing changes: {counts}."
    less = "less" if change < 0 else "more"
    return f"On average jobs would take {words.percent(abs(change))} {less} time: {counts}."


def bands() -> list[str]:
    """What the counts of `Comparison.changes` are of, in words."""
    edges = [words.duration(each) for each in BOUNDS]
    sizes = [f"{low} to {high}" for low, high in pairwise(edges)]
    sizes.append(f"over {edges[-1]}")
    sooner = [f"{each} sooner" for each in reversed(sizes)]
    return [*sooner, f"the same within {edges[0]}", *(f"{each} later" for each in sizes)]
