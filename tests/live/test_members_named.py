"""A member of an array is called by its place in it, wherever people read of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hosting import Hosted, of_tenants, told_by, until

from dovetail.live import Box
from dovetail.model.errors import UserError

ROBOTS = '[[tenants]]\nname = "robots"\ngpus = [4]\n'


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Hosted]:
    with Hosted(tmp_path / "data", parts=of_tenants()) as made:
        yield made


def array(box: Box, state: str, *command: str, **asked: Any) -> list[int]:
    """The numbers of two jobs whose array is 1, once they are so."""
    task = {"command": list(command), "directory": "/", "environment": {}, "array": "2", **asked}
    jobs = list(box.submit_all([task])[0].jobs)
    for job in jobs:
        until(lambda job=job: box.show(job).job.state == state)  # type: ignore[misc]
    return jobs


def test_where_machines_and_what_is_in_the_way_are_listed(
    host: Hosted, box: Box, dovetail: Callable[..., Any]
) -> None:
    here = ("--data-dir", host.folder)
    first, second = array(box, "running", "sleep", "600", gpus=2)
    later = box.submit(["true"], gpus=4, after=[first, second], after_any=True, name="late")
    assert "1.0, 1.1" in dovetail("nodes", *here).out.splitlines()[3]
    shown = dovetail("show", later, *here).out
    assert "it waits for jobs 1.0, 1.1 to end" in shown and "in its way    1.0, 1.1" in shown
    assert shown.split("after ")[1].split("\n")[0].strip() == "1.0, 1.1"
    with pytest.raises(UserError, match=r"job 1\.1 is running: only a waiting job can be held"):
        box.hold("1.1")
    with pytest.raises(UserError, match=r"job 1\.0 had 1 attempt; there is no number 7"):
        box.log("1.0", 7)
    with host.remote("user", "bob") as bob, pytest.raises(UserError, match=r"job 1\.0 belongs to"):
        bob.cancel(first)
    assert "[1.0][1.0][1.1][1.1]" in _picture(box)


def _picture(box: Box) -> str:
    """What `top` draws."""
    from dovetail.cli.top import look
    from dovetail.cli.top_view import Screen, drawn

    return drawn(look(box, mine=False), Screen(), 80, 20).plain


def test_where_one_is_run_again_or_could_not_be_done(
    host: Hosted, box: Box, dovetail: Callable[..., Any]
) -> None:
    first, _ = array(box, "failed", "false")
    late = box.submit(["true"], after=[first], name="late")
    assert box.wait(late).reason == "job 1.0, which it was to run after, is failed"
    assert dovetail("requeue", "1.1", "--data-dir", host.folder).out == "job 1.1 requeued\n"
    told = box.requeue("1")
    assert {told.labels[job] for job in (*told.jobs, *told.new)} == {"1.0", "1.1"}


def test_where_what_is_lent_is_listed_and_given_back(
    shared: Hosted, dovetail: Callable[..., Any], tmp_path: Path
) -> None:
    here, left = ("--data-dir", shared.folder), tmp_path / "left"
    unwilling = f'trap "{told_by(left)}; exit 0" TERM; sleep 600 & wait'
    with shared.box() as box:
        lent = array(
            box, "running", "sh", "-c", unwilling, gpus=2, borrow=True, resumable=True, name="fit"
        )
        tables = dovetail("nodes", "--tenants", *here).out
        assert "job 1.0" in tables and "job 1.1" in tables and f"job {lent[1]} " not in tables
        owners = array(box, "starting", "sleep", "600", gpus=1, tenant="vision", name="own")
        assert box.why(owners[0]).text.startswith("its GPU is lent to fit, which must leave first")
        tables = dovetail("nodes", "--tenants", *here).out
        assert "for job 4.0" in tables and "for job 4.1" in tables
        asker = next(job for job in lent if box.show(job).job.state == "stopping")
        left.touch()
        until(lambda: box.show(owners[1]).job.state == "running")
        assert "to make room for jobs 4.0, 4.1 (" in until(lambda: box.why(asker).stopped)
        (tmp_path / "robots.toml").write_text(ROBOTS)
        change = dovetail("tenants", "apply", tmp_path / "robots.toml", "--dry-run", *here).out
        assert "jobs 4.0, 4.1. Owners are given" in " ".join(change.split())
        assert all(len(line) <= 80 for line in (tables + change).splitlines())
