"""The page for the weekly meeting in a real browser: both themes, no network, no errors."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dovetail.metrics.review import CANCELLED, FAILED, USEFUL, Asked, Held, review
from dovetail.report.week import html_week

ROOT = Path(__file__).resolve().parents[2]
WEEK, BEGIN = 7 * 86400.0, 1_794_000_000.0
CAUSES = {"done": USEFUL, "failed": FAILED, "cancelled": CANCELLED}


def week() -> str:
    """A made-up week on 16 GPUs."""
    draw, at, free = Random(3), BEGIN, [BEGIN] * 16
    jobs, runs = list[Asked](), list[Held]()
    for number in range(1, 150):
        at += draw.expovariate(1 / 3900)
        gpus, length = draw.choice((1, 1, 2, 4, 8)), draw.lognormvariate(9.3, 1)
        free.sort()
        start = max(at, free[gpus - 1])
        end = start + length
        free[:gpus] = [end] * gpus
        state = draw.choice(("done",) * 7 + ("failed", "cancelled"))
        user = draw.choice(("ann", "bob", "carol"))
        over = end if end < BEGIN + WEEK else None
        name = f"train-{number}"
        jobs.append(Asked(number, name, user, gpus, at, start, over, state if over else "running"))
        cause = CAUSES[state] if over else USEFUL
        lost = 0.0 if cause == USEFUL else length
        runs.append(Held(number, gpus, start, min(end, BEGIN + WEEK), cause, lost))
    return html_week(review(jobs, runs, BEGIN, BEGIN + WEEK, 16, "shared"))


@pytest.mark.real
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_of_the_week_opens_offline(browser: Any, tmp_path: Path, theme: str) -> None:
    file, said, asked = tmp_path / "week.html", list[str](), list[str]()
    file.write_text(week())
    page = browser.new_page(viewport={"width": 1000, "height": 800}, color_scheme=theme)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_selector("#plot-waste .main-svg")
    drawn = page.eval_on_selector_all(".plot .main-svg", "all => all.length")
    assert drawn >= 3
    width = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width[0] <= width[1], json.dumps(width)
    assert (said, asked) == ([], [file.as_uri()])
    if os.environ.get("DOVETAIL_PICTURES"):
        page.screenshot(path=ROOT / "docs" / "images" / f"report-week-{theme}.png")
    page.close()
