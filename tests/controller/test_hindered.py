"""Calls of an engine that fail: the journal and `why` tell, and nobody waits for ever."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from staging import Stage

from dovetail.controller import schema
from dovetail.controller.commands import Cancel
from dovetail.controller.reading import runs
from dovetail.controller.timeline import timeline
from dovetail.executors.protocol import Attempt, Hindered, Report, Running
from dovetail.model.allocation import Allocation, Part, allocation_of
from dovetail.model.plan import Action, Change, Resume, Suspend

RESIDUAL = allocation_of((Part(0, 0, 0, 0),))


def breaks(stage: Stage, name: str, times: float) -> list[int]:
    """Let a call fail so often; returns a list as long as it was made."""
    made: list[int] = []
    real: Callable[..., None] = getattr(stage.controller.executor, name)

    def call(attempt: Attempt, *given: Any) -> None:
        made.append(attempt.job)
        if len(made) <= times:
            raise OSError("the freezer is stuck")
        real(attempt, *given)

    setattr(stage.controller.executor, name, call)
    return made


def decide(stage: Stage, action: Action) -> None:
    """What a policy that suspends would decide next."""
    planner = stage.controller.scheduler.planners[0]
    decided, rest = planner.plan, [action]
    planner.plan = lambda now: [rest.pop()] if rest else decided(now)  # type: ignore[method-assign]


def written(stage: Stage, number: int) -> str:
    jobs = schema.jobs
    rows = stage.controller.journal.store.rows(select(jobs.c.reason).where(jobs.c.id == number))
    return str(rows[0]["reason"])


@pytest.fixture
def suspending(stage: Stage) -> Callable[[float], tuple[int, list[int]]]:
    """A job that is to be suspended, by a call that fails so often; and its calls."""

    def begin(times: float) -> tuple[int, list[int]]:
        number = stage.submit(length=500.0, resumable=True)
        stage.until(3.0)
        made = breaks(stage, "suspend", times)
        decide(stage, Suspend(number, RESIDUAL))
        stage.submit(gpus=4, length=5.0)
        return number, made

    return begin


def test_a_suspend_that_fails_is_told_and_tried_again(
    stage: Stage, suspending: Callable[[float], tuple[int, list[int]]]
) -> None:
    number, made = suspending(2)
    stage.until(4.0)
    said = "it could not be suspended (the freezer is stuck); this is tried again"
    assert (stage.why(number), written(stage, number)) == (f"it is stopping: {said}", said)
    stage.until(12.0)
    assert (len(made), stage.state(number), written(stage, number)) == (3, "suspended", "")


def test_who_cannot_be_suspended_is_stopped_and_waits_with_its_work(
    stage: Stage, suspending: Callable[[float], tuple[int, list[int]]]
) -> None:
    number, made = suspending(float("inf"))
    stage.until(60.0)
    assert len(made) == 5
    # Others had its devices in its place, and then it went on.
    assert stage.state(number) == "running"
    job = stage.controller.scheduler.jobs[number]
    assert (job.residual, job.starts) == (None, 2)


def test_a_stop_that_fails_is_told_and_tried_again(stage: Stage) -> None:
    number = stage.submit(length=500.0)
    stage.until(3.0)
    breaks(stage, "stop", 2)
    stage.ask(Cancel((number,)))
    stage.until(3.6)
    assert "it could not be stopped (the freezer is stuck); this is tried again" in stage.why(
        number
    )
    stage.until(12.0)
    assert stage.state(number) == "cancelled"


def test_a_resume_that_fails_is_told_and_tried_again(
    stage: Stage, suspending: Callable[[float], tuple[int, list[int]]]
) -> None:
    number, _ = suspending(0)
    stage.until(20.0)
    assert stage.state(number) == "suspended"
    made = breaks(stage, "resume", 1)
    decide(stage, Resume(number, allocation_of((Part(0, 0b1111),))))
    stage.submit()
    stage.until(20.5)
    assert stage.why(number).endswith(
        "it could not be resumed (the freezer is stuck); this is tried again"
    )
    stage.until(25.0)
    assert (len(made), stage.state(number), written(stage, number)) == (2, "running", "")


def test_who_cannot_be_resized_is_on_record_with_what_it_has(tmp_path: Path) -> None:
    stage = Stage(tmp_path, cluster="1x4,cpus=8,mem=64")
    number = stage.submit(gpus=4, length=500.0)
    stage.until(3.0)
    job = stage.controller.scheduler.jobs[number]
    had = job.allocation
    assert had is not None and had.cpu == 8000
    refuses(stage, had)
    less = allocation_of((had.parts[0]._replace(cpu=2000, memory=1024),))
    decide(stage, Change(number, less))
    stage.submit(gpus=1)
    stage.until(4.0)
    why = "it could not be resized (more is in use); it keeps what it has"
    assert (stage.why(number), job.allocation) == (f"it is running: {why}", less)
    (run,) = runs(stage.controller, number)
    assert [(place.cpu, place.memory) for place in run.places] == [(8000, had.memory)]
    assert timeline(stage.controller, number)[-1].places == run.places
    stage.site.close()


def refuses(stage: Stage, had: Allocation) -> None:
    """Let resizes be refused as the local engine does it: it says what an attempt still has."""
    engine, said = stage.controller.executor, list[Report]()
    others = engine.reports

    def resize(attempt: Attempt, _: Allocation) -> None:
        said.append(Running(attempt, had))
        said.append(Hindered(attempt, "resize", "more is in use", given_up=True))

    def reports() -> list[Report]:
        news, said[:] = [*others(), *said], []
        return news

    engine.resize, engine.reports = resize, reports  # type: ignore[method-assign]


def test_who_is_asked_again_by_a_new_controller_has_its_time_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "srtf")
    stage.submit(length=500.0, resumable=True, grace=30.0)
    stage.until(3.0)
    short = stage.submit(length=5.0)
    assert stage.why(short).endswith(": free in 30 s at the latest")
    stage.until(4.0)
    assert stage.why(short).endswith(": free in 29 s at the latest")
    stage.restart()
    assert stage.why(short).endswith(": free in 30 s at the latest")
    stage.site.close()


def test_a_long_time_to_leave_is_told_in_minutes(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "srtf")
    stage.submit(length=500.0, resumable=True, grace=200.0)
    stage.until(3.0)
    assert stage.why(stage.submit(length=5.0)).endswith(": free in 3 min 20 s at the latest")
    stage.site.close()
