"""Runs written by hand: one line per job, no simulator.

`job(0, 0, 10, 20)` is job 0, submitted at 0, which started at 10 and ended at 20 with a length of
10 on one GPU. Everything else has a default.
"""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np

from dovetail.metrics.records import NEVER, Amounts, Records, Run, Series
from dovetail.model.job import Job, JobSpec, Status
from dovetail.model.request import gang

SETTINGS = {
    "trace": "hand.csv",
    "cluster": "1x4",
    "policy": "fifo",
    "placement": "consolidated",
    "allocator": "proportional",
    "predictor": "oracle",
    "costs": {"restart": 30.0, "stop": 0.0, "move": None, "first_start": 0.0, "resume": 1.0},
    "seed": 0,
}


def job(
    number: int,
    submit: float,
    start: float | None,
    end: float = NEVER,
    *,
    held: float | None = None,
    work: float | None = None,
    gpus: int = 1,
    tenant: str = "",
    status: Status = Status.DONE,
    reason: str = "",
    **extra: Any,
) -> dict[str, Any]:
    """One row. `held` (seconds with devices) and `work` follow from start and end unless given."""
    if held is None:
        held = 0.0 if start is None else end - start
    work = held if work is None else work
    return {**locals()}


def write(written: Records, rows: list[dict[str, Any]]) -> None:
    """Add the rows as the simulator would."""
    for row in rows:
        extra = row["extra"]
        spec = JobSpec(
            row["number"],
            extra.get("name", f"j{row['number']}"),
            row["submit"],
            gang(row["gpus"], share=extra.get("share", 1000)),
            tenant=row["tenant"],
            user=extra.get("user", ""),
            deadline=extra.get("deadline"),
        )
        state = Job(spec, row["work"])
        state.status, state.first_start, state.run_time = row["status"], row["start"], row["held"]
        state.preemptions, state.failures = extra.get("preemptions", 0), extra.get("failures", 0)
        written.add([state], [row["work"]], [row["end"]], [row["reason"]])


def run(rows: list[dict[str, Any]], gpus: int = 4, **fields: Any) -> Run:
    """A run of these jobs on a cluster of `gpus` GPUs that states neither CPU nor memory."""
    written = Records()
    write(written, rows)
    used = sum(t * g for t, g in zip(written.run_time, written.milli_gpus, strict=True))
    ends = [end for end in written.end if not isnan(end)]
    made: dict[str, Any] = {
        "capacity": Amounts(milli_gpus=gpus * 1000),
        "used": Amounts(milli_gpus=used),
        "settings": dict(SETTINGS),
        "end": max(ends, default=0.0),
    }
    return Run(written, **{**made, **fields})


def random_run(jobs: int, seed: int, policy: str = "fifo", stretch: float = 1.0) -> Run:
    """A large run of plausible shape, with a series; `stretch` makes waits longer."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.uniform(0, 86400 * 3, jobs))
    work = np.minimum(rng.lognormal(6.5, 2.0, jobs), 5e5)
    gpus = rng.choice([1, 1, 1, 2, 4, 8, 16], jobs)
    wait = rng.exponential(1200, jobs) * stretch * (rng.random(jobs) < 0.6) * (1 + gpus / 4)
    owner = rng.integers(0, 15, jobs)
    rows = [
        job(
            i,
            float(submit[i]),
            float(submit[i] + wait[i]),
            float(submit[i] + wait[i] + work[i]),
            gpus=int(gpus[i]),
            tenant=f"org/team-{owner[i]}",
        )
        for i in range(jobs)
    ]
    made = run(rows, gpus=512)
    made.settings["policy"] = policy
    made.series = _series(made.records)
    made.preemptions = int(jobs * stretch / 10)
    return made


def _series(written: Records) -> Series:
    """The state after every change, from the rows."""
    start, end = np.array(written.first_start), np.array(written.end)
    submit, gpus = np.array(written.submit), np.array(written.milli_gpus)
    time = np.concatenate((submit, start, end))
    one, none = np.ones_like(gpus), np.zeros_like(gpus)
    order = np.argsort(time, kind="stable")
    waiting = np.cumsum(np.concatenate((one, -one, none))[order])
    running = np.cumsum(np.concatenate((none, one, -one))[order])
    held = np.cumsum(np.concatenate((none, gpus, -gpus))[order])
    series = Series()
    columns = (time[order], waiting, running, held)
    for row in zip(*(column.tolist() for column in columns), strict=True):
        series.add(*row)
    return series
