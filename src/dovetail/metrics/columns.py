"""The rows of a run seen as numpy columns, and the jobs of it that count.

Views share memory with `Records`, so a million rows cost nothing to look at. This module knows
which jobs are measured and how times derive from a row; it does not know what is made of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dovetail.metrics.records import OUTCOMES, Records, Run

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

FINISHED = OUTCOMES.index("finished")
REJECTED = OUTCOMES.index("rejected")
#: outcomes from here on mean that the run ended before the job did
STILL_THERE = OUTCOMES.index("running")

FLOOR = 10.0
"""Seconds. Jobs shorter than this count as this long where times are divided by lengths, so that
a job of one second that waited ten does not outweigh a thousand others."""


class Columns(NamedTuple):
    """One numpy view per numeric column of `Records`, in the order jobs left."""

    id: Integers
    submit: Floats
    first_start: Floats
    end: Floats
    run_time: Floats
    work: Floats
    milli_gpus: Integers
    outcome: npt.NDArray[np.uint8]
    deadline: Floats

    def at(self, rows: Integers) -> Columns:
        """These rows only, as a copy."""
        return Columns._make(column[rows] for column in self)


def columns(records: Records) -> Columns:
    """The numeric columns, without copying. `records` cannot grow while a view is alive."""
    return Columns(
        np.asarray(records.id),
        np.asarray(records.submit),
        np.asarray(records.first_start),
        np.asarray(records.end),
        np.asarray(records.run_time),
        np.asarray(records.work),
        np.asarray(records.milli_gpus),
        np.asarray(memoryview(records.outcome)),
        np.asarray(records.deadline),
    )


def in_window(ids: Integers, measure: tuple[int, int] | None) -> Flags:
    """Which rows are jobs A to B-1 in submit order; all of them when nothing was asked."""
    if measure is None:
        return np.ones(len(ids), dtype=np.bool_)
    first, stop = measure
    return (ids >= first) & (ids < stop)


class Tenants(NamedTuple):
    """Owners as small numbers: `names[code[row]]` is the tenant of a row."""

    names: list[str]
    code: npt.NDArray[np.int32]


def tenants(column: Sequence[str]) -> Tenants:
    """Number the tenants alphabetically, so that results do not depend on who ended first."""
    names = sorted(set(column))
    number = {name: code for code, name in enumerate(names)}
    return Tenants(names, np.fromiter(map(number.__getitem__, column), np.int32, len(column)))


@dataclass(frozen=True, slots=True)
class Sample:
    """The jobs that times are about: finished, and inside the measured window."""

    #: positions in `Records`
    rows: Integers
    submit: Floats
    end: Floats
    #: end minus submission
    jct: Floats
    #: JCT minus the time devices were held
    wait: Floats
    work: Floats
    milli_gpus: Integers
    #: JCT over length, see `slowdown`
    slowdown: Floats

    def __len__(self) -> int:
        return len(self.rows)


def slowdown(jct: Floats, work: Floats, floor: float = FLOOR) -> Floats:
    """How many times its length alone a job took: max(JCT, floor) / max(work, floor).

    1 is an empty cluster. Below 1 the job ran faster than its nominal rate, on better devices.
    """
    ratio: Floats = np.maximum(jct, floor) / np.maximum(work, floor)
    return ratio


def sample(run: Run) -> Sample:
    """The finished jobs of the measured window."""
    table = columns(run.records)
    rows = np.flatnonzero((table.outcome == FINISHED) & in_window(table.id, run.measure))
    submit, end, work = table.submit[rows], table.end[rows], table.work[rows]
    jct = end - submit
    # A job that never waited may come out a rounding error below zero.
    wait = np.maximum(jct - table.run_time[rows], 0.0)
    gpus = table.milli_gpus[rows]
    return Sample(rows, submit, end, jct, wait, work, gpus, slowdown(jct, work))
