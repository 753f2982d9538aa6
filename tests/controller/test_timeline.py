"""What became of a job over time: every state, every grant, across restarts and older records."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from staging import Stage

from dovetail.controller.commands import Hold, Release
from dovetail.controller.timeline import timeline
from dovetail.model.live import Stretch

BEGIN = 1_700_000_000.0


def told(stage: Stage, number: int) -> list[str]:
    """`state from-until`, as seconds since the beginning."""
    return [_said(each) for each in timeline(stage.controller, number)]


def _said(each: Stretch) -> str:
    until = "" if each.until is None else f"{each.until - BEGIN:g}"
    return f"{each.state} {each.since - BEGIN:g}-{until}"


def grants(stage: Stage, number: int) -> list[tuple[int, int]]:
    """Thousandths of cores, and GPUs, of each stretch in which it held something."""
    found = [each.places for each in timeline(stage.controller, number) if each.places]
    return [(sum(on.cpu for on in each), sum(len(on.devices) for on in each)) for each in found]


def test_states_follow_each_other_from_submission_to_end(stage: Stage) -> None:
    first, second = stage.submit(length=5.0), stage.submit(length=3.0)
    stage.until(2.0)
    stage.ask(Hold((second,)))
    stage.until(4.0)
    assert told(stage, second) == ["waiting 0-2", "held 2-"]
    stage.ask(Release((second,)))
    stage.until(20.0)
    assert told(stage, first) == ["starting 0-1", "running 1-6"]
    assert told(stage, second) == [
        "waiting 0-2",
        "held 2-4",
        "waiting 4-6",
        "starting 6-7",
        "running 7-10",
    ]


def test_what_is_submitted_on_hold_was_held_from_the_beginning(stage: Stage) -> None:
    number = stage.submit(held=True)
    stage.until(3.0)
    stage.ask(Release((number,)))
    stage.until(5.0)
    assert told(stage, number) == ["held 0-3", "starting 3-4", "running 4-"]


def test_attempts_are_told_apart_and_hold_nothing_in_between(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "srtf")
    long = stage.submit(length=30.0, resumable=True)
    stage.until(5.0)
    stage.submit(length=4.0)
    stage.until(60.0)
    found = timeline(stage.controller, long)
    assert [(each.state, each.attempt, len(each.places)) for each in found] == [
        ("starting", 1, 1),
        ("running", 1, 1),
        ("stopping", 1, 1),
        ("waiting", 1, 0),
        ("starting", 2, 1),
        ("running", 2, 1),
    ]
    stage.site.close()


@pytest.fixture
def shared(tmp_path: Path) -> Stage:
    """A node whose jobs get the cores they profit from: 24 of them for four GPUs."""
    return Stage(tmp_path, "synergy", cluster="1x4,cpus=24,mem=500")


def test_every_resize_is_told_and_survives_a_restart(shared: Stage) -> None:
    first = shared.submit(1, 60.0, model="shufflenet")
    shared.until(5.0)
    shared.submit(3, 10.0, model="shufflenet")
    shared.until(30.0)
    seen = grants(shared, first)
    # Alone it may have all it profits from, beside another one its share, and then all again.
    assert len(seen) >= 3
    alone, beside, again = seen[-3:]
    assert alone == again > beside
    before = timeline(shared.controller, first)
    shared.restart()
    assert timeline(shared.controller, first)[: len(before) - 1] == before[:-1]
    shared.site.close()


def test_a_clock_that_was_set_back_sets_no_job_back(stage: Stage) -> None:
    number = stage.submit(length=5.0)
    stage.until(3.0)
    stage.site.clock.jump = -2.0
    stage.until(20.0)
    found = timeline(stage.controller, number)
    assert [each.since for each in found] == sorted(each.since for each in found)
    stage.site.close()


def test_records_of_an_older_program_are_taken_over(stage: Stage) -> None:
    number = stage.submit(length=5.0)
    stage.until(20.0)
    stage.site.close()
    with sqlite3.connect(stage.site.folder / "dovetail.db") as connection:
        connection.execute("DROP TABLE steps")
        connection.execute("UPDATE meta SET value = '4' WHERE key = 'schema'")
    connection.close()
    stage.controller = stage.site.open()
    # When it was starting is not on record there; what it held is.
    assert told(stage, number) == ["running 0-6"]
    assert grants(stage, number) == [(0, 4)]
