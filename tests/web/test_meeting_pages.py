"""Pages for those who choose policies: the report of the week, and the policy in the shadow."""

from __future__ import annotations

import pytest
from looking import picture

pytestmark = pytest.mark.real


def test_the_report_says_what_the_command_says(look, small, tmp_path):
    told = small.box.review()
    page = look(small, at="#/report")
    page.get_by_role("heading", name="What waited longest").wait_for()
    assert page.locator(".chart svg").count() == 2
    tiles = {
        each.locator(".name").inner_text(): each.locator("strong").inner_text()
        for each in page.locator(".tile").all()
    }
    assert tiles["Submitted"] == f"{told.submitted:,}"
    assert (tiles["Done"], tiles["Failed"]) == (f"{told.done:,}", f"{told.failed:,}")
    assert page.locator(".bars .shift").count() == len(told.spent)
    users = page.get_by_role("region", name="Waits by user").locator("tbody tr")
    assert users.count() == len(told.users)
    page.set_viewport_size({"width": 1280, "height": 1000})
    picture(page, "report", tmp_path)
    page.get_by_role("button", name="A day").click()
    page.locator(".tile", has_text="Submitted").wait_for()


def test_the_policy_in_the_shadow_is_shown_beside_the_real_one(look, small, tmp_path):
    told = small.box.shadow()
    assert told.otherwise > 0
    page = look(small, at="#/shadow")
    page.get_by_text("looks on while").wait_for()
    assert page.locator(".steps li").count() == len(told.differences)
    assert page.locator(".shift").count() == len(told.users)
    picture(page, "shadow", tmp_path)
    page.locator(".steps li a").first.click()
    page.locator(".heading .badge").wait_for()


def test_where_nobody_is_in_the_shadow_the_page_says_how_and_is_not_offered(look, box):
    page = look(box, at="#/shadow")
    page.get_by_text("dovetail up --shadow srtf").wait_for()
    links = page.locator("nav[aria-label=Pages] a").all_inner_texts()
    assert "Report" in links
    assert "Shadow" not in links
    assert "Tenants" not in links
