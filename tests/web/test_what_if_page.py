"""The page of a what-if in a real browser: both themes, a phone, no network, no errors."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
QUESTION = ("what-if", "generate:philly,load=4", "--cluster", "20x8", "--policy", "srtf")
PLOTS = ("delays", "pairs", "jct", "waits", "users", "sizes", "use", "queue")


@pytest.mark.real
@pytest.mark.parametrize(("theme", "width"), [("light", 1000), ("dark", 1000), ("dark", 390)])
def test_every_plot_is_drawn_offline(
    browser: Any, tmp_path: Path, dovetail: Callable[..., Any], theme: str, width: int
) -> None:
    file, said, asked = tmp_path / "what-if.html", list[str](), list[str]()
    answer = dovetail(*QUESTION, "--html", file)
    assert answer.code == 0, answer.err
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    for key in PLOTS:
        page.wait_for_selector(f"#plot-{key} .main-svg .trace", state="attached")
    across, wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert across <= wide
    before = page.eval_on_selector_all("#plot-jct .scatterlayer .trace", "all => all.length")
    page.click(".legend button >> nth=1")
    after = page.eval_on_selector_all("#plot-jct .scatterlayer .trace", "all => all.length")
    assert (before, after) == (2, 1)
    page.click(".legend button >> nth=1")
    assert (said, asked) == ([], [file.as_uri()])
    if os.environ.get("DOVETAIL_PICTURES") and width > 600:
        page.mouse.move(0, 0)
        page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        page.screenshot(
            path=ROOT / "docs" / "images" / f"what-if-{theme}.png",
            full_page=True,
            clip={"x": 0, "y": 0, "width": width, "height": 1260},
        )
    page.close()
