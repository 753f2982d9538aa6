"""Alibaba PAI 2020, the job lists of its simulator (Weng et al., NSDI'22): CSV.

    job_id, user
    num_inst             instances, each on one node
    submit_time          seconds
    num_cpu              cores of each instance
    num_gpu              GPUs of each instance; below 1 a share of one, above 1 rounded up
    gpu_type             type it must run on; empty or CPU: any
    duration             seconds
    group, wait_time     only in the file with estimates; wait_time is not used
    user_dur, user_gpu_dur, group_dur, group_gpu_dur    its predicted lengths in seconds

`pai:estimate=user_dur` chooses the prediction that becomes the declared length; without it the best
one that is there is taken. `pai:types=false` lets every job run on any GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from dovetail.core.registry import nearest
from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec
from dovetail.model.request import WHOLE
from dovetail.model.trace import TraceJob
from dovetail.traces.table import (
    Columns,
    Maybe,
    Table,
    amount,
    cores,
    count,
    instances,
    label,
    seconds,
)

ESTIMATES = ("group_gpu_dur", "group_dur", "user_gpu_dur", "user_dur")
"""Best first: knowing the group tells more than knowing the user."""


@dataclass(frozen=True)
class Pai(Table):
    """A job list of the PAI simulator, with or without estimates."""

    #: column that becomes the declared length; empty: the best that is there
    estimate: str = ""
    #: keep to the GPU type the job ran on?
    types: bool = True

    columns: ClassVar[Columns] = {
        "job_id": label,
        "num_inst": count,
        "submit_time": seconds,
        "num_cpu": cores,
        "num_gpu": amount,
        "gpu_type": str,
        "duration": seconds,
        "user": str,
        "group": Maybe(str, ""),
        **{name: Maybe(seconds) for name in ESTIMATES},
    }

    def __post_init__(self) -> None:
        if self.estimate and self.estimate not in ESTIMATES:
            offer = nearest(self.estimate, list(ESTIMATES))
            raise UserError(f"pai:estimate={self.estimate}: no such column{offer}")

    def job(
        self,
        name: str,
        count: int,
        submit: float,
        cpu: int,
        gpus: float,
        kind: str,
        work: float,
        user: str,
        group: str,
        *estimates: float | None,
    ) -> TraceJob:
        """Equal instances; a fraction of a GPU is a share of one."""
        types = (kind,) if self.types and gpus and kind not in ("", "CPU") else ()
        share = round(gpus * WHOLE) if 0 < gpus < 1 else WHOLE
        request = instances(max(count, 1), ceil(gpus), cpu, None, types, share)
        told = estimates[ESTIMATES.index(self.estimate)] if self.estimate else _first(estimates)
        spec = JobSpec(0, name, submit, request, "", user, estimate=told, group=group)
        return TraceJob(spec, work)


def _first(estimates: tuple[float | None, ...]) -> float | None:
    return next((value for value in estimates if value is not None), None)
