"""Traces of Gavel and its descendants: tab-separated lines without a header.

10 columns (Narayanan et al., OSDI'20): job_type, command, working_dir, num_steps_arg,
needs_data_dir, total_steps, scale_factor (GPUs), priority, SLO (a factor of the length; below 0:
none), arrival (seconds). Shockwave (Zheng et al., NSDI'23) has 12: mode after scale_factor, and the
duration in seconds before the arrival. The older form of 7 is job_type, command, num_steps_arg,
needs_data_dir, total_steps, arrival, scale_factor; its steps are counted at the rate of one GPU.

A trace says how many steps a job has, not how long they take: `gavel:throughputs=FILE` names the
JSON file of steps per second that goes with it, and `reference=p100` another GPU type than v100 to
count the work in. Without it only Shockwave's own durations can be read. The job type selects the
profile. Jobs are called by their row, counted from 0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from dovetail.core.registry import nearest
from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.traces.source import Source, open_text
from dovetail.traces.table import count, number, seconds

N = TypeVar("N", int, float)

HEAD = ("job_type", "command", "working_dir", "num_steps_arg", "needs_data_dir", "total_steps")
FORMS: dict[int, tuple[str, ...]] = {
    7: (*HEAD[:2], *HEAD[3:], "arrival", "scale_factor"),
    10: (*HEAD, "scale_factor", "priority", "SLO", "arrival"),
    12: (*HEAD, "scale_factor", "mode", "priority", "SLO", "duration", "arrival"),
}
"""Columns of the three forms, by their number."""


@dataclass(frozen=True)
class Gavel:
    """A Gavel trace of any of the three forms."""

    #: JSON file of steps per second: type -> "('job type', GPUs)" -> "null"
    throughputs: str = ""
    #: GPU type whose rate is 1
    reference: str = "v100"

    @classmethod
    def recognises(cls, first: str) -> int:
        """So many fields, and a number at the end."""
        fields = first.rstrip("\r\n").split("\t")
        ends_well = fields[-1].replace(".", "", 1).isdecimal()
        return len(fields) if len(fields) in FORMS and ends_well else 0

    def __call__(self, source: Source) -> Iterator[TraceJob]:
        """The jobs of the file, in its order."""
        rates = self._rates()
        if rates is None and "duration" not in FORMS.get(source.first.count("\t") + 1, ()):
            text = "a Gavel trace counts steps; say how fast with --format gavel:throughputs=FILE"
            raise UserError(f"{source.name}: {text}")
        return source.jobs(source, lambda line: self.job(line.rstrip("\r\n"), rates))

    def job(self, line: str, rates: dict[str, Any] | None) -> TraceJob | None:
        """One line of one of the three forms; an empty one is none."""
        if not line:
            return None
        fields = line.split("\t")
        if len(fields) not in FORMS:
            raise ValueError(f"{len(fields)} fields; a row has 7, 10 or 12, separated by tabs")
        row = dict(zip(FORMS[len(fields)], fields, strict=True))
        submit, gpus = _read(row, "arrival", seconds), _read(row, "scale_factor", count)
        work = self._work(row, rates)
        slack, priority = _read(row, "SLO", number, -1.0), _read(row, "priority", number, 1.0)
        deadline = submit + slack * work if slack > 0 else None
        spec = JobSpec(0, "", submit, gang(gpus), "", "", row["job_type"], priority, deadline)
        return TraceJob(spec, work)

    def _work(self, row: dict[str, str], rates: dict[str, Any] | None) -> float:
        if rates is None:
            return _read(row, "duration", seconds)
        gpus = row["scale_factor"] if len(row) > 7 else "1"
        return _read(row, "total_steps", seconds) / self._rate(rates, row["job_type"], gpus)

    def _rates(self) -> dict[str, Any] | None:
        if not self.throughputs:
            return None
        with open_text(self.throughputs) as file:
            try:
                rates = json.load(file)
            except json.JSONDecodeError as error:
                raise UserError(f"{self.throughputs}:{error.lineno}: {error.msg}") from None
        if not isinstance(rates, dict) or self.reference not in rates:
            kinds = list(rates) if isinstance(rates, dict) else []
            offer = nearest(self.reference, kinds)
            raise UserError(f"{self.throughputs}: no throughputs of {self.reference!r}{offer}")
        return rates[self.reference]  # type: ignore[no-any-return]

    def _rate(self, rates: dict[str, Any], kind: str, gpus: str) -> float:
        try:
            rate = float(rates[f"({kind!r}, {gpus})"]["null"])
        except (KeyError, TypeError):
            raise ValueError(f"no throughput of {kind!r} on {gpus} GPUs") from None
        if rate <= 0:
            raise ValueError(f"{kind!r} on {gpus} GPUs does not run on {self.reference}")
        return rate


def _read(
    row: dict[str, str], name: str, convert: Callable[[str], N], missing: N | None = None
) -> N:
    if missing is not None and name not in row:
        return missing
    try:
        return convert(row[name])
    except ValueError as error:
        raise ValueError(f"{name} is {row[name]!r}: it {error}") from None
