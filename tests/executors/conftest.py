"""Rigs of the local engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from local_rig import KINDS, LocalRig, local_rig


@pytest.fixture(params=list(KINDS))
def fenced(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalRig]:
    """Under every kind of fence."""
    with local_rig(tmp_path, request.param) as rig:
        yield rig


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalRig]:
    """Under the best fence there is."""
    with local_rig(tmp_path, "best") as rig:
        yield rig
