"""A person at a browser: opens a page, logs in, and takes pictures of it.

The pictures of the README and the guide are taken here. They are replaced only where
`DOVETAIL_PICTURES` is set, so that a test run leaves the working tree as it is.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from hosting import PATIENCE
from served import Served

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SHOWN = {
    "cluster-light",
    "cluster-dark",
    "jobs-dark",
    "job",
    "large",
    "phone",
    "what-if-answer",
    "waiting",
    "resized",
    "report",
    "shadow",
    "tenants",
}
"""Pictures that pages of the documentation show."""
DESK, PHONE = (1280, 800), (390, 844)

TRAINING = """
import time, dovetail_client as client
for step in client.steps(range(600), total=600):
    if step % 40 == 0:
        print(f"step {step:4d}  loss {3.2 / (1 + step / 60):.4f}", flush=True)
    time.sleep(0.05)
"""


class Looking:
    """Opens pages; what any of them complains of is in `said`."""

    def __init__(self, browser: Any) -> None:
        self.said: list[str] = []
        self._browser = browser
        self._contexts: list[Any] = []

    def __call__(
        self, served: Served, theme: str = "light", size: tuple[int, int] = DESK, at: str = ""
    ) -> Any:
        """A page of a controller, after logging in."""
        context = self._browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=theme, locale="en-GB"
        )
        self._contexts.append(context)
        context.set_default_timeout(1000 * PATIENCE)
        page = context.new_page()
        page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        page.on("request", lambda request: self._only(served, request.url))
        page.on("dialog", lambda dialog: self.said.append(f"dialog: {dialog.message}"))
        page.goto(served.url + at)
        page.fill("#token", served.token)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_selector("header.top:not([hidden])")
        page.wait_for_selector(".link-state[data-state=live]")
        return page

    def _only(self, served: Served, url: str) -> None:
        """Everything comes from the controller itself."""
        if not url.startswith(served.url):
            self.said.append(f"asked elsewhere: {url}")

    def close(self) -> None:
        """Nobody looks any more."""
        for context in self._contexts:
            context.close()


def picture(page: Any, name: str, folder: Path) -> None:
    """A screenshot; both themes must show something."""
    wanted = os.environ.get("DOVETAIL_PICTURES") and name in SHOWN
    keep = IMAGES if wanted else folder
    path = keep / f"dashboard-{name}.png"
    page.screenshot(path=path)
    assert path.stat().st_size > 10_000


def complaints(page: Any) -> list[str]:
    """What axe finds: rule, what is wrong, and the first place of it."""
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['help']}: {node['html'][:160]}"
        for each in found
        for node in each["nodes"][:2]
    ]
