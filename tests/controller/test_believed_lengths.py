"""What is believed of a job's length once it has told how far it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from staging import Stage

from dovetail.controller.forecast import Forecasting
from dovetail.controller.submission import Submission
from dovetail.executors.protocol import Advanced, Attempt
from dovetail.model.job import JobSpec
from dovetail.model.request import gang


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, "srtf")
    yield made
    made.site.close()


def says(stage: Stage, number: int, steps: float, total: float, rate: float) -> None:
    stage.controller.performer.news.append(Advanced(Attempt(number, 1), steps, total, rate))
    stage.controller.turn()


def test_it_is_still_believed_after_a_preemption(stage: Stage) -> None:
    scheduler = stage.controller.scheduler
    number = stage.submit(4, 200.0, estimate=None, resumable=True)
    stage.until(20.0)
    says(stage, number, 100.0, 1000.0, 5.0)
    assert scheduler.jobs[number].time_left(20.0) == pytest.approx(180.0)
    short = stage.submit(4, 5.0)
    stage.until(24.0)
    assert stage.state(short) == "running"
    job = scheduler.jobs[number]
    assert (str(job.status), job.preemptions) == ("waiting", 1)
    assert job.time_left(24.0) == pytest.approx(180.0, abs=1.0)


def test_a_job_that_reports_steps_teaches_how_long_it_really_took(stage: Stage) -> None:
    scheduler = stage.controller.scheduler
    number = stage.submit(4, 30.0, estimate=None)
    stage.until(10.0)
    says(stage, number, 100.0, 300.0, 10.0)
    stage.until(31.0)
    assert number not in scheduler.jobs
    alike = JobSpec(9, "x", 0.0, gang(4), user="ann")
    assert scheduler.predictor.expect(alike) == pytest.approx(30.0, rel=0.1)


def test_what_ran_past_its_length_is_believed_to_run_on(stage: Stage) -> None:
    """As long as jobs do that ran as long: how long a new one waits for it can be told."""
    stage.submit(4, 1000.0, estimate=60.0)
    stage.until(90.0)
    asked = Submission(("train",), gang(4), estimate=10.0)
    told = Forecasting(stage.controller, [asked]).answer()
    assert told.starts_in is not None and 5 < told.starts_in < 300


def test_another_speed_is_another_length(stage: Stage) -> None:
    scheduler = stage.controller.scheduler
    number = stage.submit(4, 1000.0)
    for at, steps, rate, left in ((20.0, 10.0, 1.0, 90.0), (60.0, 30.0, 0.5, 140.0)):
        stage.until(at)
        says(stage, number, steps, 100.0, rate)
        assert scheduler.jobs[number].time_left(at) == pytest.approx(left)
