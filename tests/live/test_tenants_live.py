"""Real jobs of tenants: what was lent goes back to its owner, and the work goes on elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hosting import PATIENCE, Hosted, of_tenants, slow_at_first, told_by, until

from dovetail.live import Box
from dovetail.model.errors import UserError
from dovetail.model.tenants import Loan, Tenant, Use

TRAIN = Path(__file__).parents[2] / "examples" / "live" / "train.py"


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Hosted]:
    with Hosted(tmp_path / "data", parts=of_tenants()) as made:
        yield made


def state(box: Box, number: int) -> str:
    return box.show(number).job.state


def tenant(box: Box, name: str) -> Tenant:
    return next(each for each in box.tenants().tenants if each.name == name)


def test_lent_hardware_goes_back_and_the_work_goes_on(shared: Hosted) -> None:
    with shared.box() as box, shared.remote("user", "bob") as bob:
        words = [sys.executable, str(TRAIN), "--steps", "80", "--seconds"]
        command = ["sh", "-c", slow_at_first(words)]
        lent = bob.submit(command, gpus=4, cpus=0.2, borrow=True, resumable=True, name="fit")
        until(lambda: (told := bob.show(lent).job.progress) and told.steps >= 10, "progress")
        assert (tenant(box, "vision").lent, tenant(box, "speech").borrowed) == (2, 4)

        own = box.submit(["sleep", "600"], gpus=2, tenant="vision", name="owner")
        until(lambda: state(box, own) == "running")
        assert box.show(own).job.started is not None
        # It saved its work when it was asked to leave, and waits for as much as it had.
        told = bob.why(lent)
        assert told.cause == "owners"
        assert told.text == (
            "needs 4 GPUs with 0.2 cores; owners use 2 of 4 GPUs themselves, so they are not lent"
        )
        assert told.stopped == (
            f"it was stopped to make room for job {own} "
            "(its devices went back to their owner vision)"
        )
        assert [each.job for each in told.blame] == [own]
        assert ("2 GPUs instead of 4", 0) in [
            (each.change, each.starts_in) for each in told.instead
        ]

        box.cancel(own)
        done = bob.wait(lent, PATIENCE)
        assert (done.state, done.attempts, done.failures) == ("done", 2, 0)
        log = "".join(bob.log(lent, attempt).text for attempt in (1, 2))
        saved = next(line for line in log.splitlines() if line.startswith("saved at step"))
        assert int(saved.split()[-1]) >= 10
        assert f"resumed at step {saved.split()[-1]}" in log


def test_an_owner_is_told_when_its_hardware_is_back(
    shared: Hosted, dovetail: Callable[..., Any], tmp_path: Path
) -> None:
    stubborn = f'trap "{told_by(tmp_path / "left")}; exit 0" TERM; sleep 600 & wait'
    with shared.box() as box:
        lent = box.submit(
            ["sh", "-c", stubborn], gpus=4, borrow=True, resumable=True, name="slow", grace=50
        )
        until(lambda: state(box, lent) == "running")
        own = box.submit(["sleep", "600"], gpus=2, tenant="vision")
        told = until(lambda: (found := box.why(own)).cause == "lent" and found)
        assert told.text.startswith("its 2 GPUs are lent to slow, which must leave")
        seconds = int(told.text.partition("back in ")[2].split()[0])
        assert 0 < seconds <= 50
        assert [each.job for each in told.blame] == [lent] and told.unblock
        seen = box.tenants()
        assert {patch.use for patch in seen.patches} == {Use.RETURNING}
        wanted = [loan for loan in seen.loans if loan.wanted_by == own]
        assert [_brief(loan) for loan in wanted] == [(lent, "vision", (0, 1))]
        assert all(loan.back_in is not None and 0 < loan.back_in <= 50 for loan in seen.loans)
        shown = dovetail("nodes", "--tenants", "--data-dir", shared.folder)
        assert f"for job {own}" in shown.out and "returning" in shown.out
        assert all(len(line) <= 80 for line in shown.out.splitlines())
        (tmp_path / "left").touch()
        until(lambda: state(box, own) == "running")
        assert tenant(box, "vision").used == 2
        assert not box.tenants().loans


def _brief(loan: Loan) -> tuple[int, str, tuple[int, ...]]:
    return loan.job, loan.lender, loan.devices


def test_what_tenants_own_is_measured(shared: Hosted) -> None:
    with shared.box() as box:
        number = box.submit(["sleep", "600"], gpus=3, borrow=True, resumable=True)
        until(lambda: state(box, number) == "running")
        with shared.client(shared.token("reader", "eve")) as line:
            text = line.get(f"{shared.url}/metrics").text
    for figure in (
        'dovetail_tenant_gpus{tenant="vision"} 2.0',
        'dovetail_tenant_gpus_used{tenant="vision"} 0.0',
        # The first in the file would get what fewest are on.
        'dovetail_tenant_gpus_lent{tenant="vision"} 1.0',
        'dovetail_tenant_gpus_lent{tenant="speech"} 2.0',
    ):
        assert figure in text


def test_numbers_are_borrowed_and_reclaimed(tmp_path: Path) -> None:
    with Hosted(tmp_path / "data", parts=of_tenants("shares")) as host, host.box() as box:
        first = box.submit(["sleep", "600"], gpus=2, tenant="speech", resumable=True)
        more = box.submit(["sleep", "600"], gpus=2, tenant="speech", resumable=True)
        until(lambda: state(box, first) == state(box, more) == "running")
        assert (tenant(box, "vision").lent, tenant(box, "speech").borrowed) == (2, 2)
        own = box.submit(["sleep", "600"], gpus=2, tenant="vision")
        until(lambda: state(box, own) == "running")
        assert (state(box, first), state(box, more)) == ("running", "waiting")
        assert box.why(more).stopped.endswith("(its devices went back to their owner vision)")


def test_what_if_others_owned_the_gpus(shared: Hosted) -> None:
    with shared.box() as box, shared.remote("user", "bob") as bob:
        task = {"command": ["sleep", "0.3"], "gpus": 2, "tenant": "vision"}
        # At one moment, so that the second waits on any machine.
        jobs = [number for each in box.submit_all([task] * 2) for number in each.jobs]
        jobs.append(bob.submit(["sleep", "0.3"], gpus=2))
        for job in jobs:
            box.wait(job)
        same = box.what_if(policy="fifo:skip=true")
        assert same.before.label == same.after.label
        assert same.after.label.endswith("cells of vision and speech")
        free = box.what_if(tenants={"kind": "none"})
        assert free.after.label == "fifo:skip=true on 4 GPUs"
        # Alone on everything, vision's second job need not wait for the first.
        assert free.after.mean_wait < free.before.mean_wait
        with pytest.raises(UserError, match=r"speech asks for 1 .*; 0 are left after vision"):
            box.what_if(gpus=2)
