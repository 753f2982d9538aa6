"""Tenants on a real Slurm cluster: owners take their nodes back, and who borrowed goes on later."""

from __future__ import annotations

from pathlib import Path

import pytest
from hosting import PATIENCE, Hosted, told_by, until
from slurm_lab import SlurmLab

from dovetail.controller.opening import slurm
from dovetail.controller.parts import Parts
from dovetail.executors.slurm import Options
from dovetail.tenancy.contracts import contracts_in
from dovetail.tenancy.kinds import Tenants

pytestmark = pytest.mark.real

OWNERS = """
[[tenants]]
name = "vision"
nodes = 2

[[tenants]]
name = "speech"
nodes = 1
"""


def test_owners_take_their_nodes_back_and_others_own_them_later(
    lab: SlurmLab, tmp_path: Path
) -> None:
    tenancy = Tenants("cells", contracts_in(OWNERS, "tenants.toml")).written()
    parts = Parts("fifo:skip=true", tenancy=tenancy)
    engine = slurm(Options(interval=0.3))
    with Hosted(tmp_path / "data", engine, parts) as host, host.box() as box:

        def state(number: int) -> str:
            return box.show(number).job.state

        lent = [
            box.submit(
                ["sh", "-c", told_by(tmp_path / "on")], gpus=4, cpus=1, borrow=True, resumable=True
            )
            for _ in range(4)
        ]
        until(lambda: all(state(number) == "running" for number in lent))
        owned = {each.name: each.lent for each in box.tenants().tenants}
        assert owned == {"vision": 8, "speech": 4}
        own = box.submit(["sleep", "600"], gpus=8, cpus=2, tenant="vision")
        until(lambda: state(own) == "running")
        assert sorted(map(state, lent)) == ["running", "running", "waiting", "waiting"]
        stopped = [number for number in lent if state(number) == "waiting"]
        assert "their owner vision" in box.why(stopped[0]).stopped

        # speech is to own what vision has: its job runs on.
        box.apply_tenants(OWNERS.replace("nodes = 2", "nodes = 1"))
        job = box.show(own).job
        assert (job.state, job.attempts) == ("running", 1)
        assert {loan.job for loan in box.tenants().loans} >= {own}
        box.cancel(own)
        (tmp_path / "on").touch()
        assert [box.wait(number, PATIENCE).state for number in lent] == ["done"] * 4
