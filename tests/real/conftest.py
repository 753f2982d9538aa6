"""A Slurm cluster for a whole run of the tests, in order again before each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from slurm_lab import NoLab, Shape, SlurmLab, slurm_lab


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def large() -> Iterator[SlurmLab]:
    """Eight nodes of four GPUs, 12 cores and 128 GiB."""
    try:
        with slurm_lab(Shape(nodes=8, gpus=4, cpus=12, memory=131072)) as lab:
            yield lab
    except NoLab as reason:
        pytest.skip(str(reason))
