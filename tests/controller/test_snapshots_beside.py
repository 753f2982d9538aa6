"""Snapshots are written beside the turns: none waits long, and half of one is never used."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from sqlalchemy import func, select
from staging import Stage
from virtual import Site

from dovetail.controller import schema
from dovetail.controller.commands import Submit
from dovetail.controller.journal import Journal
from dovetail.controller.loop import Controller
from dovetail.controller.parts import Parts
from dovetail.controller.records import compact
from dovetail.controller.store import Store
from dovetail.controller.submission import Submission
from dovetail.executors.fake import FakeExecutor
from dovetail.model.request import gang


class WhenTold(Executor):
    """A thread that is very slow: it does the next thing when somebody says so."""

    def __init__(self) -> None:
        self.todo: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, work: Callable[..., Any], /, *given: Any, **named: Any) -> Future[Any]:
        self.todo.append((Future(), lambda: work(*given, **named)))
        return self.todo[-1][0]

    def next(self) -> None:
        future, work = self.todo.pop(0)
        if future.set_running_or_notify_cancel():
            future.set_result(work())


def slow_stage(folder: Path) -> tuple[Stage, WhenTold]:
    """Five jobs, and a snapshot of them in three pieces that has begun."""
    stage, beside = Stage(folder), WhenTold()
    snapshots = stage.controller.journal.snapshots
    snapshots._beside, snapshots.piece = beside, 2
    for _ in range(4):
        stage.submit()
    stage.controller.journal.every = 5
    stage.submit()
    assert len(beside.todo) == 4
    return stage, beside


def pieces(stage: Stage) -> int:
    counted = select(func.count().label("n")).select_from(schema.snapshot_pieces)
    return int(stage.controller.journal.store.rows(counted)[0]["n"])


def test_it_says_what_was_when_it_was_begun_though_things_go_on(tmp_path: Path) -> None:
    stage, beside = slow_stage(tmp_path)
    journal, before = stage.controller.journal, stage.controller.scheduler.snapshot()
    begun = journal.sequence
    while beside.todo:
        beside.next()
        stage.submit()
    stage.until(30.0)
    assert journal.snapshots.numbers()[0] == begun < journal.sequence
    assert journal.snapshots.state(begun) == {
        **before,
        "wakes": journal.snapshots.state(begun)["wakes"],
    }


def test_half_a_snapshot_is_never_used_and_swept_away(tmp_path: Path) -> None:
    stage, beside = slow_stage(tmp_path)
    for _ in range(2):
        beside.next()
        stage.controller.turn()
    assert pieces(stage) == 2
    before = stage.controller.scheduler.snapshot()
    stage.restart()
    assert stage.controller.scheduler.snapshot() == before
    assert stage.controller.journal.snapshots.last == 0
    stage.controller.turn()
    assert pieces(stage) == 0
    stage.until(60.0)
    assert [stage.state(number) for number in range(1, 6)] == ["done"] * 5
    stage.site.close()


def test_an_orderly_end_does_not_wait_for_one_that_is_under_way(tmp_path: Path) -> None:
    stage, beside = slow_stage(tmp_path)
    beside.next()
    stage.controller.turn()
    journal = stage.controller.journal
    journal.snapshot(stage.controller.scheduler)
    journal.close()
    assert journal.snapshots.numbers() == [journal.sequence]
    before = stage.controller.scheduler.snapshot()
    stage.restart()
    assert stage.controller.scheduler.snapshot() == before
    stage.site.close()


def test_no_new_one_begins_before_the_last_is_whole(tmp_path: Path) -> None:
    stage, beside = slow_stage(tmp_path)
    for _ in range(6):
        stage.submit()
    assert len(beside.todo) == 4
    while beside.todo and stage.controller.journal.snapshots.busy:
        beside.next()
        stage.controller.turn()
    assert stage.controller.journal.snapshots.last == 5
    stage.site.close()


def test_a_snapshot_of_version_2_is_still_read(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for _ in range(3):
        stage.submit()
    journal, before = stage.controller.journal, stage.controller.scheduler.snapshot()
    row = {"sequence": journal.sequence, "state": compact(before)}
    with journal.store.transaction():
        journal.store.add(schema.snapshots, [row])
    stage.restart()
    assert stage.controller.journal.snapshots.last == row["sequence"]
    assert stage.controller.scheduler.snapshot() == before
    stage.site.close()


def test_a_turn_waits_a_small_part_of_what_a_snapshot_takes(tmp_path: Path) -> None:
    site = Site(tmp_path, "1x4", Parts("fifo"), oracle=False)
    site.store = Store(site.url, durable=False)
    journal = Journal(site.store)
    controller = Controller(site.make, journal, FakeExecutor(site.machine), clock=site.clock)
    many = tuple(Submission(("train",), gang(4), estimate=60.0) for _ in range(10_000))
    for _ in range(2):
        controller.post(Submit(many))
        controller.turn()

    def took(work: Callable[[], object]) -> float:
        begun = time.perf_counter()
        work()
        return time.perf_counter() - begun

    def turn() -> float:
        time.sleep(0.005)
        controller.post(Submit(many[:1]))
        return took(controller.turn)

    def longest() -> float:
        journal.every = 1
        turns = [turn()]
        journal.every = 1_000_000
        assert journal.snapshots.busy
        while journal.snapshots.busy:
            turns.append(turn())
        assert len(turns) > 20, "it is written in pieces"
        return max(turns)

    turn()
    # Others may have the cores during one try.
    whole = (took(lambda: journal.snapshot(controller.scheduler)) for _ in range(5))
    assert any(longest() < each / 4 for each in whole)
    journal.close()
    site.close()
