"""Job lists of the Tiresias simulator (Gu et al., NSDI'19): CSV.

job_id
num_gpu           GPUs of the gang
submit_time       seconds
model_name        name of the network: selects the profile
duration          seconds
iterations        of the training; not used, the work is the duration
interval          seconds to the next submission; not used
"""

from __future__ import annotations

from typing import ClassVar

from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.traces.table import Columns, Table, count, label, seconds


class Tiresias(Table):
    """A job list of the Tiresias simulator."""

    columns: ClassVar[Columns] = {
        "job_id": label,
        "num_gpu": count,
        "submit_time": seconds,
        "model_name": str,
        "duration": seconds,
    }
    marks = ("iterations", "interval")

    def job(self, name: str, gpus: int, submit: float, model: str, work: float) -> TraceJob:
        """A gang that trains a named network."""
        return TraceJob(JobSpec(0, name, submit, gang(gpus), "", "", model), work)
