"""What tenants own is remembered by what was written, not by where."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.controller.machines import Remembered
from dovetail.controller.parts import Parts, composer, read_parts
from dovetail.model.errors import UserError
from dovetail.model.node import Capabilities
from dovetail.simulator.spec import parse_cluster
from dovetail.tenancy.kinds import chosen, read_tenants

TENANTS = """
[[tenants]]
name = "vision"
nodes = 1
gpus = [2, 1]

[[tenants]]
name = "speech"
own = [{gpus = 3}]
"""


@pytest.fixture
def written(tmp_path: Path) -> str:
    """Parts that go by a file that is not there any more."""
    path = tmp_path / "tenants.toml"
    path.write_text(TENANTS)
    parts = Parts("fifo", tenancy=chosen(f"cells:{path}").written())
    path.unlink()
    return parts.written()


def machines(text: str) -> Remembered:
    cluster = parse_cluster(text)
    return Remembered(tuple(cluster.nodes), {"gpu": Capabilities()})


def test_tenants_are_composed_when_their_file_is_gone(written: str) -> None:
    made = composer(read_parts(written), machines("3x4"))()
    assert list(made.tenancy.domains) == ["vision", "speech", "lent"]
    assert [made.tenancy.view(domain).gpus for domain in range(3)] == [7, 3, 12]


def test_what_was_written_is_read_as_it_was(written: str) -> None:
    text = read_parts(written).tenancy
    tenants = read_tenants(text)
    assert tenants is not None
    assert tenants.written() == text
    assert tenants.contracts[0].own[0].gpus == (2, 1)


def test_cells_that_are_not_there_are_refused_with_their_line(written: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as error:
        composer(read_parts(written), machines("1x4"))()
    said = "vision asks for 1 cell of 2 GPUs of gpu; 0 are left after vision (1 node of gpu)"
    assert str(error.value) == f"{tmp_path}/tenants.toml:5: {said}"


def test_private_clusters_are_not_for_real_machines(tmp_path: Path) -> None:
    path = tmp_path / "tenants.toml"
    path.write_text(TENANTS)
    parts = Parts("fifo", tenancy=chosen(f"private:{path}").written())
    with pytest.raises(UserError, match="private clusters are for simulations"):
        composer(parts, machines("3x4"))()
