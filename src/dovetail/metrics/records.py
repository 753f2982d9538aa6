"""One row per submitted job, kept in columns so that a million jobs stay small.

Rows are added when jobs have left the system (or when the run ends with jobs still in it), many at
once: column by column that costs little. The collector does not interpret: `metrics.summary` does.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from struct import pack
from typing import Any

from dovetail.model.job import Job, JobSpec, Status

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


class Records:
    """The columns; `nan` means it never happened."""

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

    def __len__(self) -> int:
        return len(self.id)

    def add(
        self,
        jobs: Sequence[Job],
        work: Sequence[float],
        end: Sequence[float],
        reasons: Sequence[str],
    ) -> None:
        """Write the rows of jobs that left, or of those still there when the run ended."""
        if not jobs:
            return
        if any(reasons):
            numbered = enumerate(reasons, len(self))
            self.reason.update((row, reason) for row, reason in numbered if reason)
        specs, first_start, run_time, status, *counts = zip(*map(_STATE, jobs), strict=True)
        self._add_specs(specs)
        _extend(self.first_start, [NEVER if at is None else at for at in first_start])
        _extend(self.end, end)
        _extend(self.run_time, run_time)
        _extend(self.work, work)
        self.outcome.extend(map(OUTCOME_OF.__getitem__, status))
        _extend(self.preemptions, counts[0])
        _extend(self.failures, counts[1])

    def _add_specs(self, specs: Sequence[JobSpec]) -> None:
        given = dict(zip(JobSpec._fields, zip(*specs, strict=True), strict=True))
        _extend(self.id, given["id"])
        self.name += given["name"]
        self.tenant += given["tenant"]
        self.user += given["user"]
        _extend(self.submit, given["submit"])
        _extend(self.milli_gpus, list(map(_MILLI_GPUS, given["request"])))
        _extend(self.deadline, [NEVER if at is None else at for at in given["deadline"]])


_MILLI_GPUS = attrgetter("milli_gpus")
_STATE = attrgetter("spec", "first_start", "run_time", "status", "preemptions", "failures")


def _extend(column: array[Any], values: Sequence[float]) -> None:
    """Append many numbers: packed first, because `array.extend` takes five times as long."""
    column.frombytes(pack(f"{len(values)}{column.typecode}", *values))


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
    #: by tenant: waits against a private cluster, see `metrics.baseline`; empty: not compared
    private: dict[str, dict[str, float]] = field(default_factory=dict)
    #: figures a policy reports about itself, such as deadline admission
    policy_report: dict[str, Any] = field(default_factory=dict)
