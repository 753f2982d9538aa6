"""What is told of the past calls members of arrays as lists do, long after they have ended."""

from __future__ import annotations

import asyncio
import logging

import pytest
from staging import Stage

from dovetail.cli.answer_texts import shadow_tables
from dovetail.controller.commands import Accepted, Cancel, Submit
from dovetail.controller.parts import Parts
from dovetail.controller.past import past
from dovetail.controller.reviewing import reviewed
from dovetail.controller.shadowing import Pace, Shadow, labelled
from dovetail.controller.submission import Submission
from dovetail.controller.telling import Teller
from dovetail.model.request import gang
from dovetail.report.week import html_week


def array(stage: Stage, size: int, gpus: int, length: float) -> Accepted:
    first = stage.controller.roster.next_id
    for number in range(first, first + size + 1):
        stage.know(number, gpus, length)
    wanted = Submission(("train",), gang(gpus), "sweep", estimate=length)
    accepted: Accepted = stage.ask(Submit((wanted,) * size, array=True))
    return accepted


def test_jobs_that_are_replayed_or_waited_long(stage: Stage) -> None:
    stage.submit(4, 10.0)
    array(stage, 2, 4, 10.0)
    stage.until(60.0)
    assert not stage.controller.roster
    parts = stage.parts("fifo")
    found = asyncio.run(past(stage.controller, parts))
    assert [job.spec.name for job in found.jobs] == ["1 j1", "2.0 sweep", "2.1 sweep"]
    week = asyncio.run(reviewed(stage.controller, parts, 0.0))
    assert [week.labels.get(each.job) for each in week.longest][:2] == ["2.1", "2.0"]
    assert ">2.1 sweep<" in html_week(week)


def test_decisions_that_another_policy_would_have_made(stage: Stage) -> None:
    controller = stage.controller
    pace = Pace(float("inf"), 0.0)
    shadow = Shadow(controller, Parts("smallest-first:skip=true"), "fifo", pace)

    def watch(*decision: object) -> None:
        shadow(*decision)  # type: ignore[arg-type]
        shadow.consider()

    controller.watch = watch
    for _ in range(3):
        stage.submit(4, 10.0)
    members = array(stage, 2, 1, 10.0).jobs
    stage.until(60.0)
    report = labelled(shadow.report(), controller.roster)
    assert members in [each.instead for each in report.differences]
    assert report.labels == {members[0]: "4.0", members[1]: "4.1"}
    said = [str(each) for each in shadow_tables(report)]
    assert any("it would have started jobs 4.0, 4.1" in line for line in said)


def test_lines_of_the_controllers_log(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.controller.watch = Teller(stage.controller)
    with caplog.at_level(logging.INFO, "dovetail"):
        members = array(stage, 2, 4, 10.0).jobs
        stage.ask(Cancel((members[1],)))
        stage.until(20.0)
    said = " | ".join(record.getMessage() for record in caplog.records)
    for line in ("job 1.0 (sweep) submitted", "job 1.0 starts on", "job 1.1 (sweep) cancelled"):
        assert line in said
    assert "job 1.0 (sweep) done" in said
