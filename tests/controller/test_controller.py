"""What people and engines can do to a controller, and what they are told."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from sqlalchemy import select
from staging import Stage
from virtual import Site

from dovetail.controller import schema
from dovetail.controller.circumstances import doubling
from dovetail.controller.commands import Cancel, Command, Drain, Hold, Release, Submit, Undrain
from dovetail.controller.finding import Filter
from dovetail.controller.loop import Controller
from dovetail.controller.parts import Parts, composer
from dovetail.controller.reading import (
    attempts,
    describe,
    history,
    listed,
    machines,
    places,
    submission_of,
)
from dovetail.controller.replaying import first_difference
from dovetail.controller.submission import Submission
from dovetail.executors.fake import FakeExecutor
from dovetail.executors.protocol import Advanced, Attempt, Launch, Saved
from dovetail.model.allocation import Part, allocation_of
from dovetail.model.errors import UserError
from dovetail.model.job import JobSpec
from dovetail.model.live import Progress
from dovetail.model.node import Node
from dovetail.model.request import gang
from dovetail.model.trace import TraceJob

# ---- the life of a job -------------------------------------------------------------------------


def test_replicas_on_one_node_are_one_place() -> None:
    pieces = (Part(0, 0b1, 250, 10), Part(0, 0b100, 250, 10), Part(1, 0b1, 500, 20))
    found = places(allocation_of(pieces), [Node("a", 4), Node("b", 4)])
    assert [str(place) for place in found] == [
        "a: GPU 0,2, 0.5 cores, 0.0195 GiB",
        "b: GPU 0, 0.5 cores, 0.0195 GiB",
    ]


def test_a_job_runs_and_people_can_read_when(stage: Stage) -> None:
    number = stage.submit(2, owner="ann")
    assert stage.state(number) == "starting"
    stage.until(1.0)
    told = describe(stage.controller, number)
    assert (told.state, told.places[0].node, told.places[0].devices) == ("running", "n0", (0, 1))
    stage.until(12.0)
    told = describe(stage.controller, number)
    assert (told.state, told.code, told.attempts) == ("done", 0, 1)
    assert told.ended is not None and told.started is not None
    assert told.ended - told.started == 11.0
    assert history(stage.controller, where=Filter(owner="ann")) == [told]
    assert history(stage.controller, where=Filter(owner="bob")) == []


def test_a_job_that_waits_says_for_whom(stage: Stage) -> None:
    first, second = stage.submit(), stage.submit()
    assert describe(stage.controller, second).blockers == (first,)
    assert [each.id for each in listed(stage.controller, reasons=True)] == [first, second]


def test_a_job_too_large_is_rejected_in_words(stage: Stage) -> None:
    number = stage.submit(99)
    assert (stage.state(number), bool(stage.why(number))) == ("rejected", True)


def test_many_jobs_in_one_command_are_one_batch(stage: Stage) -> None:
    ids = stage.ask(Submit((Submission(("x",), gang(4), held=True),) * 2000)).jobs
    assert ids == tuple(range(1, 2001))
    assert stage.controller.journal.sequence == 0
    stage.submit()
    assert stage.controller.journal.sequence == 1


# ---- cancelling and holding --------------------------------------------------------------------


def test_a_cancelled_job_is_stopped_before_the_next_one_starts(stage: Stage) -> None:
    first, second = stage.submit(), stage.submit()
    stage.until(5.0)
    stage.ask(Cancel((first,)))
    assert (stage.state(first), stage.state(second)) == ("stopping", "starting")
    assert Attempt(second, 1) not in stage.site.machine.known
    stage.until(8.0)
    assert stage.state(first) == "cancelled"
    assert stage.site.machine.known[Attempt(second, 1)].begun == 7.0


def test_a_waiting_job_can_be_cancelled(stage: Stage) -> None:
    stage.submit()
    second = stage.submit()
    stage.ask(Cancel((second,)))
    assert stage.state(second) == "cancelled"


def test_a_held_job_lets_others_pass(stage: Stage) -> None:
    stage.submit()
    second, third = stage.submit(), stage.submit()
    stage.ask(Hold((second,)))
    stage.restart()
    assert (stage.state(second), stage.why(second)) == ("held", "its owner holds it")
    stage.until(14.0)
    assert stage.state(third) == "running"
    stage.ask(Release((second,)))
    stage.until(25.0)
    assert stage.state(second) == "running"


def test_a_job_can_be_submitted_held(stage: Stage) -> None:
    number, other = stage.submit(held=True), stage.submit(held=True)
    assert stage.state(number) == "held"
    stage.restart()
    stage.ask(Cancel((other,)))
    stage.ask(Release((number,)))
    assert (stage.state(number), stage.state(other)) == ("starting", "cancelled")


def test_a_running_job_cannot_be_held(stage: Stage) -> None:
    number = stage.submit()
    with pytest.raises(UserError, match="only a waiting job can be held"):
        stage.ask(Hold((number,)))


@pytest.mark.parametrize("command", [Cancel((7,)), Hold((7,)), Release((7,)), Drain("n7")])
def test_what_is_not_there_is_refused_in_one_sentence(stage: Stage, command: Command) -> None:
    before = stage.controller.journal.sequence
    with pytest.raises(UserError, match="7"):
        stage.ask(command)
    assert stage.controller.journal.sequence == before


def test_a_drained_node_takes_nothing_new(stage: Stage) -> None:
    stage.ask(Drain("n0"))
    number = stage.submit()
    assert stage.state(number) == "waiting"
    assert machines(stage.controller)[0].state == "draining"
    stage.ask(Undrain("n0"))
    assert stage.state(number) == "starting"


# ---- failures ----------------------------------------------------------------------------------


def test_a_job_that_fails_rests_and_is_tried_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path, backoff=doubling(8.0))
    number = stage.submit(retries=1, breaks=(5.0,))
    stage.until(7.0)
    assert stage.state(number) == "waiting"
    assert "tried again after a rest of 8 s" in stage.why(number)
    stage.restart()
    stage.until(13.5)
    assert stage.state(number) == "waiting"
    stage.until(14.5)
    assert stage.state(number) == "starting"
    stage.until(30.0)
    told = describe(stage.controller, number)
    assert (told.state, told.attempts, told.failures) == ("done", 2, 1)
    assert attempts(stage.controller, number)[0]["outcome"] == "it broke, as it was told to"
    stage.site.close()


def test_a_job_without_retries_fails_with_its_reason(stage: Stage) -> None:
    number = stage.submit(breaks=(5.0,))
    stage.until(10.0)
    assert (stage.state(number), stage.why(number)) == ("failed", "it broke, as it was told to")


class Stubborn(FakeExecutor):
    """An engine whose calls fail a few times."""

    trouble = 0

    def start(self, launch: Launch) -> None:
        self._refuse()
        super().start(launch)

    def stop(self, attempt: Attempt, grace: float) -> None:
        self._refuse()
        super().stop(attempt, grace)

    def _refuse(self) -> None:
        if self.trouble:
            self.trouble -= 1
            raise OSError("no such device")


def test_an_engine_that_cannot_start_a_job_fails_it_with_a_reason(stage: Stage) -> None:
    engine = Stubborn(stage.site.machine)
    stage.restart(executor=engine)
    engine.trouble = 1
    number = stage.submit()
    stage.until(1.0)
    assert stage.state(number) == "failed"
    assert stage.why(number) == "could not be started: no such device"


def test_a_stop_that_fails_is_tried_again(stage: Stage) -> None:
    engine = Stubborn(stage.site.machine)
    stage.restart(executor=engine)
    number = stage.submit(length=100.0)
    stage.until(3.0)
    engine.trouble = 2
    stage.ask(Cancel((number,)))
    stage.until(5.0)
    assert stage.state(number) == "stopping"
    stage.until(9.0)
    assert stage.state(number) == "cancelled"


def test_an_attempt_lost_while_the_controller_was_away_is_a_failure(stage: Stage) -> None:
    number = stage.submit()
    stage.until(3.0)
    stage.site.machine.known.clear()
    stage.site.machine._future.clear()
    stage.restart()
    assert stage.why(number) == "it was lost while the controller was away"


def test_only_jobs_that_can_resume_make_room(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "srtf")
    first = stage.submit(length=100.0)
    stage.until(5.0)
    stage.submit(length=5.0)
    assert stage.state(first) == "running"
    stage.until(120.0)
    third = stage.submit(length=100.0, resumable=True)
    stage.until(125.0)
    stage.submit(length=5.0)
    assert stage.state(third) == "stopping"
    stage.site.close()


def test_progress_is_believed(stage: Stage) -> None:
    number = stage.submit(length=10.0)
    stage.until(1.0)
    stage.controller.performer.news.append(Advanced(Attempt(number, 1), 25.0, 100.0, 5.0))
    stage.controller.turn()
    job = stage.controller.scheduler.jobs[number]
    assert job.time_left(stage.controller.scheduler.now) == pytest.approx(15.0)
    assert describe(stage.controller, number).progress == Progress(25.0, 100.0, 5.0)


def test_a_job_without_an_estimate_is_believed_to_take_as_long_as_its_steps_say(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path, "srtf")
    long, short = (stage.submit(2, 1e5, estimate=None, resumable=True) for _ in range(2))
    stage.until(1.0)
    for number, rate in ((long, 0.1), (short, 10.0)):
        stage.controller.performer.news.append(Advanced(Attempt(number, 1), 10.0, 1000.0, rate))
    stage.controller.turn()
    scheduler = stage.controller.scheduler
    left = [scheduler.jobs[number].time_left(scheduler.now) for number in (long, short)]
    assert left == pytest.approx([9900.0, 99.0])
    # One that takes 1000 s makes room by the longer of them, although it came first.
    stage.submit(2, 1000.0)
    assert (stage.state(long), stage.state(short)) == ("stopping", "running")
    stage.site.close()


def test_what_steps_say_is_remembered_by_a_job_that_waits_again(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "priority:preempt=true")
    number = stage.submit(4, 1e5, estimate=7200.0, resumable=True)
    stage.until(11.0)
    stage.controller.performer.news.append(Advanced(Attempt(number, 1), 100.0, 400.0, 10.0))
    stage.controller.turn()
    stage.submit(4, 5.0, priority=1.0)
    stage.until(14.0)
    scheduler = stage.controller.scheduler
    assert stage.state(number) == "waiting"
    # 30 s were left, of which two have passed on the way out.
    assert 27.0 <= scheduler.jobs[number].time_left(scheduler.now) <= 30.0
    stage.site.close()


def test_steps_do_not_change_what_is_learned_of_a_jobs_length(tmp_path: Path) -> None:
    """A job that was believed to take an hour tells its steps, and is over after 20 s."""
    stage = Stage(tmp_path)
    for _ in range(5):
        number = stage.submit(4, 20.0, estimate=None, group="alike")
        begun = stage.site.clock.now
        stage.until(begun + 11.0)
        stage.controller.performer.news.append(Advanced(Attempt(number, 1), 50.0, 100.0, 5.0))
        stage.until(begun + 25.0)
        assert stage.state(number) == "done"
    alike = JobSpec(99, "next", stage.site.clock.now, gang(4), group="alike")
    assert stage.controller.scheduler.predictor.expect(alike) == pytest.approx(20.0, abs=2.0)
    stage.site.close()


def test_a_checkpoint_is_noted_now_and_then(stage: Stage) -> None:
    number = stage.submit(length=60.0)
    stage.until(5.0)
    for moment in (5.5, 6.0, 20.0):
        stage.until(moment)
        stage.controller.performer.news.append(Saved(Attempt(number, 1)))
        stage.controller.turn()
    stage.restart()
    first = stage.site.clock.wall() - stage.site.clock.now
    assert describe(stage.controller, number).saved == first + 20.0
    assert stage.controller.scheduler.jobs[number].unsaved(25.0) == 5.0


def test_news_of_earlier_attempts_mean_nothing(stage: Stage) -> None:
    number = stage.submit()
    stage.until(2.0)
    stage.controller.performer.news.append(Advanced(Attempt(number, 9), 1.0, 2.0, 1.0))
    stage.controller.turn()
    assert describe(stage.controller, number).progress is None


# ---- what is kept ------------------------------------------------------------------------------


def test_secrets_reach_the_job_and_nobody_else(stage: Stage) -> None:
    number = stage.submit(environment={"A": "shown"}, secrets={"TOKEN": "hidden-value"})
    shown = submission_of(stage.controller, number)
    assert shown["hidden"] == ["TOKEN"]
    assert "hidden-value" not in str(shown)
    stage.restart()
    launch = stage.site.machine.known[Attempt(number, 1)].launch
    assert launch.environment == {"A": "shown", "TOKEN": "hidden-value"}
    store = stage.controller.journal.store
    kept = [*store.rows(select(schema.batches)), *store.rows(select(schema.attempts))]
    assert "hidden-value" not in str(kept)
    assert os.stat(stage.site.folder / "dovetail.db").st_mode & 0o077 == 0


def test_old_batches_are_forgotten_beyond_the_limit_and_replays_still_work(tmp_path: Path) -> None:
    site = Site(tmp_path, "1x4", Parts("srtf"), 0.0)
    controller = site.open()
    controller.journal.every, controller.journal.keep = 5, 20
    jobs = [TraceJob(JobSpec(n, f"j{n}", 3.0 * n, gang(2)), 4.0) for n in range(1, 31)]
    site.drive(controller, jobs)
    journal = controller.journal
    first = next(journal.recorded(0)).sequence
    assert 1 < first <= journal.sequence - 19
    assert len(journal.snapshots.numbers()) < 10
    assert first_difference(journal, site.make) is None
    site.close()
    controller = site.open()
    assert not controller.scheduler.jobs
    site.close()


def test_a_replay_with_another_policy_says_where_it_differs(stage: Stage) -> None:
    for length in (50.0, 40.0, 10.0):
        stage.submit(length=length)
    stage.until(60.0)
    journal = stage.controller.journal
    assert first_difference(journal, stage.site.make) is None
    other = composer(Parts("sjf", costs=stage.site.parts.costs), FakeExecutor(stage.site.machine))
    divergence = first_difference(journal, other)
    assert divergence is not None
    expected = "start of job 2 on node 0 (4 GPUs) was recorded, start of job 3 on node 0 (4 GPUs)"
    assert expected in divergence.text


def test_a_snapshot_spares_old_batches(stage: Stage) -> None:
    for _ in range(3):
        stage.submit()
    stage.until(15.0)
    stage.controller.journal.snapshot(stage.controller.scheduler)
    before = stage.controller.scheduler.snapshot()
    stage.restart()
    assert stage.controller.scheduler.snapshot() == before


@pytest.mark.parametrize("policy", ["sjf", "srtf", "las:round=50", "fair-share", "fifo:skip=true"])
def test_another_policy_takes_over_at_a_restart(policy: str, tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for length in (50.0, 40.0, 10.0, 20.0):
        stage.submit(length=length, resumable=True)
    stage.ask(Hold((4,)))
    stage.until(5.0)
    stage.site.close()
    stage.site.parts = Parts(policy, costs=stage.site.parts.costs)
    del stage.site.make
    for _ in range(2):
        stage.restart()
        stage.controller.scheduler.validate()
    stage.until(12.0)
    assert stage.state(1) == ("waiting" if policy == "srtf" else "running")
    stage.ask(Release((4,)))
    stage.until(500.0)
    assert [stage.state(number) for number in (1, 2, 3, 4)] == ["done"] * 4
    ends = {number: describe(stage.controller, number).ended or 0.0 for number in (1, 2, 3, 4)}
    if policy in ("sjf", "srtf"):
        assert ends[3] < ends[4] < ends[2]
    assert first_difference(stage.controller.journal, stage.site.make) is None
    stage.site.close()


# ---- the loop ----------------------------------------------------------------------------------


def test_the_live_loop_answers_when_it_is_on_disk(tmp_path: Path) -> None:
    from dovetail.controller.timebase import MachineClock

    site = Site(tmp_path, "1x4", latency=0.0, oracle=False)
    site.clock = MachineClock()  # type: ignore[assignment]
    site.machine.clock = site.clock.monotonic
    controller = site.open()
    for number in range(1, 9):
        site.machine.tell(TraceJob(JobSpec(number, "j", 0.0, gang(1)), 0.01))

    async def live() -> list[int]:
        task = asyncio.create_task(controller.run())
        one = Submit((Submission(("x",), gang(1)),))
        ids = await asyncio.gather(*(controller.ask(one) for _ in range(8)))
        while controller.roster:
            await asyncio.sleep(0.01)
        controller.end()
        await task
        with pytest.raises(UserError, match="has ended"):
            await controller.ask(one)
        return [number for each in ids for number in each.jobs]

    assert sorted(asyncio.run(live())) == list(range(1, 9))
    assert controller.journal.snapshots.numbers() == [controller.journal.sequence]
    site.close()


# ---- other parts ------------------------------------------------------------------------------


def test_a_journal_of_another_cluster_is_refused(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.submit()
    stage.site.close()
    other = Site(tmp_path, "1x1", oracle=False)
    with pytest.raises(UserError, match="does not fit this cluster and policy"):
        other.open()
    other.close()


def test_controllers_are_made_of_named_parts(tmp_path: Path) -> None:
    engine = FakeExecutor(Site(tmp_path).machine)
    with pytest.raises(UserError, match="knows the future"):
        composer(Parts("sjf", predictor="oracle"), engine)
    with pytest.raises(UserError, match="needs nodes that state CPU and memory"):
        composer(Parts("synergy"), engine)()
    assert isinstance(Controller, type)
