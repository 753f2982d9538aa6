"""Any trace as a native CSV. `dovetail.traces.native` reads back what is written here.

Only columns that some job needs are written, so a trace is gone through twice. The times of a dated
trace are written as dates.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec, Kind
from dovetail.model.request import PLAIN_MODE, WHOLE, Group, Request
from dovetail.model.trace import Trace, TraceJob
from dovetail.traces.moments import written
from dovetail.traces.native import Native

NEEDED = len(Native.needed())
"""The first columns of the format, which are always written."""


def write(trace: Trace, name: str) -> int:
    """Write all jobs of a trace that can be iterated twice; the number of jobs written."""
    zero = None if trace.origin is None else trace.origin.timestamp()
    used: set[int] = set(range(NEEDED))
    for job in trace.jobs:
        used.update(place for place, cell in enumerate(_cells(job, zero)) if cell)
    places, count = sorted(used), 0
    columns = list(Native.columns)
    with _create(name) as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow([columns[place] for place in places])
        for job in trace.jobs:
            cells = _cells(job, zero)
            out.writerow([cells[place] for place in places])
            count += 1
    return count


@contextmanager
def _create(name: str) -> Iterator[TextIO]:
    """A file to write text to, packed if its name ends in .gz; equal text gives equal bytes."""
    try:
        with Path(name).open("wb") as raw:
            packed = gzip.GzipFile("", "wb", 6, raw, mtime=0) if name.endswith(".gz") else None
            with io.TextIOWrapper(packed or raw, "utf-8", newline="") as file:
                yield file
    except FileNotFoundError:
        raise UserError(f"{name}: there is no directory {Path(name).parent}") from None
    except IsADirectoryError:
        raise UserError(f"{name} is a directory; name a file in it") from None
    except PermissionError:
        raise UserError(f"{name} may not be written by you; check its permissions") from None


def _cells(job: TraceJob, zero: float | None) -> list[str]:
    """The cells of one row in the order of the native columns; empty where the default holds."""
    spec, work, breaks, outcome = job
    return [
        spec.name,
        _time(spec.submit, zero),
        str(spec.request.gpus),
        _text(work),
        spec.tenant,
        spec.user,
        *_shape(spec),
        _text(spec.priority) if spec.priority else "",
        "" if spec.deadline is None else _time(spec.deadline, zero),
        "" if spec.estimate is None else _text(spec.estimate),
        spec.model,
        spec.group,
        "" if spec.resumable else "false",
        str(spec.retries) if spec.retries else "",
        "" if outcome == "finished" else outcome,
        ";".join(map(_text, breaks)),
    ]


def _shape(spec: JobSpec) -> list[str]:
    """cpus, memory_gb, replicas, gpu_type, gpu_milli, gpu_memory_mib."""
    group = _only_group(spec)
    each, count = group.each, group.most
    anywhere = each.gpus == 1 or (each.gpus == 0 and count == 1)
    return [
        "" if each.cpu is None else _text(each.cpu * count / 1000),
        "" if each.memory is None else _text(each.memory * count / 1024),
        "" if anywhere else str(count),
        "|".join(spec.request.alternatives[0].types),
        "" if each.share == WHOLE else str(each.share),
        str(each.gpu_memory) if each.gpu_memory else "",
    ]


def _only_group(spec: JobSpec) -> Group:
    request: Request = spec.request
    groups = request.alternatives[0].groups
    plain = len(request.alternatives) == len(groups) == 1 and groups[0].least == groups[0].most
    plain = plain and request.modes == (PLAIN_MODE,) and not (request.labels or request.datasets)
    if not plain or spec.kind is not Kind.BATCH:
        raise UserError(f"job {spec.name}: the native format holds plain gangs only")
    return groups[0]


def _time(seconds: float, zero: float | None) -> str:
    return _text(seconds) if zero is None else written(zero + seconds)


def _text(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
