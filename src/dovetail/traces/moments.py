"""Times as people and traces write them, turned into seconds.

A date becomes POSIX seconds; without a zone it is UTC. A number stays what it is: seconds in the
trace's own time. From `POSIX` on a number is taken to count from 1970, because three years are
longer than the wait for the first job of any trace that starts at 0.
"""

from __future__ import annotations

from datetime import UTC, datetime
from math import inf

from dovetail.model.errors import UserError

POSIX = 1e8
"""A trace whose first job comes later than this is a dated one."""

EPOCH = datetime(1970, 1, 1)
HINT = "seconds, 0 or more, or a date like 2017-10-01 or 2017-10-07T23:59:45"


def moment(text: str) -> float:
    """Seconds, or a date as POSIX seconds."""
    if text[4:5] != "-":  # only then is it a date: 20171001 is a number of seconds
        return _number(text)
    try:
        return (datetime.fromisoformat(text) - EPOCH).total_seconds()
    except ValueError:
        raise ValueError(f"must be {HINT}") from None
    except TypeError:  # it has a zone, and the epoch has none
        return datetime.fromisoformat(text).timestamp()


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"must be {HINT}") from None
    if not 0 <= value < inf:
        raise ValueError(f"must be {HINT}")
    return value


def written(seconds: float) -> str:
    """POSIX seconds as a date that `moment` reads back."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


def bound(text: str, option: str, first: float) -> float:
    """A `--from` or `--to` in the time of a trace whose first job comes at `first`.

    In a dated trace a plain number counts from that first job.
    """
    try:
        value = moment(text.strip())
    except ValueError as error:
        raise UserError(f"{option} {text}: it {error}") from None
    if first < POSIX:
        if text.strip()[4:5] == "-":
            raise UserError(f"{option} {text}: the trace has no dates; give seconds")
        return value
    return value if value >= POSIX else value + first
