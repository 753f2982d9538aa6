"""`dovetail report`: one page about what really happened, that opens offline."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hosting import Hosted, until

from dovetail.live import Box


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosted]:
    with Hosted(tmp_path / "data") as made:
        monkeypatch.setenv("DOVETAIL_DATA_DIR", str(made.folder))
        monkeypatch.chdir(tmp_path)
        yield made


def test_it_tells_what_became_of_every_job(box: Box, dovetail: Callable[..., Any]) -> None:
    box.submit(["sleep", "0.3"], gpus=2, name="well")
    box.submit(["sh", "-c", "sleep 0.3; exit 3"], gpus=2, name="badly", retries=1)
    until(lambda: box.show(2).job.state == "failed")
    box.submit(["sleep", "600"], gpus=4, name="given up")
    until(lambda: box.show(3).job.state == "running")
    box.submit(["sleep", "600"], gpus=3, name="waits")
    box.cancel(3)
    until(lambda: box.show(3).job.state == "cancelled")
    until(lambda: box.show(4).job.state == "running")
    box.submit(["sleep", "600"], gpus=2, name="<i>still</i>")
    answer = dovetail("report", "--since", "1h")
    assert (answer.code, answer.out) == (0, "dovetail-report.html\n")
    assert "GPU-hours were wasted" in answer.err or "nothing was wasted" in answer.err
    page = Path("dovetail-report.html").read_text()
    assert "&lt;i&gt;still" in page and "<i>still" not in page
    assert "http" not in page.split("<script")[0].split("</style>")[1]
    told = json.loads(dovetail("report", "--since", "1h", "--json").out)
    assert (told["submitted"], told["done"], told["failed"], told["cancelled"]) == (5, 1, 1, 1)
    spent = {each["cause"]: each["gpu_hours"] for each in told["spent"]}
    assert spent["failed attempts"] > 2 * 0.6 / 3600
    assert spent["cancelled work"] > 0
    assert spent["used"] > 0
    span = told["until"] - told["since"]
    assert sum(spent.values()) == pytest.approx(4 * span / 3600, rel=0.02)
    still = [each for each in told["longest"] if each["still"]]
    assert [each["name"] for each in still] == ["<i>still</i>"]
    assert "GPU" in still[0]["why"]


@pytest.mark.usefixtures("host")
def test_a_controller_without_a_past_has_a_page_too(dovetail: Callable[..., Any]) -> None:
    answer = dovetail("report", "--out", "-")
    assert answer.code == 0
    assert "Nobody waited" in answer.out
    assert "nothing was wasted" in answer.err


@pytest.mark.usefixtures("host")
def test_where_it_cannot_be_written_is_said_first(dovetail: Callable[..., Any]) -> None:
    answer = dovetail("report", "--out", "no/such/folder.html")
    assert answer.code == 2
    assert "cannot be written" in answer.err
