"""Others on our machines, and jobs that make nothing of what they hold."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hosting import PATIENCE
from staging import Stage

from dovetail.controller.commands import Submit
from dovetail.controller.idleness import IdleRule
from dovetail.controller.journal import Journal
from dovetail.controller.loop import Controller, Settings
from dovetail.controller.others import OTHERS
from dovetail.controller.parts import Parts, composer
from dovetail.controller.reading import Description, describe
from dovetail.controller.replaying import first_difference
from dovetail.controller.store import Store
from dovetail.controller.submission import Submission
from dovetail.executors.fake import FakeExecutor
from dovetail.executors.local import Local, detect
from dovetail.executors.protocol import Attempt, Use
from dovetail.model.allocation import NOTHING, Allocation, Part, allocation_of
from dovetail.model.cluster import Cluster
from dovetail.model.node import Node
from dovetail.model.request import gang

# ---- others ------------------------------------------------------------------------------------


def foreign(devices: int, memory: int = 0) -> Allocation:
    return allocation_of((Part(0, devices, 0, memory),))


def held(stage: Stage) -> Allocation:
    return stage.controller.scheduler.holdings.get(OTHERS, NOTHING)


def test_a_gpu_that_others_use_is_not_given_out(stage: Stage) -> None:
    stage.site.machine.foreign = foreign(0b0001)
    stage.until(11.0)
    number = stage.submit(4)
    assert stage.state(number) == "waiting"
    assert stage.state(stage.submit(3)) == "waiting"
    stage.restart()
    assert held(stage) == foreign(0b0001)
    stage.site.machine.foreign = NOTHING
    stage.until(30.0)
    assert held(stage) == NOTHING
    assert stage.state(number) == "running"
    assert first_difference(stage.controller.journal, stage.site.make) is None


def test_somebody_who_looks_in_for_a_moment_keeps_nobody_waiting(stage: Stage) -> None:
    for moment in range(5, 60, 5):
        stage.site.machine.foreign = foreign(0b1111 if moment % 10 else 0)
        stage.until(float(moment))
        assert held(stage) == NOTHING
    assert stage.controller.journal.sequence == 0


def test_a_gpu_our_job_holds_is_never_foreign(stage: Stage) -> None:
    number = stage.submit(2, 60.0)
    stage.site.machine.foreign = foreign(0b0111)
    stage.until(20.0)
    assert stage.state(number) == "running"
    assert held(stage) == foreign(0b0100)


def test_memory_of_others_counts_in_steps(tmp_path: Path) -> None:
    stage = Stage(tmp_path, cluster=Cluster([Node("n0", 4, 8000, 10_000)]))
    told = []
    for moment, used in enumerate((100, 100, 900, 950, 1000, 1300, 1900, 1900, 1700, 10, 10), 1):
        stage.site.machine.foreign = foreign(0, used)
        stage.until(5.0 * moment)
        told.append(held(stage).memory)
    assert told == [0, 0, 0, 900, 900, 900, 900, 1900, 1900, 1900, 10]
    stage.site.machine.foreign = foreign(0, 9000)
    stage.until(90.0)
    big = stage.ask(Submit((Submission(("x",), gang(1, memory=5000)),))).jobs[0]
    assert stage.state(big) == "waiting"
    stage.site.close()


class Blind(FakeExecutor):
    def used_by_others(self) -> Allocation:
        raise OSError("the driver does not answer")


def test_an_engine_that_cannot_look_ends_nobody(stage: Stage) -> None:
    stage.restart(executor=Blind(stage.site.machine))
    number = stage.submit()
    stage.until(20.0)
    assert stage.state(number) == "done"


# ---- idle jobs ---------------------------------------------------------------------------------

REASON = "it has used less than 10 % GPU for 20 s"


def idle_stage(folder: Path, action: Any) -> Stage:
    return Stage(folder, idle=IdleRule(20.0, 10.0, action))


@pytest.mark.parametrize("action", ["nothing", "tell", "requeue", "cancel"])
def test_an_idle_job_is_dealt_with_as_the_admin_chose(action: str, tmp_path: Path) -> None:
    stage = idle_stage(tmp_path, action)
    number, busy = stage.submit(2, 100.0), stage.submit(2, 100.0)
    stage.site.machine.uses = {Attempt(number, 1): Use(2.0), Attempt(busy, 1): Use(90.0)}
    stage.until(20.0)
    assert stage.why(number) == "it is running"
    stage.until(40.0)
    told = describe(stage.controller, number)
    expected = {
        "nothing": ("running", "it is running"),
        "tell": ("running", f"it is running: {REASON}"),
        "requeue": ("running", "it is running"),
        "cancel": ("cancelled", REASON),
    }
    assert (told.state, told.reason) == expected[action]
    assert told.attempts == (2 if action == "requeue" else 1)
    assert told.failures == 0
    assert stage.why(busy) == "it is running"
    stage.site.close()


def test_a_job_that_works_again_is_not_called_idle_any_more(tmp_path: Path) -> None:
    stage = idle_stage(tmp_path, "tell")
    number = stage.submit(2, 200.0)
    stage.site.machine.uses = {Attempt(number, 1): Use(2.0)}
    stage.until(40.0)
    assert REASON in stage.why(number)
    stage.site.machine.uses = {Attempt(number, 1): Use(50.0)}
    stage.until(50.0)
    assert stage.why(number) == "it is running"
    stage.site.machine.uses = {Attempt(number, 1): Use(2.0)}
    stage.until(60.0)
    assert stage.why(number) == "it is running"
    stage.site.close()


def test_a_real_job_that_sleeps_is_cancelled_and_one_that_works_is_not(tmp_path: Path) -> None:
    executor = Local(tmp_path, detect(virtual=2))
    # One that sleeps uses nothing; one that works has little on a busy machine.
    rule = IdleRule(after=0.6, below=0.5, action="cancel")
    settings = Settings(look=0.2, idle=rule)
    store = Store(f"sqlite:///{tmp_path / 'dovetail.db'}")
    make = composer(Parts(), executor)
    controller = Controller(make, Journal(store), executor, settings)
    work = "import time\nwhile time.process_time() < 1: pass"
    commands = (("sleep", "600"), (sys.executable, "-c", work))
    wanted = tuple(Submission(each, gang(1, 500, 32), grace=1.0) for each in commands)
    controller.post(Submit(wanted))
    deadline = time.monotonic() + PATIENCE
    while controller.roster or controller._asked:
        controller.turn()
        time.sleep(0.02)
        assert time.monotonic() < deadline
    told: list[Description] = [describe(controller, number) for number in (1, 2)]
    store.close()
    assert [each.state for each in told] == ["cancelled", "done"]
    assert "0.5 % CPU (it stands in for virtual GPUs)" in told[0].reason
