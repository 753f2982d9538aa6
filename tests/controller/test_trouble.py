"""Clocks that jump, disks that fill, data bases that are locked, damaged or gone.

Each is one clear sentence, and what was decided and could not be written was never done.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import literal, select
from staging import Stage
from virtual import VirtualClock

from dovetail.controller import schema
from dovetail.controller.circumstances import doubling
from dovetail.controller.commands import Submit
from dovetail.controller.journal import Entry, Journal
from dovetail.controller.replaying import first_difference
from dovetail.controller.store import Store
from dovetail.controller.submission import Submission
from dovetail.controller.timebase import Anchor, Moment, TimeBase
from dovetail.model.errors import UserError
from dovetail.model.request import gang

# ---- time --------------------------------------------------------------------------------------


def test_decisions_do_not_see_the_wall_clock_jump(stage: Stage) -> None:
    stage.submit()
    stage.until(5.0)
    stage.site.clock.jump = -86400.0
    before = stage.controller.time.now()
    stage.restart()
    assert stage.controller.time.now() == before


def test_after_a_reboot_time_goes_on_from_the_last_batch() -> None:
    clock = VirtualClock()
    clock.now, clock.jump, clock.booted = 3.0, 1000.0, "second"
    last = Moment(now=500.0, wall=clock.wall() - 60.0)
    base = TimeBase(clock, Anchor("first", 77.0), last)
    assert base.now() == 560.0
    clock.now += 5.0
    assert base.now() == 565.0
    last = Moment(now=500.0, wall=clock.wall() + 60.0)
    assert TimeBase(clock, None, last).now() == 500.0


# ---- what can go wrong with the data base ------------------------------------------------------


def test_two_controllers_cannot_share_a_data_folder(stage: Stage) -> None:
    with pytest.raises(UserError, match="another controller is using it"):
        Store(stage.site.url)


def test_a_data_base_that_another_program_locks_is_one_sentence(stage: Stage) -> None:
    with sqlite3.connect(stage.site.folder / "dovetail.db") as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UserError, match="another program is using it"):
            stage.submit()
        other.rollback()
    other.close()
    assert not stage.site.machine.known
    stage.restart()
    assert not stage.controller.roster


def test_a_file_that_is_no_data_base_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("hello " * 1000)
    with pytest.raises(UserError, match="no data base"):
        Store(f"sqlite:///{tmp_path / 'x.db'}")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be opened"):
        Store(f"sqlite:///{tmp_path / 'nowhere' / 'x.db'}")


def test_a_url_that_is_none_is_refused() -> None:
    with pytest.raises(UserError, match="is no data base; write sqlite"):
        Store("what?")


def test_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    Store(url).close()
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE key = 'schema'")
    connection.close()
    with pytest.raises(UserError, match="newer Dovetail"):
        Store(url)


def test_a_vanished_data_folder_ends_the_controller_before_it_acts(stage: Stage) -> None:
    (stage.site.folder / "dovetail.db").unlink()
    answer = stage.controller.post(Submit((Submission(("x",), gang(1)),)))
    with pytest.raises(UserError, match="has vanished"):
        stage.controller.turn()
    with pytest.raises(UserError, match="has vanished"):
        answer.result(0)
    assert not stage.site.machine.known


def test_a_full_disk_leaves_no_half_of_an_entry(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'x.db'}")
    pages = int(store.rows(select(literal(2).label("x")))[0]["x"])
    with store.transaction() as connection:
        used = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {used + pages}")
    journal = Journal(store)
    rows = [{"id": n, "name": "x" * 9000, "owner": "", "submission": "{}"} for n in range(9)]
    entry = Entry(
        0.0,
        0.0,
        new_jobs=[{**row, "secrets": "{}", "state": "held", "submitted": 0.0} for row in rows],
    )
    with pytest.raises(UserError, match="the disk is full"):
        journal.write(entry)
    assert store.rows(select(schema.jobs)) == []
    store.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with little room."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode:
        pytest.skip("file systems may not be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_ends_the_controller_before_it_acts(small_disk: Path) -> None:
    stage = Stage(small_disk)
    first = stage.submit(1, 1000.0)
    stage.until(2.0)
    filler = small_disk / "filler"
    with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        while True:
            file.write(bytes(4096))
    answer = stage.controller.post(Submit((Submission(("x" * 9000,), gang(1)),) * 3))
    with pytest.raises(UserError, match="the disk is full; make room"):
        stage.controller.turn()
    with pytest.raises(UserError, match="the disk is full; make room"):
        answer.result(0)
    assert [attempt.job for attempt in stage.site.machine.known] == [first]
    filler.unlink()
    stage.restart()
    stage.controller.scheduler.validate()
    assert [live.id for live in stage.controller.roster.values()] == [first]
    assert stage.state(first) == "running"
    assert stage.state(stage.submit(1)) == "starting"
    assert first_difference(stage.controller.journal, stage.site.make) is None
    stage.site.close()


@pytest.mark.parametrize("page", [1, 2, 5])
def test_a_damaged_data_base_is_one_sentence_and_starts_nothing(page: int, tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for _ in range(9):
        stage.submit(1, 100.0)
    stage.until(5.0)
    stage.site.close()
    before = dict(stage.site.machine.known)
    file = tmp_path / "dovetail.db"
    whole = file.read_bytes()
    with file.open("r+b") as damaged:
        damaged.seek(4096 * page)
        damaged.write(os.urandom(len(whole) - 4096 * page))
    with pytest.raises(UserError, match="is damaged; restore a copy, or choose another") as told:
        stage.restart()
    assert "\n" not in str(told.value)
    assert stage.site.machine.known == before
    stage.site.close()
    file.write_bytes(whole)
    stage.restart()
    assert len(stage.controller.roster) == 9
    stage.site.close()


def test_jobs_are_found_again_when_a_vanished_folder_is_put_back(stage: Stage) -> None:
    number = stage.submit(2, 60.0)
    stage.until(5.0)
    file = stage.site.folder / "dovetail.db"
    aside = stage.site.folder / "aside.db"
    file.rename(aside)
    stage.controller.post(Submit((Submission(("x",), gang(1)),)))
    with pytest.raises(UserError, match="has vanished; put the data folder back"):
        stage.controller.turn()
    stage.site.close()
    aside.rename(file)
    stage.restart()
    assert stage.state(number) == "running"
    assert len(stage.site.machine.known) == 1


@pytest.mark.parametrize("jump", [-400 * 86400.0, 400 * 86400.0])
def test_a_wall_clock_that_jumps_ends_no_rest_and_no_job(jump: float, tmp_path: Path) -> None:
    stage = Stage(tmp_path, backoff=doubling(8.0))
    limited = stage.submit(2, 100.0, time_limit=50.0)
    resting = stage.submit(2, 10.0, retries=1, breaks=(2.0,))
    stage.until(5.0)
    stage.site.clock.jump = jump
    stage.until(10.0)
    stage.restart()
    assert (stage.state(limited), stage.state(resting)) == ("running", "waiting")
    stage.until(12.0)
    assert stage.state(resting) == "running"
    stage.until(50.0)
    assert stage.state(limited) == "running"
    stage.until(54.0)
    assert stage.state(limited) == "failed"
    stage.site.close()
