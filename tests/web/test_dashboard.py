"""The dashboard in a real browser: people log in, watch, open, ask; nothing complains."""

from __future__ import annotations

import pytest
from looking import DESK, PHONE, TRAINING, picture
from served import Served

pytestmark = pytest.mark.real

PLACES = ("", "jobs", "users", "history", "report", "what-if", "policy", "shadow", "jobs/117")


def test_without_a_token_there_is_only_the_way_in(browser, box):
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(box.url)
        page.fill("#token", "dt_wrong_token")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("this token is not known here").wait_for()
        assert page.locator("header.top").is_hidden()


def test_a_job_is_watched_from_waiting_to_done_and_its_page_opened(look, box, tmp_path):
    holder = box.box.submit(["sleep", "600"], gpus=4, name="holder")
    number = box.box.submit(
        ["python3", "-c", TRAINING], gpus=2, name="train-small", cpus=1, directory="/"
    )
    page = look(box, at="#/jobs")
    row = page.locator(f'.tr[data-id="{number}"]')
    row.locator(".badge.waiting").wait_for()
    row.get_by_text("GPU").first.wait_for()  # the reason why it waits
    box.box.cancel(holder)
    row.locator(".badge.running").wait_for()
    row.get_by_role("link").click()
    page.get_by_role("heading", name="train-small").wait_for()
    page.locator(".output", has_text="loss").wait_for()
    page.locator(".progress-line", has_text="of 600 steps").wait_for()
    page.locator(".chart", has_text="Memory").wait_for()
    page.set_viewport_size({"width": DESK[0], "height": 1000})
    page.wait_for_timeout(9000)  # until there is a line to see
    picture(page, "job", tmp_path)
    page.locator(".heading .badge.done").wait_for()
    page.goto(f"{box.url}#/jobs")
    page.get_by_role("button", name="Ended").click()
    row.locator(".badge.done").wait_for()


def test_a_job_is_held_released_and_cancelled_by_hand(look, box):
    holder = box.box.submit(["sleep", "600"], gpus=4)
    number = box.box.submit(["sleep", "600"], gpus=4, name="by-hand")
    page = look(box, at=f"#/jobs/{number}")
    page.get_by_role("button", name="Hold").click()
    page.locator(".heading .badge.held").wait_for()
    page.get_by_role("button", name="Release").click()
    page.locator(".heading .badge.waiting").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.locator(".heading .badge.cancelled").wait_for()
    box.box.cancel(holder)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_shows_itself_in_both_themes(look, small, theme, tmp_path):
    page = look(small, theme)
    page.locator(".node").first.wait_for()
    picture(page, f"cluster-{theme}", tmp_path)
    for name, mark in {
        "jobs": ".tr .badge",
        "users": "tbody tr",
        "history": ".chart svg",
        "policy": "section.card",
        "report": ".bars .shift",
        "shadow": ".shift",
        "what-if": "h1",
    }.items():
        page.goto(f"{small.url}#/{name}")
        page.locator(mark).first.wait_for()
        page.wait_for_timeout(300)
        if name == "jobs":
            looks = (
                "all => new Set(all.map(e => e.clientHeight + getComputedStyle(e).fontSize)).size"
            )
            assert page.eval_on_selector_all(".tr.head .td", looks) == 1
            page.get_by_role("button", name="Waiting").click()
            page.locator(".td.why", has_text="GPU").first.wait_for()
        picture(page, f"{name}-{theme}", tmp_path)


def test_the_theme_can_be_chosen_and_is_remembered(look, small):
    page = look(small, "light")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    page.get_by_role("button", name="dark theme").click()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    page.locator(".node").first.wait_for()
    assert page.evaluate(ground) == dark


def test_a_phone_shows_every_page_without_scrolling_sideways(look, small, tmp_path):
    page = look(small, "dark", PHONE)
    for name in PLACES:
        page.goto(f"{small.url}#/{name}")
        page.wait_for_timeout(400)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0], name
    page.goto(f"{small.url}#/jobs")
    page.locator(".tr .badge").first.wait_for()
    picture(page, "phone", tmp_path)


