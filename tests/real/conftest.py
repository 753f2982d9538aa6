"""A Slurm cluster for each module of tests, in order again before each test.

Not for all of them: restarts of slurmctld may leave GPUs counted as used.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from slurm_lab import NoLab, Shape, SlurmLab, slurm_lab


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmLab]:
    """Four nodes of four GPUs."""
    try:
        with slurm_lab() as lab:
            yield lab
    except NoLab as reason:
        pytest.skip(str(reason))


@pytest.fixture
def lab(cluster: SlurmLab, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmLab]:
    """The same, with nothing on it, and found by whoever asks for Slurm's configuration."""
    monkeypatch.setenv("SLURM_CONF", str(cluster.conf))
    yield cluster
    cluster.quiet()


@pytest.fixture(scope="module")
def large() -> Iterator[SlurmLab]:
    """Eight nodes of four GPUs, 12 cores and 128 GiB, with no jobs to remember."""
    try:
        with slurm_lab(Shape(nodes=8, gpus=4, cpus=12, memory=131072)) as lab:
            yield lab
    except NoLab as reason:
        pytest.skip(str(reason))
