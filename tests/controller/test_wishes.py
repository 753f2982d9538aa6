"""Arrays, jobs that run after others, time limits, requeueing, and restarts of the machine."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from staging import Stage
from virtual import Site

from dovetail.controller.commands import Accepted, Cancel, Hold, Release, Requeue, Submit
from dovetail.controller.finding import Filter, resolve
from dovetail.controller.reading import attempts, describe, history, listed
from dovetail.controller.store import Store
from dovetail.controller.submission import Submission
from dovetail.executors.protocol import Attempt
from dovetail.model.errors import UserError
from dovetail.model.request import gang

# ---- arrays ------------------------------------------------------------------------------------


def array(stage: Stage, size: int, gpus: int = 1, **more: Any) -> Accepted:
    first = stage.controller.roster.next_id
    for number in range(first, first + size + 1):
        stage.know(number, gpus, 10.0)
    wanted = Submission(("train",), gang(gpus), "sweep", **more)
    accepted: Accepted = stage.ask(Submit((wanted,) * size, array=True))
    return accepted


def test_an_array_has_a_number_of_its_own_and_members_know_their_place(stage: Stage) -> None:
    stage.submit()
    accepted = array(stage, 3, environment={"A": "b"}, owner="ann")
    assert accepted == Accepted((3, 4, 5), 2)
    stage.restart()
    stage.until(12.0)
    environment = stage.site.machine.known[Attempt(4, 1)].launch.environment
    assert environment == {
        "A": "b",
        "DOVETAIL_ARRAY_ID": "2",
        "DOVETAIL_ARRAY_INDEX": "1",
        "DOVETAIL_ARRAY_SIZE": "3",
    }
    told = describe(stage.controller, 5)
    assert (told.array, told.index, told.name, told.gpus) == (2, 2, "sweep", 1)
    assert [describe(stage.controller, job).state for job in resolve(stage.controller, "2")] == [
        "running"
    ] * 3


def test_people_mean_jobs_by_number_by_place_or_by_array(stage: Stage) -> None:
    array(stage, 3)
    stage.ask(Cancel((2,)))
    stage.until(5.0)
    assert resolve(stage.controller, "3") == [3]
    assert resolve(stage.controller, "2") == [2]
    assert resolve(stage.controller, "1") == [2, 3, 4]
    assert resolve(stage.controller, "1", alive=True) == [3, 4]
    assert resolve(stage.controller, " 1.0 ") == [2]
    for wrong in ("9", "1.7", "x", "1.", ".1", "-1", "1.2.3", "²", "9" * 40):
        with pytest.raises(UserError, match="no job"):
            resolve(stage.controller, wrong)


def test_the_number_after_an_array_is_never_given_twice(stage: Stage) -> None:
    array(stage, 2)
    stage.restart()
    assert stage.submit() == 4


def test_an_empty_submission_is_refused(stage: Stage) -> None:
    with pytest.raises(UserError, match="nothing to submit"):
        stage.ask(Submit((), array=True))


# ---- lists -------------------------------------------------------------------------------------


def test_lists_are_filtered_and_paged(stage: Stage) -> None:
    array(stage, 3, owner="ann")
    stage.until(15.0)
    stage.submit(1, owner="bob")
    stage.submit(4, owner="ann")
    controller = stage.controller
    pages, before = [], None
    while page := history(controller, 2, before=before):
        pages.append([each.id for each in page])
        before = (page[-1].ended or 0.0, page[-1].id)
    assert pages == [[4, 3], [2]]
    assert history(controller, where=Filter(name="wee", owner="ann", array=1))[0].id == 4
    assert history(controller, where=Filter(name="w_e")) == []
    assert history(controller, where=Filter(state="failed")) == []
    assert history(controller, where=Filter(since=stage.site.clock.wall())) == []
    assert [each.id for each in listed(controller, where=Filter(owner="ann"))] == [6]
    assert [each.id for each in listed(controller, where=Filter(state="starting"))] == [5]
    assert [each.id for each in listed(controller, after=5, limit=1)] == [6]
    assert listed(controller, where=Filter(array=1)) == []


def test_a_description_says_what_was_asked_for(stage: Stage) -> None:
    wanted = Submission(
        ("a", "b"), gang(2, 3000, 64), tenant="t", deadline=60.0, time_limit=9.0, held=True
    )
    number = stage.ask(Submit((wanted,))).jobs[0]
    told = describe(stage.controller, number)
    assert (told.command, told.tenant, told.gpus, told.cpu) == (("a", "b"), "t", 2, 3000)
    assert (told.memory, told.time_limit, told.deadline) == (64, 9.0, told.submitted + 60.0)
    stage.ask(Cancel((number,)))
    over = describe(stage.controller, number)
    assert (over.command, over.cpu, over.deadline) == (told.command, told.cpu, told.deadline)


# ---- after -------------------------------------------------------------------------------------


def test_a_job_waits_until_others_are_done(stage: Stage) -> None:
    first, second = stage.submit(2, 10.0), stage.submit(2, 20.0)
    third = stage.submit(1, after=(first, second))
    told = describe(stage.controller, third)
    assert (told.state, told.reason) == ("waiting", "it waits for jobs 1, 2 to be done")
    assert (told.blockers, told.after) == ((1, 2), (1, 2))
    stage.until(15.0)
    assert stage.why(third) == "it waits for job 2 to be done"
    stage.restart()
    assert stage.why(third) == "it waits for job 2 to be done"
    stage.until(22.0)
    assert stage.state(third) == "starting"


def test_a_job_gives_up_when_another_cannot_succeed(stage: Stage) -> None:
    first = stage.submit(2, breaks=(5.0,))
    second = stage.submit(1, after=(first,))
    third = stage.submit(1, after=(second,))
    stage.until(7.0)
    assert stage.why(second) == "job 1, which it was to run after, is failed"
    assert stage.why(third) == "job 2, which it was to run after, is cancelled"
    assert (stage.state(second), stage.state(third)) == ("cancelled", "cancelled")


def test_a_job_can_run_after_others_however_they_end(stage: Stage) -> None:
    first = stage.submit(2, breaks=(5.0,))
    second = stage.submit(1, after=(first,), after_any=True)
    assert stage.why(second) == "it waits for job 1 to end"
    stage.until(7.0)
    assert stage.state(second) == "starting"


def test_a_job_can_run_after_one_that_has_ended(stage: Stage) -> None:
    first, failing = stage.submit(1, 2.0), stage.submit(1, breaks=(1.0,))
    stage.until(5.0)
    second, third = stage.submit(1, after=(first,)), stage.submit(1, after=(failing,))
    stage.controller.turn()
    assert (stage.state(second), stage.state(third)) == ("starting", "cancelled")


def test_a_job_after_one_that_ended_as_the_controller_died_is_not_forgotten(stage: Stage) -> None:
    first = stage.submit(1, 2.0)
    second = stage.submit(1, after=(first,))
    while stage.state(first) != "done":
        stage.site.clock.now += 0.5
        stage.controller.turn()
    assert stage.state(second) == "waiting"
    stage.restart()
    assert stage.state(second) == "starting"


def test_a_job_cannot_run_after_one_that_never_was(stage: Stage) -> None:
    before = stage.controller.roster.next_id
    with pytest.raises(UserError, match="there is no job 7 to run after"):
        stage.ask(Submit((Submission(("x",), gang(1), after=(7,)),)))
    assert stage.controller.roster.next_id == before


def test_holding_and_waiting_for_others_do_not_undo_each_other(stage: Stage) -> None:
    first = stage.submit(1, 5.0)
    second = stage.submit(1, after=(first,))
    stage.ask(Hold((second,)))
    assert stage.state(second) == "held"
    stage.ask(Release((second,)))
    assert (stage.state(second), stage.why(second)) == ("waiting", "it waits for job 1 to be done")
    stage.ask(Hold((second,)))
    stage.restart()
    stage.until(10.0)
    assert stage.state(second) == "held"
    stage.ask(Release((second,)))
    assert stage.state(second) == "starting"


def test_a_job_that_waits_for_others_can_be_cancelled(stage: Stage) -> None:
    first = stage.submit(1, 5.0)
    second = stage.submit(1, after=(first,))
    stage.ask(Cancel((second,)))
    stage.until(10.0)
    assert (stage.state(first), stage.state(second)) == ("done", "cancelled")


def test_what_can_never_fit_is_refused_even_if_it_is_not_to_start_yet(stage: Stage) -> None:
    first = stage.submit(1)
    held, later = stage.submit(99, held=True), stage.submit(99, after=(first,))
    assert (stage.state(held), stage.state(later)) == ("rejected", "rejected")
    assert stage.why(held) == stage.why(later) != ""
    # The trial leaves nothing behind.
    assert stage.state(stage.submit(4, held=True)) == "held"
    assert stage.state(stage.submit(4, held=True, priority=2.0)) == "held"


def test_a_deadline_counts_from_submission_even_for_a_held_job(stage: Stage) -> None:
    number = stage.submit(1, held=True, deadline=100.0)
    stage.until(20.0)
    stage.ask(Release((number,)))
    assert stage.controller.scheduler.jobs[number].spec.deadline == 100.0


# ---- time limits -------------------------------------------------------------------------------


def test_a_job_that_runs_too_long_is_stopped_and_has_failed(stage: Stage) -> None:
    number = stage.submit(length=100.0, time_limit=20.0, retries=3)
    stage.until(20.5)
    assert stage.state(number) == "running"
    stage.restart()
    stage.until(21.0)
    assert describe(stage.controller, number).reason == (
        "it is running: its time limit of 20 s is over"
    )
    stage.restart()
    stage.until(23.5)
    told = describe(stage.controller, number)
    assert (told.state, told.reason) == ("failed", "its time limit of 20 s is over")
    assert (told.attempts, told.failures) == (1, 0)
    stage.controller.scheduler.validate()


def test_a_time_limit_counts_all_attempts_together(stage: Stage) -> None:
    number = stage.submit(length=100.0, time_limit=20.0, retries=1, breaks=(15.0,))
    # It breaks after 15 s; the second attempt has 5 s left.
    stage.until(17.5)
    assert describe(stage.controller, number).attempts == 2
    stage.until(27.0)
    assert stage.why(number) == "its time limit of 20 s is over"


def test_a_job_that_ends_in_time_is_done(stage: Stage) -> None:
    number = stage.submit(length=10.0, time_limit=11.0)
    stage.until(30.0)
    assert stage.state(number) == "done"


def test_time_limits_hold_where_nobody_confirms_stops(tmp_path: Path) -> None:
    stage = Stage(tmp_path, latency=None)
    number = stage.submit(length=100.0, time_limit=20.0)
    stage.until(25.0)
    assert (stage.state(number), stage.why(number)) == ("failed", "its time limit of 20 s is over")
    assert stage.site.machine.known[Attempt(number, 1)].over == 20.0
    stage.site.close()


# ---- requeueing --------------------------------------------------------------------------------


def test_a_running_job_is_requeued_under_its_number(stage: Stage) -> None:
    number = stage.submit(length=30.0, retries=0)
    stage.until(5.0)
    assert stage.ask(Requeue((number,))) == (number,)
    stage.restart()
    stage.until(60.0)
    told = describe(stage.controller, number)
    assert (told.state, told.attempts, told.failures, told.reason) == ("done", 2, 0, "")
    stage.controller.scheduler.validate()


def test_a_job_that_ended_is_requeued_as_a_new_one(stage: Stage) -> None:
    number = stage.submit(length=5.0, secrets={"TOKEN": "hidden-value"}, owner="ann")
    stage.until(10.0)
    stage.know(number + 1, 4, 5.0)
    assert stage.ask(Requeue((number,))) == (number + 1,)
    launch = stage.site.machine.known[Attempt(number + 1, 1)].launch
    assert launch.environment == {"TOKEN": "hidden-value"}
    assert stage.state(number) == "done"


def test_a_member_of_an_array_keeps_its_place_when_it_is_requeued(stage: Stage) -> None:
    array(stage, 2)
    stage.until(15.0)
    stage.know(4, 1, 5.0)
    assert stage.ask(Requeue((3,))) == (4,)
    assert resolve(stage.controller, "1.1") == [4]
    assert describe(stage.controller, 4).array == 1


def test_a_job_that_waits_cannot_be_requeued(stage: Stage) -> None:
    stage.submit()
    second = stage.submit()
    for number, words in ((second, "it is waiting already"), (9, "there is no job 9")):
        with pytest.raises(UserError, match=words):
            stage.ask(Requeue((number,)))


# ---- restarts of the machine -------------------------------------------------------------------


def reboot(stage: Stage) -> None:
    stage.site.machine.known.clear()
    stage.site.machine._future.clear()
    stage.site.clock.booted = "second"
    stage.restart()


def test_after_a_reboot_a_job_waits_again_without_having_failed(stage: Stage) -> None:
    number = stage.submit(retries=0)
    stage.until(3.0)
    reboot(stage)
    told = describe(stage.controller, number)
    assert (told.state, told.failures, told.attempts) == ("starting", 0, 2)
    assert attempts(stage.controller, number)[0]["outcome"] != ""
    stage.until(30.0)
    assert stage.state(number) == "done"


def test_after_a_reboot_a_job_has_failed_if_its_owner_wants_that(stage: Stage) -> None:
    number = stage.submit(retries=5, on_reboot="fail")
    stage.until(3.0)
    reboot(stage)
    assert stage.state(number) == "failed"
    assert stage.why(number) == "the machine was restarted while it ran"


# ---- an older data base ------------------------------------------------------------------------


def test_a_data_base_of_the_first_schema_is_taken_over(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "dovetail.db") as connection:
        connection.executescript((Path(__file__).parent / "schema_1.sql").read_text())
    connection.close()
    stage = Stage.__new__(Stage)
    stage.site = Site(tmp_path, "1x4", Stage.parts("fifo"), 1.0, oracle=False)
    stage.site.clock.now = 12.0
    stage.controller = stage.site.open()
    assert stage.controller.journal.store.noted("schema") == "5"
    assert [stage.state(number) for number in (1, 2, 3)] == ["done", "running", "held"]
    stage.controller.turn()
    assert stage.why(2) == "it was lost while the controller was away"
    accepted = stage.ask(Submit((Submission(("x",), gang(1), held=True),) * 2, array=True))
    assert accepted == Accepted((5, 6), 4)
    assert [each.id for each in history(stage.controller, where=Filter(owner="ann"))] == [2, 1]
    stage.site.close()
    Store(stage.site.url).close()
