"""`dovetail tenants apply` on a real controller: jobs run on through it, and through a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hosting import OWNERS, Hosted, Process, of_tenants, until

from dovetail.live import Box
from dovetail.model.errors import UserError

AFTER = """
[[tenants]]
name = "vision"
gpus = [1]

[[tenants]]
name = "robots"
gpus = [2]
users = ["ann"]
"""


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Hosted]:
    with Hosted(tmp_path / "data", parts=of_tenants()) as made:
        yield made


def running(box: Box, **fields: Any) -> int:
    number = box.submit(["sleep", "600"], memory="64M", **fields)
    until(lambda: box.show(number).job.state == "running")
    return number


def test_jobs_run_on_when_others_own_their_hardware(shared: Hosted) -> None:
    with shared.box() as box:
        mine = running(box, gpus=2, tenant="vision", resumable=True)
        theirs = running(box, gpus=2, tenant="speech")
        waits = box.submit(["true"], gpus=1, tenant="speech")
        preview = box.apply_tenants(AFTER, dry_run=True)
        assert not preview.applied
        assert box.tenants().tenants[1].name == "speech"
        change = box.apply_tenants(AFTER)
        assert change.applied and change.jobs == preview.jobs
        shifts = {each.name: (each.before, each.after, each.cells) for each in change.tenants}
        assert shifts == {
            "vision": (2, 1, ("+1 virtual", "-1 virtual-2")),
            "speech": (2, 0, ("-1 virtual-2",)),
            "robots": (0, 2, ("+1 virtual-2",)),
        }
        become = {each.job: each.becomes for each in change.jobs}
        assert become.keys() == {mine, theirs, waits}
        assert become[mine].startswith("runs on as if lent")
        assert become[theirs].endswith("it cannot resume, so it would lose its work")
        assert [each.job for each in change.jobs if each.at_risk] == [theirs]
        assert become[waits].startswith("waits: no tenant is called 'speech'")
        for number in (mine, theirs):
            job = box.show(number).job
            assert (job.state, job.attempts) == ("running", 1)
        assert {loan.job for loan in box.tenants().loans} == {mine, theirs}
        assert box.why(waits).cause == "tenant"
        # Once its tenant is there again, it finds its place.
        box.apply_tenants(OWNERS)
        box.cancel(theirs)
        assert box.wait(waits).state == "done"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            OWNERS + '[[tenants]]\nname = "x"\ngpus = [2]\n',
            "new.toml:12: x asks for 1 cell of 2 GPUs of virtual; 0 are left after vision, speech",
        ),
        ("[[tenants]]\nname = 3\n", "new.toml:2: a tenant needs a name"),
        ("", "new.toml: lists no tenants"),
        ("no toml", "new.toml:1: not TOML"),
    ],
)
def test_a_wrong_file_changes_nothing(shared: Hosted, text: str, said: str) -> None:
    with shared.box() as box:
        before = box.contracts()
        for dry_run in (True, False):
            with pytest.raises(UserError) as error:
                box.apply_tenants(text, name="new.toml", dry_run=dry_run)
            assert str(error.value).startswith(said)
        assert box.contracts() == before
        assert box.wait(box.submit(["true"], gpus=2, tenant="vision")).state == "done"


def test_only_admins_change_who_owns_what(shared: Hosted) -> None:
    with shared.remote("user", "ann") as ann:
        with pytest.raises(UserError, match="only an admin"):
            ann.apply_tenants(AFTER)
        with pytest.raises(UserError, match="only an admin"):
            ann.apply_tenants(AFTER, dry_run=True)
    with shared.remote("reader", "eve") as eve:
        assert eve.contracts().kind == "cells"
        assert [each.name for each in eve.tenants().tenants] == ["vision", "speech"]


def test_who_may_submit_changes_with_the_file(shared: Hosted) -> None:
    with shared.box() as box, shared.remote("user", "ann") as ann:
        with pytest.raises(UserError, match="ann belongs to no tenant"):
            ann.submit(["true"], gpus=1)
        box.apply_tenants(AFTER)
        assert ann.show(ann.submit(["true"], gpus=1)).job.tenant == "robots"
        box.apply_tenants("", "none")
        assert ann.show(ann.submit(["true"], gpus=4)).job.tenant == ""
        assert box.tenants().kind == ""


def test_commands_show_and_apply(
    shared: Hosted, tmp_path: Path, dovetail: Callable[..., Any]
) -> None:
    folder, path = ("--data-dir", shared.folder), tmp_path / "new.toml"
    path.write_text(AFTER)
    with shared.box() as box:
        number = running(box, gpus=2, tenant="vision", resumable=True, name="resnet")
        fixed = running(box, gpus=2, tenant="speech", name="align")
    tried = dovetail("tenants", "apply", path, "--dry-run", *folder)
    assert "Nothing was changed" in tried.out
    assert "resnet" in tried.out and "No job is stopped: 2 run." in tried.out
    said = f"1 of them cannot resume and is on what others own from then on: job {fixed}."
    assert said in " ".join(tried.out.split())
    assert all(len(line) <= 80 for line in tried.out.splitlines())
    assert "speech" in dovetail("tenants", "show", *folder).out
    done = dovetail("tenants", "apply", f"cells:{path}", *folder)
    assert done.out.startswith("Tenants own cells now.\n")
    shown = dovetail("tenants", "show", *folder)
    # What is shown can be applied again, and then changes nothing.
    path.write_text(shown.out)
    again = dovetail("tenants", "apply", path, *folder)
    assert "No tenant gains or loses anything." in again.out
    told = dovetail("nodes", "--tenants", *folder).out
    assert "robots" in told and f"job {number}" in told
    assert all(len(line) <= 80 for line in told.splitlines())
    refused = dovetail("tenants", "apply", tmp_path / "nowhere.toml", *folder)
    assert refused.code == 2 and "cannot be read" in refused.err
    refused = dovetail("tenants", "apply", f"cell:{path}", *folder)
    assert refused.err == "dovetail: tenants own no 'cell'; did you mean 'cells'?\n"
    gone = dovetail("tenants", "apply", "none", "--dry-run", *folder).out
    assert gone.startswith("Nobody would own anything.\n")
    assert "runs on; nobody owns its GPUs any more" in " ".join(gone.split())
    dovetail("tenants", "apply", f"shares:{path}", *folder)
    told = dovetail("nodes", "--tenants", *folder).out.split()
    assert "cell" not in told and "cells" not in told


def test_it_survives_a_kill_and_a_start_that_says_nothing_of_tenants(
    tmp_path: Path, dovetail: Callable[..., Any]
) -> None:
    """A controller of its own, with real processes, killed right after the change."""
    first = tmp_path / "tenants.toml"
    first.write_text(OWNERS)
    folder = tmp_path / "data"
    killed = Process(folder, "--tenancy", f"cells:{first}", "--policy", "fifo:skip=true")
    assert "tenants with cells: vision 2 GPUs, speech 2 GPUs" in killed.said()
    with killed.box() as box:
        mine = running(box, gpus=2, tenant="vision", resumable=True)
        theirs = running(box, gpus=2, tenant="speech")
        box.apply_tenants(AFTER)
    killed.process.kill()
    killed.wait()
    again = Process(folder, "--policy", "fifo:skip=true")
    try:
        with again.box() as box:
            assert {each.name for each in box.tenants().tenants} == {"vision", "robots"}
            for number in (mine, theirs):
                job = box.show(number).job
                assert (job.state, job.attempts, job.failures) == ("running", 1, 0)
            assert {loan.job for loan in box.tenants().loans} == {mine, theirs}
            own = box.submit(["true"], gpus=2, tenant="robots")
            assert box.wait(own).state == "done"
    finally:
        again.close()
    replayed = dovetail("replay", "--data-dir", folder)
    assert replayed.code == 0, replayed.err


def test_a_start_may_end_tenancies_and_refuses_wrong_ones(tmp_path: Path) -> None:
    path, folder = tmp_path / "tenants.toml", tmp_path / "data"
    path.write_text(OWNERS)
    Process(folder, "--tenancy", f"shares:{path}").close()
    path.write_text(OWNERS + '[[tenants]]\nname = "x"\nnodes = 1\n')
    with pytest.raises(AssertionError, match=r"tenants.toml:4: vision asks for 1 cell of 2 GPUs"):
        Process(folder, "--tenancy", f"cells:{path}")
    kept = Process(folder)
    assert "tenants with shares: vision 2 GPUs, speech 2 GPUs" in kept.said()
    kept.close()
    ended = Process(folder, "--tenancy", "none")
    with ended.box() as box:
        assert box.tenants().kind == ""
    ended.close()
