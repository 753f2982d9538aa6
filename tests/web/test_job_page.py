"""The page of one job in a real browser: every grant it had, and the log of every attempt."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hosting import until
from looking import TRAINING, picture
from served import Served, real

pytestmark = pytest.mark.real

TWICE = """
import os, sys, time
print("this is attempt", os.environ["DOVETAIL_ATTEMPT"], flush=True)
if os.environ["DOVETAIL_ATTEMPT"] == "1":
    sys.exit(3)
for step in range(400):
    print("still here", step, flush=True)
    time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A controller that shares CPU and memory out by need."""
    folder = tmp_path_factory.mktemp("tuned") / "data"
    with real(folder, "--policy", "synergy") as served:
        yield served


def training(served: Served, name: str) -> int:
    wanted = {"gpus": 1, "name": name, "model": "shufflenet", "directory": "/"}
    return served.box.submit(["python3", "-c", TRAINING], **wanted)


def test_every_resize_of_a_running_job_is_on_its_page(look, tuned, tmp_path):
    first = training(tuned, "resized")

    def back() -> bool:
        """Has it fewer cores for a while, and then as many as at first?"""
        held = [each.places[0].cpu for each in tuned.box.timeline(first) if each.places]
        return held[0] == held[-1] > min(held)

    page = look(tuned, at=f"#/jobs/{first}")
    steps = page.locator(".steps li")
    steps.filter(has_text="runs").first.wait_for()
    second = training(tuned, "newcomer")
    steps.filter(has_text="now with").first.wait_for()
    page.get_by_role("img", name="Cores granted").wait_for()
    tuned.box.cancel(second)
    # Alone again it has as much as in the beginning: both resizes are told, without a reload; and
    # more where others use less or more of the machine's memory meanwhile.
    until(back)
    steps.filter(has_text="now with").nth(1).wait_for()
    page.wait_for_timeout(3000)  # until there is something to see of it
    page.set_viewport_size({"width": 1280, "height": 900})
    picture(page, "resized", tmp_path)
    tuned.box.cancel(first)
    # What it had can be read when it is over, too.
    page.locator(".heading .badge.cancelled").wait_for()
    assert steps.filter(has_text="now with").count() >= 2
    assert page.locator(".grants .chart").count() >= 1


def test_the_log_of_any_attempt_is_read_while_the_latest_goes_on(look, box):
    number = box.box.submit(["python3", "-c", TWICE], gpus=1, name="twice", retries=1)
    page = look(box, at=f"#/jobs/{number}")
    output = page.locator(".output")
    output.get_by_text("this is attempt 2").wait_for()
    which = page.get_by_label("Attempt", exact=True)
    which.select_option("1")
    page.get_by_text("attempt 1, over").wait_for()
    assert output.inner_text().strip() == "this is attempt 1"
    which.select_option("0")
    output.get_by_text("still here").wait_for()
    seen = int(output.inner_text().split()[-1])
    output.get_by_text(f"still here {seen + 15}").wait_for()
    box.box.cancel(number)
    page.locator(".heading .badge.cancelled").wait_for()


def test_others_see_what_a_job_held_and_not_what_it_wrote(look, box):
    number = box.box.submit(["sleep", "600"], gpus=1, name="private")
    token = box.box.make_token(owner="guest", role="reader")
    page = look(Served(box.port, token, box.folder, box.box), at=f"#/jobs/{number}")
    page.locator(".steps li", has_text="GiB").first.wait_for()
    page.get_by_text("Its owner and admins see what it writes.").wait_for()
    box.box.cancel(number)
