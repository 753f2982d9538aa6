"""The figures worth comparing between policies: what they are, how they read, which is best.

A measure is a place in the result (`metrics.summary`), a way of saying it and the direction that
is better. Several results under one label are repetitions with other seeds: they become a mean and
its 95 % interval. The module knows nothing of terminals and HTML; both show what it returns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple

from dovetail.metrics.intervals import Interval, interval
from dovetail.report import words

Result = Mapping[str, Any]
#: results by label, in the order they are shown; one per seed
Groups = Mapping[str, Sequence[Result]]


@dataclass(frozen=True, slots=True)
class Measure:
    """One column of a comparison."""

    title: str
    #: keys from the top of the result
    path: tuple[str, ...]
    show: Callable[[float | None], str]
    #: -1: less is better; 1: more is better; 0: it depends, so none is marked
    better: int
    #: one phrase for people who meet it the first time
    about: str

    def of(self, result: Result) -> float | None:
        """The figure in a result."""
        found: Any = result
        for key in self.path:
            found = found[key]
        return None if found is None else float(found)


WAIT = Measure("mean wait", ("wait", "mean"), words.duration, -1, "JCT minus time with devices")

TIMES = (
    Measure("mean JCT", ("jct", "mean"), words.duration, -1, "submission to end, on average"),
    Measure("median JCT", ("jct", "median"), words.duration, -1, "half of the jobs took less"),
    Measure("p99 JCT", ("jct", "p99"), words.duration, -1, "99 of 100 jobs took less"),
    WAIT,
    Measure("makespan", ("makespan",), words.duration, -1, "first submission to last end"),
)

USE = (
    Measure("GPU use", ("utilisation", "gpu"), words.percent, 1, "held over owned, whole run"),
    Measure("preempt.", ("preemptions",), words.count, 0, "times a job was stopped for another"),
    Measure("slowdown", ("slowdown", "mean"), words.ratio, -1, "mean of JCT over length"),
    Measure("Jain", ("fairness", "jain"), words.ratio, 1, "1: tenants slowed equally"),
    Measure(
        "worst FTF",
        ("fairness", "finish_time", "worst"),
        words.ratio,
        -1,
        "finish-time fairness: JCT over the time an equal share would have taken",
    ),
    Measure(
        "unfair",
        ("fairness", "finish_time", "unfair"),
        words.percent,
        -1,
        "jobs over 5 % later than with an equal share",
    ),
)


class Cell(NamedTuple):
    """One figure of a comparison, as text."""

    text: str
    #: half width of the 95 % interval, "± 3 min"; empty from a single seed
    spread: str
    best: bool


def grouped(results: Sequence[tuple[str, Result]]) -> dict[str, list[Result]]:
    """Results by label, in order of first appearance."""
    groups: dict[str, list[Result]] = {}
    for label, result in results:
        groups.setdefault(label, []).append(result)
    return groups


def column(groups: Groups, measure: Measure) -> list[Cell]:
    """The cells of one measure, one per label, with the best marked."""
    return cells([[measure.of(r) for r in results] for results in groups.values()], measure)


def cells(values: Sequence[Sequence[float | None]], measure: Measure) -> list[Cell]:
    """One cell per list of values (one value per seed)."""
    found = [interval([v for v in seeds if v is not None]) for seeds in values]
    texts = [words.NOTHING if each is None else measure.show(each.mean) for each in found]
    marks = best([None if each is None else each.mean for each in found], texts, measure.better)
    spreads = [_spread(each, measure) for each in found]
    return [Cell(*parts) for parts in zip(texts, spreads, marks, strict=True)]


def _spread(each: Interval | None, measure: Measure) -> str:
    return "" if each is None or each.half is None else f"± {measure.show(each.half)}"


def best(values: Sequence[float | None], texts: Sequence[str], better: int) -> list[bool]:
    """Which values are best, and with them all that read the same.

    None is where all read the same, where there is one value, and where no direction is better.
    """
    known = [
        (value * better, text)
        for value, text in zip(values, texts, strict=True)
        if value is not None
    ]
    if not better or len({text for _, text in known}) < 2:
        return [False] * len(values)
    top = max(known)[1]
    return [value is not None and text == top for value, text in zip(values, texts, strict=True)]


def _same(one: float, other: float) -> bool:
    """Equal up to the rounding of sums taken in another order."""
    return abs(one - other) <= 1e-9 * max(abs(one), abs(other))


def largest_tenants(groups: Groups, most: int | None = None) -> list[str]:
    """The tenants with the most jobs, largest first; equal ones by name. None: all of them."""
    jobs: dict[str, int] = {}
    for result in (results[0] for results in groups.values()):
        for name, figures in result["tenants"].items():
            jobs[name] = max(jobs.get(name, 0), figures["jobs"])
    return sorted(jobs, key=lambda name: (-jobs[name], name))[:most]


def tenant_values(groups: Groups, tenant: str, key: str) -> list[list[float | None]]:
    """A tenant's figure by label and seed; None where it had no finished job."""
    return [[r["tenants"].get(tenant, {}).get(key) for r in rs] for rs in groups.values()]


def excess_waits(groups: Groups) -> dict[str, list[float | None]]:
    """By tenant and label: how much longer it waited than in a private cluster, where compared."""
    found = {
        name: [_mean(row) for row in tenant_values(groups, name, "excess_wait")]
        for name in largest_tenants(groups)
    }
    return {name: row for name, row in found.items() if any(each is not None for each in row)}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def cautions(groups: Groups) -> list[str]:
    """What a reader of the comparison must know before believing it."""
    counted = {label: rs[0]["measure"]["finished"] for label, rs in groups.items()}
    said = []
    if len(set(counted.values())) > 1:
        listed = ", ".join(f"{label} {words.count(n)}" for label, n in counted.items())
        said.append(f"Times are over different numbers of finished jobs: {listed}.")
    if any(len(rs) > 1 for rs in groups.values()) and _seeds_agree(groups):
        said.append("All seeds gave the same times: nothing in these runs depends on the seed.")
    return said


def notices(groups: Groups) -> list[str]:
    """What the runs themselves have to say; once if all say the same, else with the label."""
    said = {label: [*rs[0]["notices"], *_rejections(rs[0])] for label, rs in groups.items()}
    every = dict.fromkeys(notice for each in said.values() for notice in each)
    found = []
    for notice in every:
        by = [label for label, each in said.items() if notice in each]
        found.append(notice if len(by) == len(said) else f"{', '.join(by)}: {notice}")
    return found


def _rejections(result: Result) -> list[str]:
    """Why jobs were turned away, the three most frequent reasons."""
    reasons = list(result["rejections"].items())
    said = [f"{words.plural(n, 'job')} rejected: {reason}" for reason, n in reasons[:3]]
    more = sum(n for _, n in reasons[3:])
    return [*said, f"{words.plural(more, 'job')} rejected for other reasons"] if more else said


def _seeds_agree(groups: Groups) -> bool:
    return all(len({r["jct"]["mean"] for r in rs}) == 1 for rs in groups.values())


def headline(groups: Groups) -> str:
    """The comparison in one sentence; empty where there is nothing to compare."""
    measure = TIMES[0]
    found = {
        label: interval([v for r in rs if (v := measure.of(r)) is not None])
        for label, rs in groups.items()
    }
    means = {label: each.mean for label, each in found.items() if each is not None}
    if len(means) < 2:
        return ""
    first, last = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    if _same(means[first], means[last]):
        return "All policies have the same mean JCT."
    saved = words.percent(1 - means[first] / means[last])
    return f"{first} has the lowest mean JCT, {words.duration(means[first])}: {saved} below {last}."
