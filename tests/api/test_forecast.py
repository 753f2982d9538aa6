"""Dry runs: where and when a job would run, without a trace of it afterwards."""

from __future__ import annotations

import pytest
from hosting import Hosted, until

from dovetail.live import Box
from dovetail.model.errors import UserError


def running(box: Box, **fields: object) -> int:
    number = box.submit(["sleep", "600"], **fields)
    until(lambda: box.show(number).job.state == "running")
    return number


def test_it_would_start_now(box: Box) -> None:
    said = box.forecast(["true"], gpus=2, array="3")
    assert (said.possible, said.starts_in, said.jobs, said.believed) == (True, 0.0, 3, False)
    [place] = said.places
    assert place.devices == (0, 1)


def test_it_would_wait_for_the_first_that_is_believed_to_end(box: Box) -> None:
    running(box, gpus=3, estimate=3600)
    running(box, gpus=1, estimate=600)
    said = box.forecast(["true"], gpus=1)
    assert said.believed
    assert said.reason
    assert said.starts_in == pytest.approx(600, abs=20)
    assert said.places[0].devices == (3,)
    assert box.forecast(["true"], gpus=4).starts_in == pytest.approx(3600, abs=20)


def test_those_in_front_come_first(box: Box) -> None:
    running(box, gpus=4, estimate=600)
    box.submit(["true"], gpus=4, estimate=1000)
    box.submit(["true"], gpus=4, estimate=2000)
    assert box.forecast(["true"], gpus=4).starts_in == pytest.approx(3600, abs=20)


def test_lengths_nobody_told_are_not_made_up(box: Box) -> None:
    running(box, gpus=4)
    said = box.forecast(["true"], gpus=1)
    assert (said.possible, said.starts_in, said.places) == (True, None, ())
    assert said.reason


def test_a_time_limit_is_as_good_as_an_estimate(box: Box) -> None:
    running(box, gpus=4, time_limit=900)
    assert box.forecast(["true"], gpus=1).starts_in == pytest.approx(900, abs=20)


def test_a_job_that_has_run_too_long_already_is_believed_to_run_on(box: Box) -> None:
    running(box, gpus=4, estimate=0.1)
    until(lambda: (box.forecast(["true"], gpus=1).starts_in or 0.0) > 0.5)


def test_what_is_held_or_runs_after_others_waits_for_that(box: Box) -> None:
    assert box.forecast(["true"], held=True).starts_in is None
    first = running(box, gpus=1, estimate=500)
    said = box.forecast(["true"], gpus=1, after=[first])
    assert said.starts_in == pytest.approx(500, abs=20)
    assert f"job {first}" in said.reason
    with pytest.raises(UserError, match="there is no job 99"):
        box.forecast(["true"], after=[99])


def test_what_can_never_run_is_told(box: Box) -> None:
    said = box.forecast(["true"], gpus=99)
    assert not said.possible
    assert "99" in said.reason


def test_nothing_is_changed(host: Hosted, box: Box) -> None:
    running(box, gpus=4, estimate=600)
    box.submit(["true"], gpus=1)

    def look(service: object) -> object:
        controller = service.controller  # type: ignore[attr-defined]
        return controller.scheduler.snapshot(), controller.journal.sequence, len(controller.roster)

    before = host.inside(look)
    for gpus in (0, 1, 4, 99):
        box.forecast(["true"], gpus=gpus)
    assert host.inside(look) == before
    assert box.submit(["true"]) == 3