def test_a_name_without_a_break_makes_no_page_wider_than_a_phone(look, box):
    holder, waiting = (box.box.submit(["sleep", "60"], gpus=4, name="x" * 100) for _ in range(2))
    page = look(box, size=PHONE)
    for name in ("", "jobs", f"jobs/{holder}", f"jobs/{waiting}", "report"):
        page.goto(f"{box.url}#/{name}")
        page.get_by_text("x" * 100).or_(page.locator(".tiles")).first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0], name
    for job in (waiting, holder):
        box.box.cancel(job)


def test_those_who_ended_long_ago_are_found_by_scrolling(look, small):
    ended = len(small.ask("history", limit=500))
    assert ended > 60
    page = look(small, at="#/jobs")
    page.get_by_role("button", name="Ended").click()
    page.get_by_text("60 of 60 and more").wait_for()
    page.locator(".scroll").evaluate("list => { list.scrollTop = list.scrollHeight; }")
    page.get_by_text(f"{ended} of {ended}", exact=True).wait_for()
    page.reload()
    page.get_by_text("60 of 60 and more").wait_for()
    old = [job["id"] for job in small.ask("history", limit=500)[60:] if job["id"] > 13]
    page.get_by_role("searchbox").fill(str(old[-1]))
    page.locator(f'.tr[data-id="{old[-1]}"]').wait_for()


def test_a_hostile_name_is_only_text(look, small):
    page = look(small, at="#/jobs")
    page.get_by_role("searchbox").fill("onerror")
    page.locator(".tr .name", has_text="<img src=x onerror=alert(1)>").first.wait_for()
    assert page.locator("main img").count() == 0


def test_all_can_be_reached_with_the_keyboard(look, small):
    page = look(small)
    page.reload()
    page.locator(".node").first.wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    names = []
    for _ in range(11):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.textContent.trim()"))
    assert names[:3] == ["Dovetail", "Cluster", "Jobs"]
    assert "Sign out" in names
    page.get_by_role("link", name="Jobs", exact=True).focus()
    page.keyboard.press("Enter")
    page.locator(".tr .badge").first.wait_for()
    assert page.get_by_role("table", name="Jobs").get_attribute("aria-rowcount")


def test_a_what_if_is_asked_and_its_answer_drawn(look, small, tmp_path):
    page = look(small, at="#/what-if")
    page.get_by_label("Policy").fill("srtf")
    page.get_by_role("button", name="Replay").click()
    page.locator(".result .tile").first.wait_for()
    assert page.locator(".result .chart svg").count() == 3
    assert page.locator(".shift").count() > 0
    page.wait_for_timeout(200)
    picture(page, "what-if-answer", tmp_path)


def test_a_what_if_that_makes_no_sense_is_told_so(look, small):
    page = look(small, at="#/what-if")
    page.get_by_label("Quotas").fill("nonsense")
    page.get_by_role("button", name="Replay").click()
    page.get_by_role("alert").get_by_text("write name = GPUs").wait_for()


def test_who_waits_is_told_when_and_what_would_help(look, small, tmp_path):
    page = look(small, at="#/jobs")
    page.get_by_role("button", name="Waiting").click()
    page.locator(".td .soon").first.wait_for()
    page.locator(".space .tr a").first.click()
    page.locator(".facts dd", has_text="80 % sure").first.wait_for()
    page.get_by_role("heading", name="In front").wait_for()
    picture(page, "waiting", tmp_path)


def test_a_reader_looks_and_touches_nothing(look, box):
    number = box.box.submit(["sleep", "600"], gpus=1, name="not-yours")
    token = box.box.make_token(owner="guest", role="reader")
    page = look(Served(box.port, token, box.folder, box.box), at=f"#/jobs/{number}")
    page.get_by_text("Its owner and admins see what it writes.").wait_for()
    assert page.get_by_role("button", name="Cancel").count() == 0
    box.box.cancel(number)
