"""Job lists of the Synergy artifact, as `NAME.jobs.csv` (Mohan et al., OSDI'22): CSV.

    job_id
    arrival_s                    seconds
    gpus                         GPUs of the gang
    model                        name of the network: selects the profile
    duration_proportional_s      seconds at the GPU-proportional share of CPU and memory: the work
    task, iterations, iter_time_s, best_*    not used; the profile says the same

CPU and memory are left to the allocator: that is what the trace is for.
"""

from __future__ import annotations

from typing import ClassVar

from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.traces.table import Columns, Table, count, label, seconds


class Synergy(Table):
    """A job list of the Synergy artifact."""

    columns: ClassVar[Columns] = {
        "job_id": label,
        "arrival_s": seconds,
        "gpus": count,
        "model": str,
        "duration_proportional_s": seconds,
    }

    def job(self, name: str, submit: float, gpus: int, model: str, work: float) -> TraceJob:
        """A gang whose speed depends on its CPU and memory."""
        return TraceJob(JobSpec(0, name, submit, gang(gpus), "", "", model), work)
