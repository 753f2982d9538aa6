"""Slurm's own history: what `sacct` prints, one line per job, with bars between the fields.

sacct --allusers --allocations --parsable2 --starttime=2026-10-01 \\
  --format=JobIDRaw,User,Account,State,Submit,Start,ElapsedRaw,TimelimitRaw,AllocTRES

Account              the tenant
State                COMPLETED, FAILED, CANCELLED by 1000, TIMEOUT, ...
Submit, Start        dates; Start is what the cluster did, for `dovetail advise`
ElapsedRaw           seconds it ran
TimelimitRaw         minutes its owner asked for; the estimate
AllocTRES            billing=4,cpu=4,gres/gpu=2,gres/gpu:v100=2,mem=8G,node=1

With `amounts=false` the CPU and memory that jobs were given are left to the allocator.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.traces.helios import slurm_outcome
from dovetail.traces.moments import moment
from dovetail.traces.source import LeftOut, Source
from dovetail.traces.table import Columns, Maybe, Table, label, seconds

UNITS = {"": 1 / 2**20, "K": 1 / 2**10, "M": 1, "G": 2**10, "T": 2**20, "P": 2**30}
"""MiB in what follows a number."""

NOT_YET = ("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "CONFIGURING")
NEVER = ("", "None", "Unknown")


class Resources(NamedTuple):
    """What a job was given."""

    gpus: int = 0
    #: thousandths of a core
    cpu: int = 0
    #: MiB
    memory: int = 0


class Recorded(NamedTuple):
    """A job, and when the cluster started it."""

    job: TraceJob
    started: float
    held: Resources


def resources(text: str) -> Resources:
    """What a list such as `cpu=4,gres/gpu=2,mem=8G` says."""
    said = dict(pair.partition("=")[::2] for pair in text.split(",") if pair)
    typed = [int(value) for name, value in said.items() if name.startswith("gres/gpu:")]
    try:
        gpus = int(said.get("gres/gpu", sum(typed)))
        return Resources(gpus, 1000 * int(said.get("cpu", 0)), _mebibytes(said.get("mem", "0M")))
    except ValueError:
        raise ValueError("must be a list such as cpu=4,gres/gpu=2,mem=8G") from None


def _mebibytes(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTP]?)", text)
    if found is None:
        raise ValueError("no amount of memory")
    return round(float(found[1]) * UNITS[found[2]])


@dataclass(frozen=True)
class Sacct(Table):
    """The history of one cluster."""

    #: do jobs ask for the CPU and memory they were given?
    amounts: bool = True

    delimiter = "|"
    columns: ClassVar[Columns] = {
        "JobIDRaw": label,
        "User": str,
        "Account": str,
        "State": label,
        "Submit": moment,
        "Start": Maybe(lambda text: None if text in NEVER else moment(text)),
        "ElapsedRaw": seconds,
        "TimelimitRaw": Maybe(lambda text: 60.0 * int(text) if text.isdigit() else None),
        "AllocTRES": resources,
    }

    def job(self, *cells: Any) -> TraceJob:
        """A gang of what it was given."""
        return self.recorded(*cells).job

    def recorded(
        self,
        name: str,
        user: str,
        account: str,
        state: str,
        submit: float,
        start: float | None,
        work: float,
        limit: float | None,
        held: Resources,
    ) -> Recorded:
        """The same with what the cluster did."""
        if state.split(maxsplit=1)[0] in NOT_YET:
            raise LeftOut("jobs that had not ended")
        if start is None or not work or not held.cpu:
            raise LeftOut("jobs that never ran")
        amounts = (held.cpu, held.memory or None) if self.amounts else (None, None)
        spec = JobSpec(0, name, submit, gang(held.gpus, *amounts), account, user, estimate=limit)
        return Recorded(TraceJob(spec, work, (), slurm_outcome(state)), start, held)


def recorded(source: Source) -> Iterator[Recorded]:
    """All jobs that ran, with when they started; for files that were read as a trace before."""
    table = Sacct()
    for row in csv.DictReader(source.lines, delimiter=Sacct.delimiter):
        cells = [convert(row.get(name) or "") for name, convert in table.columns.items()]
        with suppress(LeftOut):
            yield table.recorded(*cells)
