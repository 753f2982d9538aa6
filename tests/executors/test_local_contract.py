"""The local engine keeps the promises of all engines, under the best fence and under none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from executor_contract import ExecutorContract
from local_rig import LocalRig, local_rig


class TestLocal(ExecutorContract):
    @pytest.fixture(params=["best", "none"])
    def rig(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalRig]:
        with local_rig(tmp_path, request.param) as rig:
            yield rig
