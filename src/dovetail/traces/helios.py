"""SenseTime Helios cluster logs (Hu et al., SC'21): CSV, one line per job.

job_id, user, vc     the vc is the tenant
gpu_num, cpu_num     of the whole job; gpu_num may be 0
state                COMPLETED, CANCELLED, FAILED, TIMEOUT, NODE_FAIL
submit_time          date
duration             seconds it ran
node_num, start_time, end_time, queue    what the cluster did; not used
"""

from __future__ import annotations

from typing import ClassVar

from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.traces.moments import moment
from dovetail.traces.table import Columns, Table, cores, count, label, seconds


def slurm_outcome(state: str) -> str:
    """How a Slurm state counts: what neither completed nor was cancelled has failed."""
    if state.startswith("CANCELLED"):
        return "cancelled"
    return "finished" if state == "COMPLETED" else "failed"


class Helios(Table):
    """The log of one Helios cluster."""

    columns: ClassVar[Columns] = {
        "job_id": label,
        "user": str,
        "vc": str,
        "gpu_num": count,
        "cpu_num": cores,
        "state": slurm_outcome,
        "submit_time": moment,
        "duration": seconds,
    }

    def job(
        self,
        name: str,
        user: str,
        vc: str,
        gpus: int,
        cpu: int,
        outcome: str,
        submit: float,
        work: float,
    ) -> TraceJob:
        """A gang with the CPU it was given."""
        return TraceJob(JobSpec(0, name, submit, gang(gpus, cpu), vc, user), work, (), outcome)
