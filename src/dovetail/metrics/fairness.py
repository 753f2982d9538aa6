"""How evenly a schedule treats jobs and tenants, as plain functions of arrays.

Two measures. *Jain's index* of n values is (sum)^2 / (n * sum of squares): 1 when all are equal,
1/n when one has everything. *Finish-time fairness* asks of each job whether it ended later than it
would have with an equal share of the cluster:

    rho = JCT / (work * max(1, contention))

where `contention` is the GPU demand of all jobs in the system (waiting or running, this one
included), averaged over the job's stay from submission to end, over the GPUs the cluster has. A
cluster asked for twice what it has may double everybody's time and still be fair: rho is 1. Above
1 the job got less than its share, below 1 more. Jobs without GPUs compete for none, so their
contention is 1. The cluster is taken as one pool: partitions and GPU types are not told apart.

The module knows neither policies nor files: `metrics.summary` brings both together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dovetail.metrics.columns import FLOOR, REJECTED, STILL_THERE, Floats, Sample, columns
from dovetail.metrics.records import Run

UNFAIR = 1.05
"""The ratio above which a job counts as treated unfairly: 5 % for the coarseness of rounds."""


def jain(values: Floats) -> float | None:
    """Jain's index of non-negative values; `None` where there are none, 1 where all are zero."""
    if not len(values):
        return None
    squares = float(np.square(values).sum()) * len(values)
    return float(values.sum()) ** 2 / squares if squares else 1.0


class Stays(NamedTuple):
    """When demand was in the system: `amount` from `since` until `until`, by row."""

    since: Floats
    until: Floats
    amount: Floats


def stays(run: Run) -> Stays:
    """GPUs asked for by every job of the run that was not turned away at the door."""
    table = columns(run.records)
    there = table.outcome >= STILL_THERE
    until = np.where(there | np.isnan(table.end), run.end, table.end)
    taken = table.outcome != REJECTED
    return Stays(table.submit[taken], until[taken], table.milli_gpus[taken] / 1000)


def contention(everyone: Stays, since: Floats, until: Floats, capacity: float) -> Floats:
    """Average demand over capacity between `since` and `until`, for each pair."""
    if not capacity or not len(since):
        return np.ones(len(since))
    # Times from the first submission on: products of large time stamps would lose digits.
    origin = float(everyone.since.min())
    start, end = since - origin, until - origin
    demand = _entered(everyone.since - origin, everyone.amount, start, end)
    demand -= _entered(everyone.until - origin, everyone.amount, start, end)
    length = end - start
    return np.divide(demand, length * capacity, out=np.ones_like(demand), where=length > 0)


def _entered(times: Floats, amounts: Floats, start: Floats, end: Floats) -> Floats:
    """Integral from `start` to `end` of the sum of amounts whose time has come."""
    order = np.argsort(times)
    times, amounts = times[order], amounts[order]
    level = np.concatenate(([0.0], np.cumsum(amounts)))
    moment = np.concatenate(([0.0], np.cumsum(amounts * times)))

    def until(at: Floats) -> Floats:
        known = np.searchsorted(times, at, side="right")
        integral: Floats = at * level[known] - moment[known]
        return integral

    difference: Floats = until(end) - until(start)
    return difference


def finish_time_ratios(
    jct: Floats, work: Floats, contended: Floats, floor: float = FLOOR
) -> Floats:
    """The rho of each job; times below `floor` count as `floor`, as in `columns.slowdown`."""
    fair = np.maximum(work, floor) * np.maximum(contended, 1.0)
    ratio: Floats = np.maximum(jct, floor) / fair
    return ratio


def finish_time_fairness(run: Run, sample: Sample) -> Floats:
    """The rho of each job of `sample`, with everybody in `run` as competitors."""
    capacity = run.capacity.milli_gpus / 1000
    contended = contention(stays(run), sample.submit, sample.end, capacity)
    contended[sample.milli_gpus == 0] = 1.0
    return finish_time_ratios(sample.jct, sample.work, contended)
