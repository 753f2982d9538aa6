"""Microsoft Philly's published job log (Jeon et al., ATC'19): a JSON list of jobs.

    jobid, vc, user     the vc is the tenant
    submitted_time      date without zone
    status              Pass: finished, Killed: cancelled, Failed: failed
    attempts            [{start_time, end_time, detail: [{ip, gpus: [...]}, ...]}, ...]

The size is the GPUs of the first attempt. The work is the length of all attempts together; each
attempt but the last broke after its length and was tried again. Attempts without both times are
passed over, and jobs without any attempt left never ran: like jobs without a recorded GPU they are
left out and counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob
from dovetail.traces.moments import moment
from dovetail.traces.source import LeftOut, Source

OUTCOMES = {"Pass": "finished", "Killed": "cancelled", "Failed": "failed"}


class PhillyJson:
    """The JSON form of the Philly trace."""

    @classmethod
    def recognises(cls, first: str) -> int:
        """A list of objects, or its beginning."""
        return int(first.lstrip()[:1] == "[")

    def __call__(self, source: Source) -> Iterator[TraceJob]:
        """The jobs of the list, in its order."""
        return source.jobs(_objects(source), self.job)

    def job(self, record: Any) -> TraceJob:
        """One object of the list."""
        try:
            lengths = [*_lengths(record["attempts"])]
            if not lengths:
                raise LeftOut("jobs that never ran")
            gpus = sum(len(node["gpus"]) for node in record["attempts"][0]["detail"])
            if not gpus:
                raise LeftOut("jobs without a recorded GPU")
            name, submit = str(record["jobid"]), moment(str(record["submitted_time"]))
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"the job has no usable {error}") from None
        breaks = tuple(filter(None, lengths[:-1]))
        spec = JobSpec(
            0,
            name,
            submit,
            gang(gpus),
            str(record.get("vc", "")),
            str(record.get("user", "")),
            retries=len(breaks),
        )
        return TraceJob(spec, sum(lengths), breaks, OUTCOMES.get(record.get("status"), "failed"))


def _lengths(attempts: Any) -> Iterator[float]:
    for attempt in attempts:
        start, end = attempt.get("start_time"), attempt.get("end_time")
        if start not in (None, "", "None") and end not in (None, "", "None"):
            length = moment(end) - moment(start)
            if length < 0:
                raise ValueError(f"an attempt ends ({end}) before it starts ({start})")
            yield length


def _objects(source: Source) -> Iterator[Any]:
    """The members of a JSON list one by one, so that only its text is held, not its tree."""
    text = "".join(source.lines)
    decode, place, line = json.JSONDecoder().raw_decode, 0, 1
    while True:
        start = place
        while place < len(text) and text[place] in " \t\r\n,[]":
            place += 1
        if place == len(text):
            return
        line += text.count("\n", start, place)
        source.line = line
        try:
            record, end = decode(text, place)
        except json.JSONDecodeError as error:
            raise UserError(f"{source.name}:{error.lineno}: not JSON: {error.msg}") from None
        yield record
        line += text.count("\n", place, end)
        place = end
