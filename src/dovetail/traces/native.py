"""Dovetail's own format: a CSV of which four columns are needed. `docs/guides/native-trace.md`.

    job_id            text, unique
    submit_time       seconds, or a date (UTC unless it has a zone)
    gpus              GPUs of the whole job; 0 for a CPU job
    duration          seconds of work at rate 1

Everything else may be missing, as a column or as a cell:

    tenant, user      path of the owner (org/team), and who
    cpus, memory_gb   cores and GiB of the whole job; missing: left to the allocator
    replicas          the GPUs come as so many equal parts, each on one node; missing: anywhere
    gpu_type          acceptable types joined by |, in order of preference; missing: any
    gpu_milli         thousandths of each GPU; below 1000 the GPU is shared
    gpu_memory_mib    MiB needed on each GPU
    priority          number, higher first
    deadline          in the time of submit_time
    estimate          seconds its owner declared
    model, group      profile, and recurrence tag
    resumable         true or false; missing: true
    retries           how often it may fail and be tried again; missing: 0
    outcome           finished, failed or cancelled: how it ended when recorded
    breaks            seconds after which each failing attempt breaks, joined by ;
"""

from __future__ import annotations

from typing import ClassVar

from dovetail.model.job import JobSpec
from dovetail.model.request import WHOLE, Request, gang
from dovetail.model.trace import TraceJob
from dovetail.traces.moments import moment
from dovetail.traces.table import (
    Columns,
    Maybe,
    Table,
    cores,
    count,
    gib,
    instances,
    label,
    number,
    seconds,
    type_list,
)


def truth(text: str) -> bool:
    """Says yes or no."""
    known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in known:
        raise ValueError("must be true or false")
    return known[text.lower()]


def outcome(text: str) -> str:
    """One of the three ways to end."""
    if text not in ("finished", "failed", "cancelled"):
        raise ValueError("must be finished, failed or cancelled")
    return text


def lengths(text: str) -> tuple[float, ...]:
    """Lengths in seconds joined by `;`."""
    return tuple(map(seconds, text.split(";")))


def share(text: str) -> int:
    """Thousandths of a device."""
    value = count(text)
    if not 1 <= value <= WHOLE:
        raise ValueError(f"must be from 1 to {WHOLE}")
    return value


def several(text: str) -> int:
    """A number of parts."""
    value = count(text)
    if value < 1:
        raise ValueError("must be 1 or more")
    return value


class Native(Table):
    """The native CSV."""

    columns: ClassVar[Columns] = {
        "job_id": label,
        "submit_time": moment,
        "gpus": count,
        "duration": seconds,
        "tenant": Maybe(str, ""),
        "user": Maybe(str, ""),
        "cpus": Maybe(cores),
        "memory_gb": Maybe(gib),
        "replicas": Maybe(several),
        "gpu_type": Maybe(type_list, ()),
        "gpu_milli": Maybe(share, WHOLE),
        "gpu_memory_mib": Maybe(count, 0),
        "priority": Maybe(number, 0.0),
        "deadline": Maybe(moment),
        "estimate": Maybe(seconds),
        "model": Maybe(str, ""),
        "group": Maybe(str, ""),
        "resumable": Maybe(truth, True),
        "retries": Maybe(count, 0),
        "outcome": Maybe(outcome, "finished"),
        "breaks": Maybe(lengths, ()),
    }

    def job(
        self,
        name: str,
        submit: float,
        gpus: int,
        work: float,
        tenant: str,
        user: str,
        cpu: int | None,
        memory: int | None,
        replicas: int | None,
        types: tuple[str, ...],
        share: int,
        gpu_memory: int,
        priority: float,
        deadline: float | None,
        estimate: float | None,
        model: str,
        group: str,
        resumable: bool,
        retries: int,
        outcome: str,
        breaks: tuple[float, ...],
    ) -> TraceJob:
        """A job with all that the columns can say."""
        if replicas is None:
            request = gang(gpus, cpu, memory, types, share, gpu_memory)
        else:
            request = _split(replicas, gpus, cpu, memory, types, share, gpu_memory)
        spec = JobSpec(
            0,
            name,
            submit,
            request,
            tenant,
            user,
            model,
            priority,
            deadline,
            estimate,
            group,
            resumable,
            retries,
        )
        return TraceJob(spec, work, breaks, outcome)


def _split(
    replicas: int,
    gpus: int,
    cpu: int | None,
    memory: int | None,
    types: tuple[str, ...],
    share: int,
    gpu_memory: int,
) -> Request:
    """Amounts of the whole job as equal parts."""
    if gpus % replicas:
        raise ValueError(f"gpus is {gpus}: it must be a multiple of replicas ({replicas})")
    if share < WHOLE and gpus > replicas:
        raise ValueError(f"gpu_milli is {share}: a replica with a share has one GPU")
    each_cpu = None if cpu is None else -(-cpu // replicas)
    each_memory = None if memory is None else -(-memory // replicas)
    return instances(replicas, gpus // replicas, each_cpu, each_memory, types, share, gpu_memory)
