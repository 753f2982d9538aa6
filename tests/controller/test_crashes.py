"""Killed at every write and between write and deed: nothing is lost and nothing runs twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from crashing import Fuse, Recurring, check, live_through, workload
from sqlalchemy import select
from virtual import Site

from dovetail.controller import schema
from dovetail.controller.parts import Parts
from dovetail.controller.replaying import first_difference
from dovetail.controller.store import Store
from dovetail.model.costs import Costs

COSTS = Costs(restart=2.0, stop=1.0, checkpoint_every=4.0)
POINTS = 220
"""Things that are done to data base and engine in one such life, at least."""
PERIOD = 23


def site(folder: Path) -> Site:
    return Site(
        folder,
        "1x4",
        Parts("srtf", costs=COSTS),
        latency=0.5,
        every=7,
        backoff=lambda failures: 3.0 * failures,
    )


def test_without_any_crash_all_is_well(tmp_path: Path) -> None:
    here, fuse = site(tmp_path), Fuse()
    controller, deaths = live_through(here, workload(), fuse)
    check(here, controller, workload())
    assert deaths == 0
    assert fuse.count >= POINTS
    assert controller.scheduler.preemptions > 2
    here.close()


@pytest.mark.parametrize("part", range(4))
def test_one_crash_anywhere_loses_nothing_and_repeats_nothing(part: int, tmp_path: Path) -> None:
    for point in range(1 + 4 * part, POINTS, 16):
        folder = tmp_path / str(point)
        folder.mkdir()
        here = site(folder)
        controller, deaths = live_through(here, workload(), Fuse(point))
        check(here, controller, workload())
        assert deaths == 1
        assert first_difference(controller.journal, here.make) is None
        here.close()


@pytest.mark.parametrize("part", range(4))
def test_crash_after_crash_at_every_point_gets_there_too(part: int, tmp_path: Path) -> None:
    died = 0
    for offset in range(2 * part, PERIOD, 8):
        folder = tmp_path / str(offset)
        folder.mkdir()
        here = site(folder)
        controller, deaths = live_through(here, workload(), Recurring(PERIOD, offset))
        check(here, controller, workload())
        died += deaths
        here.close()
    assert died >= 25


# ---- real kills --------------------------------------------------------------------------------

PROGRAM = Path(__file__).parent / "mortal.py"


def test_real_kills_at_any_moment(tmp_path: Path) -> None:
    """Each life is a process of its own; the engine's machine is rebuilt from files it left."""
    for life in range(5):
        with subprocess.Popen(
            [sys.executable, PROGRAM, tmp_path], stdout=subprocess.PIPE
        ) as mortal:
            assert mortal.stdout is not None
            assert mortal.stdout.readline() == b"ready\n"
            time.sleep(0.02 + 0.02 * (life % 6))
            os.kill(mortal.pid, signal.SIGKILL)
    last = subprocess.run([sys.executable, PROGRAM, tmp_path, "finish"], check=False)
    assert last.returncode == 0
    store = Store(f"sqlite:///{tmp_path / 'dovetail.db'}")
    states = [row["state"] for row in store.rows(select(schema.jobs.c.state))]
    store.close()
    assert len(states) == 60
    assert set(states) == {"done"}
    began = {file.name for file in (tmp_path / "attempts").iterdir()}
    assert began == {f"{number}-1" for number in range(1, 61)}
