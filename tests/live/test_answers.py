"""Why, when and what if, asked of a controller that runs."""

from __future__ import annotations

import pytest
from hosting import Hosted, until

from dovetail.cli.answer_texts import when_lines
from dovetail.live import Box
from dovetail.model.errors import UserError


def occupied(box: Box, **more: object) -> int:
    """All four GPUs are in use."""
    number = box.submit(["sleep", "600"], gpus=4, name="big", estimate=120, **more)
    until(lambda: box.show(number).job.state == "running")
    return number


def test_why_names_the_cause_who_is_in_front_and_what_would_help(box: Box) -> None:
    running = box.submit(["sleep", "600"], gpus=2, name="half")
    until(lambda: box.show(running).job.state == "running")
    number = box.submit(["true"], gpus=4)
    told = box.why(number)
    assert told.cause == "devices"
    assert [(each.job, each.share) for each in told.blame] == [(running, 1.0)]
    assert [(each.change, each.starts_in) for each in told.instead] == [("2 GPUs instead of 4", 0)]
    assert box.why(number, instead=False).instead == ()


def test_why_tells_where_cores_come_from(box: Box) -> None:
    asked = box.submit(["sleep", "600"], gpus=1, cpus=0.1)
    left = box.submit(["sleep", "600"], gpus=1)
    until(lambda: all(box.show(each).job.state == "running" for each in (asked, left)))
    assert "it asked for" in box.why(asked).grant
    assert "share by GPUs (1 of 4)" in box.why(left).grant


def test_why_of_a_job_that_is_over_or_held(box: Box) -> None:
    done = box.submit(["true"])
    box.wait(done)
    assert box.why(done).state == "done"
    held = box.submit(["true"], held=True)
    assert box.why(held).text == "its owner holds it"
    with pytest.raises(UserError, match="there is no job 999"):
        box.why(999)


def test_when_is_a_range_around_what_is_believed(box: Box) -> None:
    runs = occupied(box)
    number = box.submit(["true"], gpus=1, estimate=10)
    found = box.when(number)
    assert found.chance == 0.8
    low, middle, high = found.start.low, found.start.middle, found.start.high
    assert low is not None and middle is not None and high is not None
    assert low < middle < high
    assert found.end.middle is not None and found.end.middle > middle

    assert found.since is None
    running = box.when(runs)
    assert running.since == box.show(runs).job.started
    first = when_lines(str(runs), running, (running.since or 0) + 90)[0]
    assert first.startswith(f"job {runs} has been running for 1 min 30 s, since ")


def test_where_no_future_lets_a_job_start_one_sentence_says_so(box: Box) -> None:
    [node] = [each.name for each in box.nodes()]
    box.drain(node)
    number = box.submit(["true"], gpus=1)
    told = " ".join(when_lines(str(number), box.when(number), 0.0))
    assert told.startswith(f"When job {number} starts cannot be told: it starts in too few of ")
    assert told.endswith(f"; dovetail why {number} says why.")


def test_when_is_not_known_of_jobs_that_are_over_or_held(box: Box) -> None:
    done = box.submit(["true"])
    box.wait(done)
    held = box.submit(["true"], held=True)
    for number, said in ((done, f"dovetail show {done} says when"), (held, "not known")):
        with pytest.raises(UserError, match=said):
            box.when(number)


def test_of_several_jobs_those_are_told_that_can_be_foreseen(host: Hosted) -> None:
    with host.box() as box, host.client(host.token()) as line:
        done, runs = box.submit(["true"]), box.submit(["sleep", "600"], gpus=1)
        box.wait(done)
        found = line.get("/when", params={"jobs": f"{done},{runs}"})
        assert (found.status_code, list(found.json())) == (200, [str(runs)])
        assert line.get("/when", params={"jobs": "x"}).status_code == 422


def test_a_time_limit_ends_what_might_run_for_days(box: Box) -> None:
    box.submit(["sleep", "600"], gpus=4, time_limit=120)
    number = box.submit(["true"], gpus=1, time_limit=60)
    end = box.when(number).end
    # The range may be stretched, the middle is what possible futures have.
    assert end.middle is not None and end.middle <= 185


def test_what_if_replays_what_was_seen(box: Box) -> None:
    for number in [box.submit(["sleep", "0.2"], gpus=4, name=f"j{each}") for each in range(4)]:
        box.wait(number)
    answer = box.what_if(policy="srtf", gpus=8)
    assert (answer.before.jobs, answer.after.jobs) == (4, 4)
    assert (answer.before.gpus, answer.after.gpus) == (4, 8)
    assert answer.after.mean_wait <= answer.before.mean_wait
    assert answer.users[0].jobs == 4
    assert len(answer.before.waits) == 101


def test_wrong_questions_are_refused(box: Box) -> None:
    # Before there is anything to replay and after: what is wrong with the question comes first.
    for history in (False, True):
        with pytest.raises(UserError, match="unknown policy 'srtff'"):
            box.what_if(policy="srtff")
        with pytest.raises(UserError, match="sjf has no parameter 'skp'"):
            box.what_if(policy="sjf:skp=true")
        with pytest.raises(UserError, match="robots asks for 2 nodes of virtual; there is 1"):
            box.what_if(tenants={"text": '[[tenants]]\nname = "robots"\ngpus = [4, 4]'})
        if not history:
            with pytest.raises(UserError, match="no job on record"):
                box.what_if(policy="srtf")
            box.wait(box.submit(["true"], gpus=1))
    with pytest.raises(UserError, match="gpus"):
        box.what_if(gpus=0)
