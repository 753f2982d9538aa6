"""Tenants in a real browser: whose each GPU is, what is lent, and how its owner gets it back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hosting import PATIENCE, told_by
from looking import complaints, picture
from served import Served, real

pytestmark = pytest.mark.real

OWNERS = """
[[tenants]]
name = "vision"
gpus = [4]
users = ["*"]

[[tenants]]
name = "speech"
gpus = [2]
users = ["*"]
"""


@pytest.fixture(scope="module")
def owned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("owned")
    (folder / "tenants.toml").write_text(OWNERS)
    options = ("--gpus", "8", "--tenancy", f"cells:{folder / 'tenants.toml'}")
    with real(folder / "data", *options) as served:
        yield served


def submit(served: Served, name: str, gpus: int, tenant: str, *command: str, **more: Any) -> int:
    little = {"cpus": 0.1, "memory": "64M"}
    return served.box.submit(command, name=name, gpus=gpus, tenant=tenant, **little, **more)


def test_what_is_lent_is_shown_and_seen_to_go_back_to_its_owner(look, owned, tmp_path):
    own = submit(owned, "whisper", 1, "speech", "sleep", "600")
    held = submit(owned, "resnet", 1, "vision", "sleep", "600")
    borrowing = {"borrow": True, "resumable": True, "grace": PATIENCE}
    # It takes its time to stop: until that was seen.
    unwilling = f'trap "{told_by(tmp_path / "seen")}; exit 0" TERM; sleep 600 & wait'
    lent = submit(owned, "probe", 5, "speech", "sh", "-c", unwilling, **borrowing)
    page = look(owned)
    page.get_by_role("link", name="Tenants", exact=True).click()
    vision = page.get_by_role("region", name="vision", exact=True)
    vision.locator(".cell-gpu.lent", has_text=str(lent)).nth(1).wait_for()
    vision.locator(".cell-gpu.used", has_text=str(held)).wait_for()
    speech = page.get_by_role("region", name="speech", exact=True)
    speech.locator(".cell-gpu.used", has_text=str(own)).wait_for()
    page.get_by_role("heading", name="What is lent to whom").wait_for()
    page.get_by_role("cell", name="when wanted").first.wait_for()
    told = next(each for each in owned.box.tenants().tenants if each.name == "vision")
    vision.get_by_text(f"1 of 4 GPUs used, {told.idle:g} idle, {told.lent:g} lent").wait_for()
    speech.get_by_text("(1 on loan), 0 waiting").wait_for()
    assert complaints(page) == []
    picture(page, "tenants", tmp_path)
    wanted = submit(owned, "vit", 2, "vision", "sleep", "600")
    # Without a reload: on its way back first, then in use by its owner.
    vision.locator(".cell-gpu.returning").first.wait_for()
    (tmp_path / "seen").touch()
    vision.locator(".cell-gpu.used", has_text=str(wanted)).nth(1).wait_for()
    for job in (own, held, lent, wanted):
        owned.box.cancel(job)


def test_the_cluster_map_says_whose_each_gpu_is(look, owned):
    lent = submit(owned, "probe", 8, "speech", "sleep", "600", borrow=True, resumable=True)
    page = look(owned)
    page.locator(".owner", has_text="vision · lent").wait_for()
    page.locator(".owner", has_text="speech").wait_for()
    page.get_by_role("button", name="By tenant").click()
    page.locator(".legend", has_text="vision").wait_for()
    owned.box.cancel(lent)
    page.locator(".owner.idle", has_text="vision").wait_for()


def test_the_page_of_a_job_on_loan_says_whose_it_is(look, owned):
    lent = submit(owned, "probe", 8, "speech", "sleep", "600", borrow=True, resumable=True)
    page = look(owned, at=f"#/jobs/{lent}")
    page.get_by_text("Its 8 GPUs are lent to it").wait_for()
    page.get_by_role("heading", name="On loan").wait_for()
    page.get_by_text("Of its GPUs speech owns 2, vision owns 4 and nobody owns 2").wait_for()
    assert complaints(page) == []
    owned.box.cancel(lent)


def test_members_of_an_array_are_called_as_in_lists(look, owned, tmp_path):
    unwilling = f'trap "{told_by(tmp_path / "seen")}; exit 0" TERM; sleep 600 & wait'
    borrowing = {"borrow": True, "resumable": True, "grace": PATIENCE, "array": "2"}
    lent = submit(owned, "probe", 4, "speech", "sh", "-c", unwilling, **borrowing)
    page = look(owned, at="#/tenants")
    page.locator(".cell-gpu.lent", has_text=f"{lent}.0").first.wait_for()
    page.get_by_role("link", name=f"{lent}.1 probe").first.wait_for()
    page.locator(".tile", has_text="Lent").get_by_text("GPUs to 2 jobs").wait_for()
    wanted = submit(owned, "vit", 1, "vision", "sleep", "600", array="1")
    page.get_by_role("link", name=f"{wanted}.0", exact=True).last.wait_for()
    page.locator(".tile", has_text="Lent").get_by_text("GPUs to 1 job; 4 on their").wait_for()
    page.goto(f"{owned.url}#/")
    page.locator(".gpu.held b", has_text=f"{wanted}.0").wait_for()
    page.get_by_text("cores granted").wait_for()
    assert complaints(page) == []
    (tmp_path / "seen").touch()
    for array in (lent, wanted):
        owned.box.cancel(array)
