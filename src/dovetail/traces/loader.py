"""From the text a person types to a `Trace`: read, check, sort, cut, number.

Jobs are numbered 0, 1, ... in the order of (submit, the trace's own id, place in the file); ids
compare as numbers where all of them are. A dated trace starts at second 0 with the first job that
is kept, and `Trace.origin` tells the date of it; a trace in seconds keeps its own time. A file is
read and checked whole before anything else happens; a generated trace is made while it is used.
Either can be iterated more than once. A job that asks for neither GPU nor CPU is kept: it holds
nothing and delays nobody, and a notice counts such jobs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from math import inf
from operator import le
from typing import Any

from dovetail import traces
from dovetail.core.collecting import undisturbed
from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec
from dovetail.model.request import Request
from dovetail.model.trace import Trace, TraceJob
from dovetail.traces.assembly import assemble
from dovetail.traces.moments import POSIX, bound, written
from dovetail.traces.source import Source, open_text


def load(
    text: str,
    *,
    format: str | None = None,
    start: str | None = None,
    stop: str | None = None,
    skip_bad: bool = False,
    cluster_gpus: int | None = None,
) -> Trace:
    """The trace of a file (plain or .gz) or of `generate:KIND,key=value,…`.

    `start` and `stop` are dates or seconds of submission as typed; both are included. `skip_bad`
    counts bad rows instead of stopping at the first. `cluster_gpus` is what a generator's `load`
    refers to.
    """
    kind, colon, rest = text.partition(":")
    if kind == "generate" and colon:
        if format is not None:
            raise UserError(f"--format {format}: a generated trace has no format; leave it out")
        # Generators need numpy; reading a file does not.
        from dovetail.traces.generator import generate  # noqa: PLC0415

        return generate(rest, cluster_gpus, start, stop)
    with undisturbed(), open_text(text) as file:
        return _read(Source(text, file, skip_bad), format, start, stop)


def _read(source: Source, format: str | None, start: str | None, stop: str | None) -> Trace:
    if not source.first.strip():
        raise UserError(f"{source.name} is empty")
    if "\0" in source.first:
        raise UserError(f"{source.name} is not a text file")
    name = format or traces.recognise(source)
    jobs = _collect(source, traces.reader(name))
    if not jobs:
        raise UserError(f"{source.name} has no jobs{_because(source)}")
    trace = Trace(source.name, name, (), notices=source.notices())
    return _arrange(trace, jobs, start, stop)


def _collect(source: Source, read: traces.Reader) -> list[TraceJob]:
    """All jobs of the file, each checked for what no reader may let through."""
    jobs: list[TraceJob] = []
    seen: dict[str, int] = {}
    try:
        for job in read(source):
            spec = job[0]
            name = spec[1]
            if name in seen or not (0 <= spec[2] < inf and 0 <= job[1] < inf):
                source.reject(_problem(job, seen))
                continue
            if name:
                seen[name] = source.line
            jobs.append(job)
    except UnicodeDecodeError:
        raise  # a fault of the file, not of a row
    except (ValueError, LookupError) as error:
        # A plain generator cannot go on after this, so even skip_bad stops here.
        raise UserError(f"{source.name}:{source.line}: the row cannot be read: {error}") from error
    return jobs


def _problem(job: TraceJob, seen: dict[str, int]) -> str:
    spec = job.spec
    if spec.name in seen:
        return f"job id {spec.name} is already used on line {seen[spec.name]}"
    if not 0 <= spec.submit < inf:
        return f"the job is submitted at {spec.submit}: it must be 0 or later"
    return f"the job takes {job.work} seconds: it must be 0 or more"


def _because(source: Source) -> str:
    told = "; ".join(source.notices())
    return f" ({told})" if told else ", only a header"


def _arrange(trace: Trace, jobs: list[TraceJob], start: str | None, stop: str | None) -> Trace:
    """Sort, cut to the interval, and number."""
    submits = [job[0][2] for job in jobs]
    if not all(le(a, b) for a, b in pairwise(submits)):
        trace.notices.append("the file was not in submit order; its jobs were sorted")
    order = _order(jobs, submits)
    times = [submits[row] for row in order]
    low, high = _interval(trace.name, times, start, stop)
    dated = times[0] >= POSIX
    zero = times[low] if dated else 0.0
    if dated:
        trace.origin = datetime.fromtimestamp(zero, UTC)
    numbered = _numbered(jobs, order[low:high], zero)
    trace.jobs, trace.count = numbered, len(numbered)
    trace.notices += _askers_of_nothing(numbered)
    return trace


def _order(jobs: list[TraceJob], submits: list[float]) -> list[int]:
    """Rows by (submit, id, place in the file); a job without an id has its row for one."""
    names = [job[0][1] for job in jobs]
    rows = range(len(jobs))
    if not any(names):
        return sorted(rows, key=submits.__getitem__)
    if all(name.isascii() and name.isdecimal() for name in names):
        keys: list[tuple[float, int | str]] = list(zip(submits, map(int, names), strict=True))
    else:
        keys = list(zip(submits, names, strict=True))
    return sorted(rows, key=keys.__getitem__)


def _interval(
    name: str, times: list[float], start: str | None, stop: str | None
) -> tuple[int, int]:
    """Which of the sorted times lie between the bounds, both included."""
    first = times[0]
    low = 0 if start is None else bisect_left(times, bound(start, "--from", first))
    high = len(times) if stop is None else bisect_right(times, bound(stop, "--to", first))
    if low >= high:
        told = [written(at) if first >= POSIX else f"{at:g} s" for at in (first, times[-1])]
        raise UserError(
            f"{name}: no job is submitted between --from and --to;"
            f" the trace goes from {told[0]} to {told[1]}"
        )
    return low, high


def _numbered(jobs: list[TraceJob], rows: list[int], zero: float) -> list[TraceJob]:
    """Final jobs, column by column: making each tuple again by hand would double the load time."""
    specs, *truth = zip(*(jobs[row] for row in rows), strict=True)
    columns: list[Iterable[Any]] = list(zip(*specs, strict=True))
    fields = JobSpec._fields
    columns[fields.index("id")] = range(len(rows))
    named = zip(columns[fields.index("name")], rows, strict=True)
    columns[fields.index("name")] = [name or str(row) for name, row in named]
    columns[fields.index("submit")] = [at - zero for at in columns[fields.index("submit")]]
    deadlines = columns[fields.index("deadline")]
    if zero and set(deadlines) != {None}:
        moved = [None if at is None else at - zero for at in deadlines]
        columns[fields.index("deadline")] = moved
    return list(assemble(columns, truth))


def _askers_of_nothing(jobs: list[TraceJob]) -> list[str]:
    """A notice about jobs without GPU and CPU. Requests repeat, so few of them are looked at."""
    requests: dict[int, Request] = {id(job[0][3]): job[0][3] for job in jobs}
    nothing = {key for key, request in requests.items() if _asks_nothing(request)}
    count = sum(id(job[0][3]) in nothing for job in jobs) if nothing else 0
    ask = "job asks" if count == 1 else "jobs ask"
    return [f"{count:,} {ask} for neither GPU nor CPU and will hold nothing"] if count else []


def _asks_nothing(request: Request) -> bool:
    groups = request.alternatives[0].groups
    return not any(group.each.gpus or group.each.cpu for group in groups)
