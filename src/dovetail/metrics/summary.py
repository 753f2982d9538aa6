"""One run as the JSON result: schema `dovetail/result/1`, the contract with whoever reads it.

Times are in seconds, percentiles by linear interpolation, and a figure that does not exist (the
mean of no jobs, the CPU share of a cluster that states no CPU) is null, never nan.

- `jobs` counts the whole run, and its parts add up to `submitted`; so do `rejections` (by reason)
  to `jobs.rejected`.
- `jct`, `wait`, `slowdown`, `fairness`, `tenants` and `deadlines` are about the measured window:
  jobs A to B-1 in submit order, of those the finished ones. `measure` says how many that were. The
  rest of the run is there to load the cluster, as warm-up and cool-down.
- `makespan` is the last end minus the first submission, over the whole run. The last end is that
  of a job that held devices, however it ended, because what it held is in `utilisation`, and is
  the end of the run if one still held them or was put back to wait. So utilisation cannot pass 1.
- `slowdown` is JCT over length, both at least `floor` seconds; `fairness` is defined in
  `metrics.fairness`.

The module does not know where a run came from nor how results are shown.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from dovetail.metrics.columns import (
    FINISHED,
    FLOOR,
    REJECTED,
    STILL_THERE,
    Columns,
    Flags,
    Floats,
    Sample,
    Tenants,
    columns,
    in_window,
    sample,
    tenants,
)
from dovetail.metrics.fairness import UNFAIR, finish_time_fairness, jain
from dovetail.metrics.plain import plain
from dovetail.metrics.records import OUTCOMES, Records, Run

SCHEMA = "dovetail/result/1"

SETTINGS = (
    "trace",
    "cluster",
    "policy",
    "placement",
    "allocator",
    "predictor",
    "costs",
    "seed",
)

COUNTERS = ("preemptions", "moves", "events", "wall_seconds", "cpu_seconds", "peak_memory_mib")

NO_REASON = "no reason given"


def summarise(run: Run) -> dict[str, Any]:
    """The result of one run, ready for `json.dumps`."""
    counted = sample(run)
    table = columns(run.records)
    window = in_window(table.id, run.measure)
    result = {
        "schema": SCHEMA,
        **_settings(run),
        "measure": _measure(run, window, counted),
        "jobs": _jobs(table),
        **_times(counted),
        "makespan": makespan(run),
        "utilisation": utilisation(run),
        **{name: getattr(run, name) for name in COUNTERS},
        **_treatment(run, table, window, counted),
        "rejections": _rejections(table, run.records),
        "policy_report": run.policy_report,
        "notices": run.notices,
    }
    clean: dict[str, Any] = plain(result)
    return clean


def _settings(run: Run) -> dict[str, Any]:
    """The eight settings every result names; further ones that were set, under `options`."""
    stated = {name: run.settings.get(name) for name in SETTINGS}
    further = run.settings.keys() - stated.keys()
    options = {n: v for n, v in run.settings.items() if n in further and v is not None}
    return {**stated, "options": options} if options else stated


def _measure(run: Run, window: Flags, counted: Sample) -> dict[str, Any]:
    first, stop = run.measure or (None, None)
    return {"from": first, "to": stop, "jobs": int(window.sum()), "finished": len(counted)}


def _jobs(table: Columns) -> dict[str, int]:
    counts = np.bincount(table.outcome, minlength=len(OUTCOMES)).tolist()
    return {"submitted": len(table.id), **dict(zip(OUTCOMES, counts, strict=True))}


def _times(counted: Sample) -> dict[str, Any]:
    return {
        "jct": distribution(counted.jct),
        "wait": distribution(counted.wait),
        "slowdown": {**distribution(counted.slowdown), "floor": FLOOR},
    }


def distribution(values: Floats) -> dict[str, float | None]:
    """Mean, median, 95th and 99th percentile; nulls where there are no values."""
    names = ("mean", "median", "p95", "p99")
    if not len(values):
        return dict.fromkeys(names)
    figures = (float(values.mean()), *np.percentile(values, (50, 95, 99)).tolist())
    return dict(zip(names, figures, strict=True))


def makespan(run: Run) -> float | None:
    """Seconds from the first submission to the last end (see above); None if nothing ever ran."""
    table = columns(run.records)
    ran = ~np.isnan(table.first_start)
    if not ran.any():
        return None
    there = table.outcome >= STILL_THERE
    last = run.end if (ran & there).any() else float(np.nanmax(table.end[ran]))
    return last - float(table.submit.min())


def utilisation(run: Run) -> dict[str, float | None]:
    """Allocated over capacity times makespan, null where the cluster does not state an amount."""
    span = makespan(run)

    def share(name: str) -> float | None:
        capacity = getattr(run.capacity, name)
        return getattr(run.used, name) / (capacity * span) if capacity and span else None

    return {"gpu": share("milli_gpus"), "cpu": share("cpu"), "memory": share("memory")}


def _treatment(run: Run, table: Columns, window: Flags, counted: Sample) -> dict[str, Any]:
    """Who was treated how: tenants, fairness and, where there are any, deadlines."""
    owners = tenants(run.records.tenant)
    by_tenant = _tenants(owners, window, counted)
    for name, figures in run.private.items():
        by_tenant[name].update(figures)
    found = {"tenants": by_tenant, "fairness": _fairness(run, counted, by_tenant)}
    due = window & ~np.isnan(table.deadline)
    return {**found, "deadlines": _deadlines(run, table, due)} if due.any() else found


def _tenants(owners: Tenants, window: Flags, counted: Sample) -> dict[str, dict[str, Any]]:
    """Figures by tenant. Every tenant of the run is named, also one of whom nothing finished."""
    size, code = len(owners.names), owners.code[counted.rows]
    jobs = np.bincount(owners.code[window], minlength=size)
    finished = np.bincount(code, minlength=size)

    def mean(values: Floats) -> list[float]:
        total = np.bincount(code, weights=values, minlength=size)
        ratio = np.divide(total, finished, out=np.full(size, np.nan), where=finished > 0)
        return [float(value) for value in ratio]

    keys = ("jobs", "finished", "mean_jct", "mean_wait", "mean_slowdown")
    means = [mean(values) for values in (counted.jct, counted.wait, counted.slowdown)]
    rows = zip(jobs.tolist(), finished.tolist(), *means, strict=True)
    return {
        name: dict(zip(keys, row, strict=True))
        for name, row in zip(owners.names, rows, strict=True)
    }


def _fairness(run: Run, counted: Sample, by_tenant: dict[str, dict[str, Any]]) -> dict[str, Any]:
    means = [figures["mean_slowdown"] for figures in by_tenant.values() if figures["finished"]]
    ratios = finish_time_fairness(run, counted)
    some = len(ratios) > 0
    return {
        "jain": jain(np.array(means)),
        "finish_time": {
            "mean": float(ratios.mean()) if some else None,
            "worst": float(ratios.max()) if some else None,
            "unfair": float((ratios > UNFAIR).mean()) if some else None,
        },
    }


def _deadlines(run: Run, table: Columns, due: Flags) -> dict[str, int]:
    """How promises ended: met, missed, turned away at the door, or not yet decided."""
    deadline, outcome = table.deadline[due], table.outcome[due]
    met = (outcome == FINISHED) & (table.end[due] <= deadline)
    rejected = outcome == REJECTED
    undecided = (outcome >= STILL_THERE) & (deadline >= run.end)
    missed = ~(met | rejected | undecided)
    parts = {"met": met, "missed": missed, "rejected": rejected, "undecided": undecided}
    return {"jobs": len(deadline), **{name: int(part.sum()) for name, part in parts.items()}}


def _rejections(table: Columns, records: Records) -> dict[str, int]:
    """Rejected jobs by reason, the most frequent first."""
    rows = np.flatnonzero(table.outcome == REJECTED).tolist()
    reasons = Counter(records.reason.get(row, NO_REASON) for row in rows)
    return dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
