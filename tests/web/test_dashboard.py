"""The dashboard in a real browser: people log in, watch, open, ask; nothing complains.

The pictures of the README and the guide are taken here. They are replaced only where
`DOVETAIL_PICTURES` is set, so that a test run leaves the working tree as it is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served import Served

pytestmark = pytest.mark.real

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SHOWN = {
    "cluster-light",
    "cluster-dark",
    "jobs-dark",
    "job",
    "history-light",
    "large",
    "phone",
    "what-if-answer",
    "waiting",
}
"""Pictures that pages of the documentation show."""
DESK, PHONE = (1280, 800), (390, 844)
BUDGET = 2.0
"""Seconds until 5,000 jobs on 1,000 nodes are there."""

TRAINING = """
import time, dovetail_client as client
for step in client.steps(range(600), total=600):
    if step % 40 == 0:
        print(f"step {step:4d}  loss {3.2 / (1 + step / 60):.4f}", flush=True)
    time.sleep(0.05)
"""


@pytest.fixture
def look(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page and logs in; at the end nothing may have complained."""
    said: list[str] = []
    contexts: list[Any] = []

    def open_page(
        served: Served, theme: str = "light", size: tuple[int, int] = DESK, at: str = ""
    ) -> Any:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=theme, locale="en-GB"
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("dialog", lambda dialog: said.append(f"dialog: {dialog.message}"))
        page.goto(served.url + at)
        page.fill("#token", served.token)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("header.top:not([hidden])")
        page.wait_for_selector(".link-state[data-state=live]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


def picture(page: Any, name: str, folder: Path) -> None:
    """A screenshot; both themes must show something."""
    wanted = os.environ.get("DOVETAIL_PICTURES") and name in SHOWN
    keep = IMAGES if wanted else folder
    path = keep / f"dashboard-{name}.png"
    page.screenshot(path=path)
    assert path.stat().st_size > 10_000


def test_without_a_token_there_is_only_the_way_in(browser, box):
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(box.url)
        page.fill("#token", "dt_wrong_token")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("this token is not known here").wait_for()
        assert page.locator("header.top").is_hidden()


def test_a_job_is_watched_from_waiting_to_done_and_its_page_opened(look, box, tmp_path):
    holder = box.box.submit(["sleep", "60"], gpus=4, name="holder")
    number = box.box.submit(
        ["python3", "-c", TRAINING], gpus=2, name="train-small", cpus=1, directory="/"
    )
    page = look(box, at="#/jobs")
    row = page.locator(f'.tr[data-id="{number}"]')
    row.locator(".badge.waiting").wait_for()
    row.get_by_text("GPU").first.wait_for()  # the reason why it waits
    box.box.cancel(holder)
    row.locator(".badge.running").wait_for(timeout=20_000)
    row.get_by_role("link").click()
    page.get_by_role("heading", name="train-small").wait_for()
    page.locator(".output", has_text="loss").wait_for(timeout=15_000)
    page.locator(".progress-line", has_text="of 600 steps").wait_for(timeout=15_000)
    page.locator(".chart", has_text="Memory").wait_for(timeout=30_000)
    page.set_viewport_size({"width": DESK[0], "height": 1000})
    page.wait_for_timeout(9000)  # until there is a line to see
    picture(page, "job", tmp_path)
    page.locator(".heading .badge.done").wait_for(timeout=60_000)
    page.goto(f"{box.url}#/jobs")
    page.get_by_role("button", name="Ended").click()
    row.locator(".badge.done").wait_for()


def test_a_job_is_held_released_and_cancelled_by_hand(look, box):
    holder = box.box.submit(["sleep", "60"], gpus=4)
    number = box.box.submit(["sleep", "60"], gpus=4, name="by-hand")
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
        "what-if": "h1",
    }.items():
        page.goto(f"{small.url}#/{name}")
        page.locator(mark).first.wait_for()
        page.wait_for_timeout(300)
        if name == "jobs":
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
    for name in ("", "jobs", "users", "history", "policy", "what-if", "jobs/117"):
        page.goto(f"{small.url}#/{name}")
        page.wait_for_timeout(400)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0], name
    page.goto(f"{small.url}#/jobs")
    page.locator(".tr .badge").first.wait_for()
    picture(page, "phone", tmp_path)


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


def test_five_thousand_jobs_on_a_thousand_nodes_are_there_in_time(look, large, tmp_path):
    page = look(large)
    page.locator("canvas").wait_for()
    # Once more with a token: what people wait for in the morning.
    took = []
    for _ in range(3):
        begun = time.perf_counter()
        page.reload()
        page.locator("canvas").wait_for()
        took.append(time.perf_counter() - begun)
    assert min(took) < BUDGET, took
    picture(page, "large", tmp_path)
    page.goto(f"{large.url}#/jobs")
    begun = time.perf_counter()
    page.locator(".tr .badge").first.wait_for()
    assert time.perf_counter() - begun < BUDGET
    assert page.locator(".space .tr").count() < 100  # of thousands
    assert _slowest_frame(page) < 0.25


def _slowest_frame(page: Any) -> float:
    """Seconds between two frames while somebody scrolls through everything."""
    gaps = page.evaluate("""async () => {
        const list = document.querySelector(".scroll");
        const times = [];
        for (let step = 0; step < 60; step += 1) {
            list.scrollTop = (list.scrollHeight * step) / 60;
            times.push(await new Promise(requestAnimationFrame));
        }
        return times.slice(1).map((at, index) => at - times[index]).sort((a, b) => a - b);
    }""")
    return float(gaps[len(gaps) * 9 // 10]) / 1000


def test_the_map_of_many_nodes_is_walked_with_arrow_keys(look, large):
    page = look(large)
    page.locator("canvas").focus()
    card = page.locator(".chosen h3")
    first = card.inner_text()
    page.keyboard.press("ArrowRight")
    assert card.inner_text() != first
    page.keyboard.press("Home")
    assert card.inner_text() == first
    page.keyboard.press("End")
    page.locator(".chosen .badge", has_text="draining").wait_for()


def test_a_what_if_is_asked_and_its_answer_drawn(look, small, tmp_path):
    page = look(small, at="#/what-if")
    page.get_by_label("Policy").fill("srtf")
    page.get_by_role("button", name="Replay").click()
    page.locator(".result .tile").first.wait_for(timeout=60_000)
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
    page.locator(".td .soon").first.wait_for(timeout=60_000)
    page.locator(".space .tr a").first.click()
    page.locator(".facts dd", has_text="80 % sure").first.wait_for(timeout=60_000)
    page.get_by_role("heading", name="In front").wait_for()
    picture(page, "waiting", tmp_path)


def test_a_reader_looks_and_touches_nothing(look, box):
    number = box.box.submit(["sleep", "30"], gpus=1, name="not-yours")
    token = box.box.make_token(owner="guest", role="reader")
    page = look(Served(box.port, token, box.folder, box.box), at=f"#/jobs/{number}")
    page.get_by_text("Its owner and admins see what it writes.").wait_for()
    assert page.get_by_role("button", name="Cancel").count() == 0
    box.box.cancel(number)
