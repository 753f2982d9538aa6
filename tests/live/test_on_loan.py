"""Jobs that run on loan are told so: whose it is, and what becomes of them when it is wanted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hosting import OWNERS, Hosted, of_tenants, until

from dovetail.live import Box

ROBOTS = '[[tenants]]\nname = "robots"\ngpus = [4]\n'


@pytest.fixture(params=["cells", "shares"])
def shared(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Hosted]:
    with Hosted(tmp_path / "data", parts=of_tenants(request.param)) as made:
        yield made


def running(box: Box, **asked: Any) -> int:
    number = box.submit(["sleep", "600"], **asked)
    until(lambda: box.show(number).job.state == "running")
    return number


@pytest.mark.parametrize("shared", ["cells"], indirect=True)
def test_a_job_on_lent_cells_knows_whose_they_are_and_what_then(
    shared: Hosted, dovetail: Callable[..., Any]
) -> None:
    with shared.box() as box:
        number = running(box, gpus=3, borrow=True, resumable=True, name="fit", grace=40)
        told = box.why(number)
        assert (told.cause, told.text) == ("running", "its 3 GPUs are lent to it")
        assert told.loan == (
            "of its GPUs speech owns 2 and vision owns 1; if an owner wants these and no others "
            "will do, the job would be asked to save its work, have 40 s for that, and wait again "
            "with what it saved"
        )
        assert box.show(number).job.reason == "its 3 GPUs are lent to it"
        shown = dovetail("why", number, "--data-dir", shared.folder).out
        assert shown.startswith(f"job {number} (fit) is running: its 3 GPUs are lent to it.\n")
        assert "Of its GPUs speech owns 2" in shown
        assert all(len(line) <= 80 for line in shown.splitlines())
        plain = dovetail("why", number, "--json", "--data-dir", shared.folder).out
        assert json.loads(plain)["loan"] == told.loan
        listed = json.loads(dovetail("queue", "--json", "--data-dir", shared.folder).out)
        assert [job["reason"] for job in listed["jobs"]] == ["its 3 GPUs are lent to it"]


@pytest.mark.parametrize("shared", ["shares"], indirect=True)
def test_a_job_beyond_its_tenants_number_knows_who_lends(
    shared: Hosted, dovetail: Callable[..., Any]
) -> None:
    with shared.box() as box:
        first, more = (running(box, gpus=2, tenant="speech", resumable=True) for _ in range(2))
        assert (box.why(first).text, box.why(first).loan) == ("it is running", "")
        told = box.why(more)
        assert told.text == "its 2 GPUs are borrowed, beyond what speech owns"
        assert told.loan == (
            "GPUs are lent by vision (2); if an owner wants some back, the last to borrow go "
            "first; this job would be asked to save its work, have 30 s for that, and wait again "
            "with what it saved"
        )
        shown = dovetail("nodes", "--tenants", "--data-dir", shared.folder).out
        # A number has no place: no GPU of it is anybody's, nor is it nobody's.
        assert "(nobody)" not in shown and f"job {more}" in shown
        box.cancel(more)
        box.wait(more)
        fixed = box.submit(["true"], gpus=1, tenant="speech")
        assert box.why(fixed).unblock == "1 more GPU of its own"


def test_who_runs_on_as_if_lent_and_cannot_resume_is_told_that_it_would_lose_its_work(
    shared: Hosted,
) -> None:
    with shared.box() as box:
        kept = running(box, gpus=2, tenant="vision")
        assert box.why(kept).loan == ""
        box.apply_tenants(ROBOTS)
        told = box.why(kept)
        assert told.state == "running" and told.loan.endswith(
            "be asked to end, have 30 s for that, and lose its work"
        )
        assert "robots" in told.loan
        box.apply_tenants(OWNERS)
        assert box.why(kept).loan == ""


@pytest.mark.parametrize("shared", ["cells"], indirect=True)
def test_the_terminal_tells_all_that_is_known_of_tenants(
    shared: Hosted, dovetail: Callable[..., Any]
) -> None:
    with shared.box() as box, shared.remote("user", "bob") as bob:
        number = bob.submit(["sleep", "600"], gpus=3, borrow=True, resumable=True, name="a" * 40)
        until(lambda: box.show(number).job.state == "running")
        told = box.tenants()
    shown = dovetail("nodes", "--tenants", "--data-dir", shared.folder).out
    lines = [line.split() for line in shown.splitlines()]
    for each in told.tenants:
        amounts = (each.gpus, each.used, each.idle, each.lent, each.bad, each.borrowed)
        counts = (each.running, each.borrowing, each.waiting)
        assert [each.name, *(f"{amount:g}" for amount in (*amounts, *counts))] in lines
    assert ["vision", "group", "vision"] in lines and ["speech", "bob"] in lines
    for loan in told.loans:
        row = next(
            line for line in lines if line[:2] == ["job", str(number)] and loan.lender in line
        )
        assert row[3:5] == [loan.user, loan.borrower]
    assert all(len(line) <= 80 for line in shown.splitlines())


@pytest.mark.parametrize("shared", ["cells"], indirect=True)
def test_a_dry_run_says_who_must_leave_first(shared: Hosted, dovetail: Callable[..., Any]) -> None:
    with shared.box() as box:
        running(box, gpus=4, borrow=True, resumable=True, name="fit")
    asked = ("submit", "--tenant", "vision", "--gpus", "2", "--dry-run")
    told = dovetail(*asked, "--data-dir", shared.folder, "--", "true").out
    said = "start when they are free: its 2 GPUs are lent to fit, which must leave"
    assert said in " ".join(told.split())
    assert all(len(line) <= 80 for line in told.splitlines())
