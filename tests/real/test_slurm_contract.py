"""The Slurm engine keeps the promises of all engines, on a real cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from executor_contract import ExecutorContract
from slurm_lab import SlurmLab
from slurm_rig import SlurmRig

pytestmark = pytest.mark.real


class TestSlurm(ExecutorContract):
    @pytest.fixture
    def rig(self, lab: SlurmLab) -> Iterator[SlurmRig]:
        rig = SlurmRig(lab)
        yield rig
        rig.close()
