"""A controller that goes and comes back: the page says so, and then shows what is."""

from __future__ import annotations

from typing import Any

import pytest
from hosting import PATIENCE
from served import real

pytestmark = pytest.mark.real


def test_a_page_finds_the_controller_again_and_shows_what_happened_meanwhile(
    browser: Any, tmp_path: Any
) -> None:
    context = browser.new_context()
    context.set_default_timeout(1000 * PATIENCE)
    page = context.new_page()
    with real(tmp_path / "data") as first:
        kept = first.box.submit(["sleep", "600"], gpus=1, name="goes-on")
        page.goto(f"{first.url}#/jobs")
        page.fill("#token", first.token)
        page.get_by_role("button", name="Sign in").click()
        page.locator(f'.tr[data-id="{kept}"] .badge.running').wait_for()
    page.locator(".link-state", has_text="reconnecting").wait_for()
    page.get_by_role("link", name="Users").click()
    page.get_by_role("heading", name="Users").wait_for()
    page.get_by_text("The controller does not answer.").first.wait_for()
    with real(tmp_path / "data", "--port", str(first.port)) as again:
        new = again.box.submit(["sleep", "600"], gpus=1, name="newcomer")
        page.locator(".link-state", has_text="live").wait_for()
        page.locator("tbody tr").first.wait_for()
        page.get_by_role("link", name="Jobs").click()
        page.locator(f'.tr[data-id="{new}"] .badge.running').wait_for()
        page.locator(f'.tr[data-id="{kept}"] .badge.running').wait_for()
        for job in (kept, new):
            again.box.cancel(job)
        page.locator(".tr .badge").first.wait_for(state="detached")
    context.close()
