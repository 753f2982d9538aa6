"""The figures of the weekly page, against sums done by hand."""

from __future__ import annotations

import json
import re

import pytest

from dovetail.metrics.review import (
    CANCELLED,
    FAILED,
    IDLE,
    STOPPED,
    UNWANTED,
    USEFUL,
    Asked,
    Held,
    review,
)
from dovetail.model.review import Review
from dovetail.report.week import html_week

HOUR = 3600.0


def asked(job: int, user: str, gpus: float, submitted: float, started: float | None) -> Asked:
    state = "waiting" if started is None else "done"
    ended = None if started is None else started + HOUR
    return Asked(job, f"j{job}", user, gpus, submitted, started, ended, state)


def reviewed(jobs: list[Asked], runs: list[Held], until: float = 10 * HOUR) -> Review:
    return review(jobs, runs, 0.0, until, 4, "fifo")


def hours(found: Review) -> dict[str, float]:
    return {each.cause: round(each.gpu_hours, 3) for each in found.spent if each.gpu_hours}


def test_every_gpu_hour_is_counted_once() -> None:
    jobs = [asked(1, "ann", 2, 0.0, 0.0), asked(2, "bob", 4, 0.0, 2 * HOUR)]
    runs = [
        Held(1, 2, 0.0, 2 * HOUR, FAILED, 2 * HOUR),
        Held(2, 4, 2 * HOUR, 3 * HOUR, STOPPED, 0.5 * HOUR),
        Held(2, 4, 3 * HOUR, 4 * HOUR),
        Held(1, 1, 4 * HOUR, 5 * HOUR, CANCELLED, HOUR),
    ]
    found = reviewed(jobs, runs)
    told = hours(found)
    # For two hours 2 GPUs were free while the job of 4 waited.
    assert told[IDLE] == 4.0
    assert (told[FAILED], told[STOPPED], told[CANCELLED]) == (4.0, 2.0, 1.0)
    assert told[USEFUL] == 6.0
    assert sum(told.values()) == pytest.approx(4 * 10)
    assert told[UNWANTED] == 40 - 17
    assert sum(found.busy) * found.step / HOUR == pytest.approx(13.0, abs=0.02)


def test_only_what_lies_in_the_time_counts() -> None:
    found = reviewed([asked(1, "ann", 4, -9 * HOUR, -8 * HOUR)], [Held(1, 4, -8 * HOUR, HOUR)])
    assert hours(found) == {USEFUL: 4.0, UNWANTED: 36.0}
    assert found.users[0].mean is None
    assert found.submitted == 0


def test_waits_by_user_and_size() -> None:
    jobs = [
        asked(1, "ann", 1, 0.0, 60.0),
        asked(2, "ann", 1, 0.0, 180.0),
        asked(3, "bob", 4, HOUR, None),
    ]
    runs = [Held(1, 1, 60.0, HOUR), Held(2, 1, 180.0, HOUR)]
    found = reviewed(jobs, runs)
    ann, bob = found.users
    assert (ann.name, ann.jobs, ann.mean, ann.median, ann.waiting) == ("ann", 2, 120.0, 120.0, 0)
    assert (bob.mean, bob.waiting, bob.gpu_hours) == (None, 1, 0.0)
    assert [size.name for size in found.sizes] == ["up to 1 GPU", "3 to 4"]


def test_what_waited_longest_and_why() -> None:
    jobs = [
        asked(9, "ann", 4, 0.0, None),
        asked(2, "bob", 2, 0.0, 4 * HOUR),
        Asked(3, "later", "bob", 1, 0.0, None, None, "held", wants=False),
    ]
    found = reviewed(jobs, [Held(1, 4, 0.0, 3 * HOUR)])
    first, second = found.longest
    assert (first.job, first.still) == (9, True)
    assert first.why == "fewer than 4 GPUs were free for 30% of that time"
    assert (second.wait, second.still) == (4 * HOUR, False)
    assert second.why == "fewer than 2 GPUs were free for 75% of that time"


def test_minutes_are_drawn_as_well_as_weeks() -> None:
    found = reviewed([asked(1, "ann", 4, 0.0, 10.0)], [Held(1, 4, 10.0, 60.0)], until=100.0)
    drawn = re.search(
        r'<script type="application/json" id="figures">(.*?)</script>', html_week(found)
    )
    assert drawn is not None
    (line,) = json.loads(drawn[1])["use"]["data"]
    assert len(set(line["x"])) > 90
