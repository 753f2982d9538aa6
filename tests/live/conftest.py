"""A controller for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hosting import Hosted

from dovetail.live import Box


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Hosted]:
    with Hosted(tmp_path / "data") as made:
        yield made


@pytest.fixture
def box(host: Hosted) -> Iterator[Box]:
    with host.box() as made:
        yield made
