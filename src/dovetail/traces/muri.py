"""Job lists of the Muri simulator (Zhao et al., SIGCOMM'22): CSV, times in MILLISECONDS.

    job_id
    num_gpu           GPUs of the gang
    submit_time       milliseconds
    model_name        name of the network: selects the profile
    duration          milliseconds
    priority          0 or 1
    iterations, interval, batch_size, iteration_time, resource_time_0..2    not used

Jobs have seconds, like all others.
"""

from __future__ import annotations

from typing import ClassVar

from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.traces.table import Columns, Table, count, label, number, seconds


def milliseconds(text: str) -> float:
    """Milliseconds, as seconds."""
    return seconds(text) / 1000


class Muri(Table):
    """A job list of the Muri simulator."""

    columns: ClassVar[Columns] = {
        "job_id": label,
        "num_gpu": count,
        "submit_time": milliseconds,
        "model_name": str,
        "duration": milliseconds,
        "priority": number,
    }
    marks = ("iterations", "interval", "iteration_time")

    def job(
        self,
        name: str,
        gpus: int,
        submit: float,
        model: str,
        work: float,
        priority: float,
    ) -> TraceJob:
        """A gang that trains a named network."""
        return TraceJob(JobSpec(0, name, submit, gang(gpus), "", "", model, priority), work)
