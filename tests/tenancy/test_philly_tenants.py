"""Three days of Philly with its eleven tenants, on an eighth of their nodes, each fourth job lent.

With cells nobody waits longer than in a private cluster, whatever the policy inside the tenants;
by number somebody does. `examples/guarantees/tenants.py` prints the figures.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dovetail.metrics.summary import summarise
from dovetail.orderings import BUILTIN
from dovetail.recipes import RECIPES
from dovetail.simulator.experiment import Replay, replay
from dovetail.traces.loader import load
from dovetail.traces.writer import write

TRACES = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"
pytestmark = [pytest.mark.real, pytest.mark.shared]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """The jobs with borrowers among them, and who owns what."""
    if not TRACES.is_dir():
        pytest.skip("the public traces are not beside the project (../shared/data/traces)")
    folder = tmp_path_factory.mktemp("philly")
    loaded = load(str(TRACES / "philly_82k.csv.gz"), start="2017-10-01", stop="2017-10-04")
    jobs = [
        job._replace(spec=job.spec._replace(priority=-1.0 if job.spec.id % 4 == 0 else 0.0))
        for job in loaded.jobs
    ]
    write(replace(loaded, jobs=jobs), str(folder / "jobs.csv"))
    (folder / "tenants.csv").write_text("\n".join(["name,nodes", *_owners()]) + "\n")
    return str(folder / "jobs.csv"), str(folder / "tenants.csv")


def _owners() -> list[str]:
    lines = (TRACES / "philly_vc_nodes.csv").read_text().splitlines()[1:]
    return [f"{name},{int(nodes) // 8}" for name, nodes in (line.split(",") for line in lines)]


def waits(files: tuple[str, str], kind: str, policy: str) -> list[dict[str, Any]]:
    """Of each tenant with jobs of its own, how it fared against a private cluster."""
    jobs, tenants = files
    settings = Replay(
        jobs,
        "44x8,cpus=64,mem=512",
        policy,
        placement="consolidated:fit=best",
        tenancy=f"{kind}:{tenants}",
        restart_cost=0.0,
        stop_cost=0.0,
    )
    found = summarise(replay(settings))["tenants"].values()
    return [each for each in found if "excess_wait" in each]


@pytest.mark.parametrize("policy", [*BUILTIN, *RECIPES])
def test_with_cells_no_tenant_waits_longer_than_alone(files: tuple[str, str], policy: str) -> None:
    found = waits(files, "cells", policy)
    assert len(found) >= 9
    assert any(each["private_wait"] > 1000 for each in found), "somebody waits at all"
    assert [each["worst_excess"] for each in found] == [0.0] * len(found)


def test_by_number_somebody_does(files: tuple[str, str]) -> None:
    assert max(each["excess_wait"] for each in waits(files, "shares", "fifo")) > 10
