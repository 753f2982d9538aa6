"""The table of a job's moves: every pair of states is legal or raises, and the table says which."""

from __future__ import annotations

import pytest
from workbench import spec

from dovetail.core.lifecycle import (
    FINAL,
    PASSING,
    RECOVERY_POINTS,
    TRANSITIONS,
    IllegalMove,
    move,
)
from dovetail.model.job import Job, Status

LEGAL = """
waiting   -> starting running cancelled rejected failed
starting  -> running waiting stopping done failed cancelled
running   -> stopping waiting suspended done failed cancelled
stopping  -> waiting suspended done failed cancelled
suspended -> starting running stopping waiting cancelled failed
done      ->
failed    ->
cancelled ->
rejected  ->
"""
TABLE = {
    Status(begin.strip()): {Status(name) for name in ends.split()}
    for begin, ends in (line.split("->") for line in LEGAL.strip().splitlines())
}


@pytest.mark.parametrize("end", Status)
@pytest.mark.parametrize("begin", Status)
def test_every_move_is_legal_or_refused(begin: Status, end: Status) -> None:
    job = Job(spec(0), 1.0)
    job.status = begin
    if end in TABLE[begin]:
        move(job, end)
        assert job.status is end
    else:
        with pytest.raises(IllegalMove, match=f"j0 {begin}.* cannot become {end}"):
            move(job, end)
        assert job.status is begin


def test_the_table_knows_every_state() -> None:
    assert set(TRANSITIONS) == set(Status)
    assert set(Status) == RECOVERY_POINTS | PASSING
    assert not RECOVERY_POINTS & PASSING


def test_what_ended_stays_ended_and_everything_else_can_end() -> None:
    assert {state for state in Status if not TRANSITIONS[state]} == FINAL
    for state in set(Status) - FINAL:
        assert Status.CANCELLED in TRANSITIONS[state]
        assert Status.WAITING in TRANSITIONS[state] or state is Status.WAITING


def test_only_a_waiting_job_can_be_rejected() -> None:
    assert [s for s in Status if Status.REJECTED in TRANSITIONS[s]] == [Status.WAITING]
