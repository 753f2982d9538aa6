"""A controller for each need, and a browser to look with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from looking import Looking
from served import Served, crowded, real
from staging import Stage

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
FLAGS = ("--no-sandbox", "--disable-quic", "--disable-sync", "--disable-background-networking")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.site.close()


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with real(tmp_path_factory.mktemp("box") / "data") as served:
        yield served


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with crowded(tmp_path_factory.mktemp("small"), "12x8,cpus=96,mem=1024", 135, 6) as served:
        yield served


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with crowded(tmp_path_factory.mktemp("large"), "1000x8,cpus=96,mem=1024", 5000, 0.2) as served:
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if BROWSER is None:
        pytest.skip("needs chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=BROWSER, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def look(browser: Any) -> Iterator[Looking]:
    """Opens pages and logs in; at the end nothing may have complained."""
    looking = Looking(browser)
    yield looking
    looking.close()
    assert looking.said == []
