"""Every page as those need it who do not see it, or see it otherwise: checked by axe.

Names, roles, contrast in both themes, what can be scrolled by keyboard, headings in order. What a
machine cannot check is in the other tests: that all is reached with the keyboard alone.
"""

from __future__ import annotations

from typing import Any

import pytest
from looking import DESK, PHONE, complaints
from served import Served

pytestmark = pytest.mark.real


def pages_of(page: Any) -> list[str]:
    """All that the navigation offers."""
    found: list[str] = page.eval_on_selector_all(
        "nav[aria-label=Pages] a", "all => all.map(a => a.hash)"
    )
    return found


def checked(page: Any, served: Served, addresses: list[str]) -> str:
    """All complaints, a line each."""
    found = list[str]()
    for address in addresses:
        page.goto(served.url + address)
        page.wait_for_selector(".page h1")
        page.wait_for_timeout(700)
        found += [f"{address}: {said}" for said in complaints(page)]
    return "\n".join(found)


@pytest.mark.parametrize(("theme", "size"), [("light", DESK), ("dark", DESK), ("dark", PHONE)])
def test_no_page_keeps_anybody_out(look, small, theme, size):
    page = look(small, theme, size)
    addresses = pages_of(page)
    assert len(addresses) >= 7
    waiting = next(job for job in small.ask("board")["jobs"] if not job.get("places"))
    said = checked(page, small, [*addresses, f"#/jobs/{waiting['id']}", "#/jobs/117"])
    assert not said, said


def test_the_way_in_keeps_nobody_out(browser, small):
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(small.url)
        page.wait_for_selector("#token")
        assert complaints(page) == []
