"""For which tenant somebody's jobs count, and who may borrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hosting import OTHERS, Hosted, Process, being, needs_root, open_folder

from dovetail.controller.api.belonging import Asker, Belonging, belonging
from dovetail.controller.api.refusing import Refused
from dovetail.controller.parts import Parts
from dovetail.live import connect
from dovetail.model.errors import UserError
from dovetail.tenancy.contracts import contracts_in
from dovetail.tenancy.kinds import Tenants, read_tenants

FILE = """
[[tenants]]
name = "vision"
gpus = [2]
users = ["ann"]
groups = ["lab"]

[[tenants]]
name = "speech"
gpus = [1]

[[tenants]]
name = "open"
gpus = [1]
users = ["*"]
"""
CONTRACTS = contracts_in(FILE, "tenants.toml")


def asker(name: str, *groups: str, admin: bool = False) -> Asker:
    return Asker(name, frozenset(groups), admin)


@pytest.mark.parametrize(
    ("who", "wanted", "tenant"),
    [
        (asker("ann"), "", "vision"),
        (asker("bob", "lab"), "", "vision"),
        (asker("cid", "speech"), "", "speech"),
        (asker("cid", "speech"), "open", "open"),
        (asker("dan"), "", "open"),
        (asker("ann", "speech"), "speech", "speech"),
        (asker("ann"), "vision/night", "vision/night"),
        (asker("root", admin=True), "speech", "speech"),
        # Who is named in a list is at home there, admin or not.
        (asker("ann", admin=True), "", "vision"),
    ],
)
def test_jobs_find_their_tenant(who: Asker, wanted: str, tenant: str) -> None:
    assert Belonging("cells", CONTRACTS).tenant(who, wanted) == tenant


@pytest.mark.parametrize(
    ("who", "wanted", "said"),
    [
        (asker("dan"), "vision", "dan may not submit for vision; you may use open"),
        # A list of people takes the place of the group of that name.
        (asker("eve", "vision"), "vision", "eve may not submit for vision; you may use open"),
        (asker("dan"), "visoin", "no tenant is called 'visoin'; did you mean 'vision'?"),
    ],
)
def test_others_are_told_what_they_may_use(who: Asker, wanted: str, said: str) -> None:
    with pytest.raises(Refused) as error:
        Belonging("cells", CONTRACTS).tenant(who, wanted)
    assert str(error.value) == said


def test_who_is_in_no_tenant_may_only_borrow() -> None:
    there = Belonging("cells", CONTRACTS[:2])
    with pytest.raises(Refused) as error:
        there.tenant(asker("dan"), "")
    assert str(error.value) == (
        "dan belongs to no tenant; jobs that --borrow may run on what is idle"
    )
    assert there.tenant(asker("dan"), "", borrows=True) == ""
    with pytest.raises(Refused, match=r"dan belongs to no tenant$"):
        Belonging("shares", CONTRACTS[:2]).tenant(asker("dan"), "", borrows=True)


def test_an_admin_says_for_whom_unless_there_is_one_only() -> None:
    with pytest.raises(Refused) as error:
        Belonging("cells", CONTRACTS[:2]).tenant(asker("root", admin=True), "")
    assert str(error.value) == "say for which tenant, with --tenant: vision or speech"
    assert Belonging("cells", CONTRACTS[:1]).tenant(asker("root", admin=True), "") == "vision"


@pytest.mark.parametrize(
    ("kind", "borrow", "priority", "resumable", "said"),
    [
        ("cells", True, 0.0, True, -1.0),
        ("cells", True, -5.0, True, -5.0),
        ("cells", False, 2.0, False, 2.0),
        ("", False, -1.0, False, -1.0),
        ("cells", True, 0.0, False, "a job that borrows is stopped"),
        ("cells", False, -1.0, False, "a job that borrows is stopped"),
        ("cells", True, 1.0, True, "behind all owners"),
        ("shares", True, 0.0, True, "leave --borrow out"),
        ("", True, 0.0, True, "there are no tenants here"),
    ],
)
def test_borrowing_is_a_low_priority(
    kind: str, borrow: bool, priority: float, resumable: bool, said: float | str
) -> None:
    there = Belonging(kind, CONTRACTS)
    if isinstance(said, float):
        assert there.priority(borrow, priority, resumable) == said
    else:
        with pytest.raises(Refused, match=said):
            there.priority(borrow, priority, resumable)


def test_groups_with_a_quota_stand_in_where_there_are_no_tenants() -> None:
    there = belonging(Parts(quotas="ann=1,group:lab=2,group:ops=1"))
    assert there.tenant(asker("bob", "ops", "lab"), "") == "lab"
    assert there.tenant(asker("bob", "ops", "lab"), "ops") == "ops"
    assert there.tenant(asker("bob"), "") == ""
    with pytest.raises(Refused, match="bob may not submit for ops"):
        there.tenant(asker("bob"), "ops")
    with pytest.raises(Refused, match="no tenant is called 'x'; there are none here"):
        belonging(Parts()).tenant(asker("bob"), "x")


@pytest.mark.parametrize("value", ['"ann"', "[1]", '[""]'])
def test_lists_of_people_are_lists_of_names(value: str) -> None:
    with pytest.raises(UserError, match=r"^t.toml:4: a: users is .* must be a list of names$"):
        contracts_in(f'[[tenants]]\nname = "a"\nnodes = 1\nusers = {value}\n', "t.toml")


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Hosted]:
    """A box with tenants: ann is of vision, everybody may use open."""
    parts = Parts("fifo:skip=true", tenancy=Tenants("cells", CONTRACTS).written())
    with Hosted(tmp_path / "data", parts=parts) as made:
        yield made


def test_over_the_port_a_token_is_as_good_as_its_owner(shared: Hosted) -> None:
    with shared.remote("user", "ann") as ann, shared.remote("user", "dan") as dan:
        assert ann.show(ann.submit(["true"], gpus=1)).job.tenant == "vision"
        assert dan.show(dan.submit(["true"], gpus=1)).job.tenant == "open"
        with pytest.raises(UserError, match="dan may not submit for vision; you may use open"):
            dan.submit(["true"], gpus=1, tenant="vision")


def test_a_dry_run_says_the_same(shared: Hosted) -> None:
    with shared.remote("user", "dan") as dan:
        with pytest.raises(UserError, match="dan may not submit for vision"):
            dan.forecast(["true"], gpus=1, tenant="vision")
        with pytest.raises(UserError, match="--resumable"):
            dan.forecast(["true"], gpus=1, borrow=True)
        assert dan.forecast(["true"], gpus=4, borrow=True, resumable=True).starts_in == 0
        told = dan.forecast(["true"], gpus=2)
        assert not told.possible
        assert told.reason == "asks for 2 GPUs; the cluster has 1 GPU (counting what open owns)"


def test_commands_say_whose_job_it_is(shared: Hosted, dovetail: object) -> None:
    assert callable(dovetail)
    folder = ("--data-dir", shared.folder)
    refused = dovetail("submit", *folder, "--gpus", 1, "--tenant", "visoin", "--", "true")
    assert (refused.code, refused.err) == (
        2,
        "dovetail: no tenant is called 'visoin'; did you mean 'vision'?\n",
    )
    job = dovetail("submit", *folder, "--gpus", 1, "--tenant", "speech", "--", "true").out.strip()
    lent = dovetail("submit", *folder, "--gpus", 4, "--borrow", "--resumable", "--", "true")
    with shared.box() as box:
        assert box.show(job).job.tenant == "speech"
        assert box.show(lent.out.strip()).job.priority == -1
    assert "speech" in dovetail("show", *folder, job).out


def test_what_a_tenant_cannot_have_is_rejected_and_others_go_on(shared: Hosted) -> None:
    with shared.box() as box:
        with pytest.raises(UserError, match=r"asks for 3 GPUs; .* what vision owns"):
            box.submit(["true"], gpus=3, tenant="vision")
        assert box.wait(box.submit(["true"], gpus=2, tenant="vision")).state == "done"


def test_who_owns_what_survives_being_written_down() -> None:
    made = Tenants("cells", CONTRACTS)
    assert read_tenants(made.written()) == made
    assert (CONTRACTS[0].users, CONTRACTS[0].groups) == (("ann",), ("lab",))


@needs_root
def test_on_roots_box_the_groups_of_an_account_count() -> None:
    daemon, nobody = OTHERS
    with open_folder() as folder:
        path = folder / "tenants.toml"
        # Each account is in the group of its name, and daemon is one.
        path.write_text('[[tenants]]\nname = "daemon"\ngpus = [2]\n')
        process = Process(folder / "data", "--tenancy", f"cells:{path}")
        try:
            with connect(process.folder) as box, being(daemon):
                number = box.submit({"command": ["true"], "directory": "/", "gpus": 1})
                assert box.wait(number).tenant == "daemon"
            with connect(process.folder) as box, being(nobody):
                task = {"command": ["true"], "directory": "/", "gpus": 1}
                with pytest.raises(UserError, match="nobody belongs to no tenant"):
                    box.submit(task)
                assert box.wait(box.submit(task, borrow=True, resumable=True)).state == "done"
        finally:
            process.close()
