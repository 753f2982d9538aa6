"""Shanghai AI Laboratory's Acme logs, clusters Seren and Kalos (Hu et al., NSDI'24): CSV.

job_id, user
node_num             nodes, or pods in Kalos
gpu_num, cpu_num     of the whole job; gpu_num may be 0
mem_per_pod_GB       Kalos only: GiB of each pod
type                 kind of work (pre-training, evaluation, ...): the recurrence group
state                COMPLETED, CANCELLED, FAILED, ...
submit_time          date with a zone
duration             seconds it ran
start_time, end_time, queue, gpu_time, fail_time, stop_time, shared_mem_per_pod    not used
"""

from __future__ import annotations

from typing import ClassVar

from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.traces.helios import slurm_outcome
from dovetail.traces.moments import moment
from dovetail.traces.table import Columns, Maybe, Table, cores, count, gib, label, seconds


class Acme(Table):
    """The log of Seren or Kalos."""

    columns: ClassVar[Columns] = {
        "job_id": label,
        "user": str,
        "node_num": count,
        "gpu_num": count,
        "cpu_num": cores,
        "type": str,
        "state": slurm_outcome,
        "submit_time": moment,
        "duration": seconds,
        "mem_per_pod_GB": Maybe(gib),
    }
    marks = ("queue",)

    def job(
        self,
        name: str,
        user: str,
        nodes: int,
        gpus: int,
        cpu: int,
        group: str,
        outcome: str,
        submit: float,
        work: float,
        memory: int | None,
    ) -> TraceJob:
        """A gang with the CPU, and in Kalos the memory, it was given."""
        whole = None if memory is None else memory * max(nodes, 1)
        spec = JobSpec(0, name, submit, gang(gpus, cpu, whole), "", user, group=group)
        return TraceJob(spec, work, (), outcome)
