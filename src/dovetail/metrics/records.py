"""One row per submitted job, kept in columns so that a million jobs stay small.

Rows are added when a job leaves the system (or when the run ends with the job still in it). The
collector does not interpret: `metrics.summary` does.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

from dovetail.model.job import Job, Status

OUTCOMES = ("finished", "failed", "rejected", "cancelled", "running", "waiting")

OUTCOME_OF = {
    Status.DONE: 0,
    Status.FAILED: 1,
    Status.REJECTED: 2,
    Status.CANCELLED: 3,
    Status.RUNNING: 4,
    Status.STARTING: 5,
    Status.STOPPING: 5,
    Status.SUSPENDED: 5,
    Status.WAITING: 5,
}

NEVER = float("nan")
CHUNK = 4096
"""Rows written to the columns at a time."""


class Records:
    """The columns, complete after `flush`; `nan` means it never happened."""

    def __init__(self) -> None:
        self.id = array("q")
        self.name: list[str] = []
        self.tenant: list[str] = []
        self.user: list[str] = []
        self.submit = array("d")
        self.first_start = array("d")
        self.end = array("d")
        #: seconds devices were held, overheads included
        self.run_time = array("d")
        #: true work in seconds at rate 1: the job's length alone on an idle cluster
        self.work = array("d")
        #: thousandths of GPUs requested
        self.milli_gpus = array("q")
        self.outcome = bytearray()
        self.preemptions = array("l")
        self.failures = array("l")
        #: seconds, absolute; nan: none
        self.deadline = array("d")
        #: reason of a rejection or failure, by row
        self.reason: dict[int, str] = {}
        #: rows so far, flushed or not
        self.count = 0
        self._rows: list[tuple[Any, ...]] = []
        self._columns: tuple[Any, ...] = (
            self.id,
            self.name,
            self.tenant,
            self.user,
            self.submit,
            self.first_start,
            self.end,
            self.run_time,
            self.work,
            self.milli_gpus,
            self.outcome,
            self.preemptions,
            self.failures,
            self.deadline,
        )

    def __len__(self) -> int:
        return self.count

    def add(self, job: Job, work: float, end: float, reason: str = "") -> None:
        """Write the row of a job that left, or of one still there when the run ended."""
        spec = job.spec
        first_start, deadline = job.first_start, spec.deadline
        self._rows.append(
            (
                spec.id,
                spec.name,
                spec.tenant,
                spec.user,
                spec.submit,
                NEVER if first_start is None else first_start,
                end,
                job.run_time,
                work,
                spec.request.milli_gpus,
                OUTCOME_OF[job.status],
                job.preemptions,
                job.failures,
                NEVER if deadline is None else deadline,
            )
        )
        self.count += 1
        if reason:
            self.reason[self.count - 1] = reason
        if len(self._rows) >= CHUNK:
            self.flush()

    def flush(self) -> None:
        """Move finished rows into the columns; many at once is much cheaper than one by one."""
        if self._rows:
            for column, values in zip(self._columns, zip(*self._rows, strict=True), strict=True):
                column.extend(values)
            self._rows.clear()


class Series:
    """The state after every decision, for plots: one row per instant."""

    def __init__(self) -> None:
        self.time = array("d")
        self.waiting = array("q")
        self.running = array("q")
        self.milli_gpus = array("q")

    def add(self, time: float, waiting: int, running: int, milli_gpus: int) -> None:
        """Note the state that holds from `time` on."""
        self.time.append(time)
        self.waiting.append(waiting)
        self.running.append(running)
        self.milli_gpus.append(milli_gpus)


@dataclass(slots=True)
class Amounts:
    """GPUs in thousandths, CPU in thousandths of cores, memory in MiB; or those times seconds."""

    milli_gpus: float = 0.0
    cpu: float = 0.0
    memory: float = 0.0


@dataclass(slots=True)
class Run:
    """Everything one replay produced."""

    records: Records
    #: what the cluster has; cpu or memory 0 where the cluster does not state them
    capacity: Amounts
    #: amounts times seconds held
    used: Amounts
    #: trace, cluster, policy, placement, allocator, predictor, costs, seed: as printed
    settings: dict[str, Any]
    #: simulated time at which the run ended
    end: float = 0.0
    preemptions: int = 0
    moves: int = 0
    #: inputs to `step`
    events: int = 0
    #: jobs A to B-1 in submit order count; None: all
    measure: tuple[int, int] | None = None
    series: Series | None = None
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_mib: float = 0.0
    notices: list[str] = field(default_factory=list)
    #: figures a policy reports about itself, such as deadline admission
    policy_report: dict[str, Any] = field(default_factory=dict)
