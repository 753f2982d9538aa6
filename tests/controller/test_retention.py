"""Jobs that ended long ago are forgotten, with everything they left, and nobody else is."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select
from staging import Stage

from dovetail.controller import schema
from dovetail.controller.commands import Submit
from dovetail.controller.reading import describe, history
from dovetail.controller.retention import DAY, Retention
from dovetail.controller.submission import Submission
from dovetail.executors.fake import FakeExecutor
from dovetail.executors.local.folders import folder_of, remove
from dovetail.executors.protocol import Attempt
from dovetail.model.errors import UserError
from dovetail.model.request import gang


def settle(stage: Stage, rounds: int = 8) -> None:
    """Let the thread that removes folders keep up with the virtual clock."""
    for _ in range(rounds):
        stage.controller.turn()
        if (leaving := stage.controller.forgetting._leaving) is not None:
            leaving[1].result()


@pytest.fixture(autouse=True)
def an_engine_with_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines that only pretend leave nothing: these forget as the local engine does."""
    forget = partial(remove, tmp_path)
    monkeypatch.setattr(FakeExecutor, "forget", lambda self, attempts: forget(attempts))


def with_folder(stage: Stage, number: int) -> Path:
    """What an engine would have left of the job."""
    path = folder_of(stage.site.folder, Attempt(number, 1)).path
    (path / "job" / "deep").mkdir(parents=True)
    (path / "job" / "deep" / "file").write_text("x")
    (path / "log").symlink_to("/etc/hostname")
    return path


def kept(stage: Stage) -> list[int]:
    return sorted(each.id for each in history(stage.controller))


def test_old_jobs_are_forgotten_with_their_folders(tmp_path: Path) -> None:
    stage = Stage(tmp_path, keep=Retention(days=2.0, every=60.0))
    first = stage.submit(length=5.0)
    paths = [with_folder(stage, first)]
    stage.until(20.0)
    stage.site.clock.now += DAY
    second, third = stage.submit(length=5.0), stage.submit(length=5.0)
    stage.until(stage.site.clock.now + 30.0)
    paths += [with_folder(stage, second)]
    settle(stage)
    assert kept(stage) == [first, second, third]
    stage.site.clock.now += DAY * 1.5
    settle(stage)
    assert kept(stage) == [second, third]
    assert [path.exists() for path in paths] == [False, True]
    assert Path("/etc/hostname").exists()
    with pytest.raises(UserError, match="there is no job 1"):
        describe(stage.controller, first)
    stage.restart()
    # The newest number is never given again, whatever is forgotten.
    stage.site.clock.now += DAY * 5
    settle(stage)
    stage.restart()
    assert stage.submit() == third + 1
    rows = stage.controller.journal.store.rows(select(schema.attempts.c.job))
    assert {row["job"] for row in rows} == {third, third + 1}
    rows = stage.controller.journal.store.rows(select(schema.steps.c.job))
    assert {row["job"] for row in rows} == {third, third + 1}
    stage.controller.forgetting.close()
    stage.site.close()


def test_only_so_many_jobs_are_kept(tmp_path: Path) -> None:
    stage = Stage(tmp_path, keep=Retention(jobs=3, every=1.0))
    wanted = Submission(("x",), gang(1))
    for number in range(1, 12):
        stage.know(number, 1, 1.0)
    stage.ask(Submit((wanted,) * 6, array=True))
    held = stage.submit(held=True)
    stage.until(30.0)
    settle(stage)
    assert kept(stage) == [5, 6, 7]
    assert stage.state(held) == "held"
    assert stage.controller.journal.store.rows(select(schema.arrays)) != []
    stage.ask(Submit((wanted,) * 3))
    stage.until(40.0)
    settle(stage)
    assert kept(stage) == [9, 10, 11]
    assert stage.controller.journal.store.rows(select(schema.arrays)) == []
    stage.site.close()


def test_a_wall_clock_that_jumps_forgets_nobody(tmp_path: Path) -> None:
    stage = Stage(tmp_path, keep=Retention(days=1.0, every=1.0))
    stage.submit(length=5.0)
    stage.until(20.0)
    second = stage.submit(length=5.0)
    stage.site.clock.jump = 400 * DAY
    stage.until(40.0)
    settle(stage)
    assert kept(stage) == [1, second]
    stage.site.close()
