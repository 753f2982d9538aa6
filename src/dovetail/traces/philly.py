"""Microsoft Philly as one CSV line per job (Jeon et al., ATC'19, as re-published with Sia).

    timestamp   submission, a date
    duration    seconds it ran
    num_gpus    GPUs of the gang
    gpu_time    duration x num_gpus; not used
    cluster     virtual cluster: the tenant

There are no job ids: a job is called by its row, counted from 0. The file is not in submit order.
"""

from __future__ import annotations

from typing import ClassVar

from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.traces.moments import moment
from dovetail.traces.table import Columns, Table, count, seconds

_new = tuple.__new__
"""Makes a named tuple in half the time of calling its class; the file has 82,000 rows."""

REST = tuple(JobSpec(0, "", 0.0, gang(1)))[5:]
"""What the trace does not say of a job."""


class Philly(Table):
    """The CSV form of the Philly trace."""

    columns: ClassVar[Columns] = {
        "timestamp": moment,
        "duration": seconds,
        "num_gpus": count,
        "cluster": str,
    }

    def job(self, submit: float, work: float, gpus: int, cluster: str) -> TraceJob:
        """A gang of the tenant `cluster`."""
        spec = _new(JobSpec, (0, "", submit, gang(gpus), cluster, *REST))
        return _new(TraceJob, (spec, work, (), "finished"))
