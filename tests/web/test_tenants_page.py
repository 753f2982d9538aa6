"""Tenants in a real browser: whose each GPU is, what is lent, and how its owner gets it back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from looking import picture
from served import Served, real
from test_accessibility import complaints

pytestmark = pytest.mark.real

OWNERS = """
[[tenants]]
name = "vision"
gpus = [2]
users = ["*"]

[[tenants]]
name = "speech"
gpus = [1]
users = ["*"]
"""
UNWILLING = "trap 'sleep 4; exit 0' TERM; while true; do sleep 0.2; done"
"""It takes its time to stop."""


@pytest.fixture(scope="module")
def owned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("owned")
    (folder / "tenants.toml").write_text(OWNERS)
    with real(folder / "data", "--tenancy", f"cells:{folder / 'tenants.toml'}") as served:
        yield served


def test_what_is_lent_is_shown_and_seen_to_go_back_to_its_owner(look, owned, tmp_path):
    own = owned.box.submit(["sleep", "90"], gpus=1, name="own", tenant="speech")
    lent = owned.box.submit(
        ["bash", "-c", UNWILLING],
        gpus=3,
        name="borrower",
        tenant="speech",
        borrow=True,
        resumable=True,
    )
    page = look(owned)
    page.get_by_role("link", name="Tenants", exact=True).click()
    vision = page.get_by_role("region", name="vision", exact=True)
    vision.locator(".cell-gpu.lent", has_text=str(lent)).nth(1).wait_for(timeout=20_000)
    speech = page.get_by_role("region", name="speech", exact=True)
    speech.locator(".cell-gpu.used", has_text=str(own)).wait_for()
    page.get_by_role("heading", name="What is lent to whom").wait_for()
    page.get_by_role("cell", name="when wanted").first.wait_for()
    assert complaints(page) == []
    picture(page, "tenants", tmp_path)
    wanted = owned.box.submit(["sleep", "90"], gpus=2, name="owner", tenant="vision")
    # Without a reload: on its way back first, then in use by its owner.
    vision.locator(".cell-gpu.returning").first.wait_for(timeout=20_000)
    vision.locator(".cell-gpu.used", has_text=str(wanted)).nth(1).wait_for(timeout=20_000)
    for job in (own, lent, wanted):
        owned.box.cancel(job)


def test_the_cluster_map_says_whose_each_gpu_is(look, owned):
    lent = owned.box.submit(
        ["sleep", "90"], gpus=3, name="borrower", tenant="speech", borrow=True, resumable=True
    )
    page = look(owned)
    page.locator(".owner", has_text="vision · lent").wait_for(timeout=20_000)
    page.locator(".owner", has_text="speech").wait_for()
    page.get_by_role("button", name="By tenant").click()
    page.locator(".legend", has_text="vision").wait_for()
    owned.box.cancel(lent)
    page.locator(".owner.idle", has_text="vision").wait_for(timeout=20_000)
