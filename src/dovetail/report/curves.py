"""Long columns made short enough to draw, without changing what they say.

Averages of step functions over equal stretches of time, the distribution function at a few hundred
points, and job sizes in classes of powers of two. Knows arrays, not plots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dovetail.metrics.columns import Floats, Integers

MOST_POINTS = 720
"""About one step to two pixels of a wide screen: more would be noise over noise."""
CDF_POINTS = 400


class Curve(NamedTuple):
    """Points to draw."""

    x: Floats
    y: Floats


def steps(time: npt.ArrayLike, value: npt.ArrayLike, end: float) -> Curve:
    """A step function until `end`, averaged over equal buckets if it has too many steps.

    Each value holds from its time to the next. A bucket's value is the average over its length, so
    the area under the curve stays what it was.
    """
    times, values = np.asarray(time, dtype=np.float64), np.asarray(value, dtype=np.float64)
    if not len(times):
        return Curve(times, values)
    last = max(end, float(times[-1]))
    if len(times) < MOST_POINTS or last == times[0]:
        return Curve(np.append(times, last), np.append(values, values[-1]))
    return _averaged(times, values, last)


def _averaged(times: Floats, values: Floats, last: float) -> Curve:
    edges = np.linspace(times[0], last, MOST_POINTS)
    area = np.concatenate(([0.0], np.cumsum(values[:-1] * np.diff(times))))
    step = np.searchsorted(times, edges, side="right") - 1
    passed = area[step] + values[step] * (edges - times[step])
    average = np.diff(passed) / np.diff(edges)
    return Curve(edges, np.append(average, average[-1]))


def distribution_function(values: Floats) -> Curve:
    """The share of values up to x, as steps: exact for few values, else at evenly spread shares.

    The upper tail gets points of its own, because that is where policies differ.
    """
    if len(values) < CDF_POINTS:
        ordered = np.sort(values)
        shares = np.arange(len(values) + 1) / max(len(values), 1)
        return Curve(np.append(ordered[:1], ordered), shares)
    body = np.linspace(0, 0.99, CDF_POINTS - 50, endpoint=False)
    shares = np.concatenate((body, np.linspace(0.99, 1, 50)))
    return Curve(np.quantile(values, shares), shares)


def size_class(milli_gpus: Integers) -> npt.NDArray[np.int64]:
    """The class of each job by GPUs asked for: -2 none, -1 under one, k up to 2 to the k."""
    gpus = milli_gpus / 1000
    whole = np.ceil(np.log2(np.maximum(gpus, 1))).astype(np.int64)
    return np.where(gpus == 0, -2, np.where(gpus < 1, -1, whole))


def size_label(code: int) -> str:
    """A size class in words: "1", "2", "3–4", "5–8" …"""
    if code < 0:
        return "none" if code == -2 else "under 1"
    return str(2**code) if code < 2 else f"{2 ** (code - 1) + 1}–{2**code}"
