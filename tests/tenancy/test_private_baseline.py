"""What sharing costs: every shared run is compared with private clusters, tenant by tenant."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from dovetail.cli.tables import result_tables
from dovetail.metrics.records import Run
from dovetail.metrics.summary import summarise
from dovetail.report.html import html_report
from dovetail.simulator.experiment import Replay, replay

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "guarantees"


def result(tenancy: str | None) -> dict:
    return summarise(replayed(tenancy))


def replayed(tenancy: str | None) -> Run:
    kind = None if tenancy is None else f"{tenancy}:{FOLDER / 'tenants.toml'}"
    return replay(
        Replay(
            str(FOLDER / "jobs.csv"),
            "2x4",
            "fifo:skip=true",
            placement="consolidated:fit=best",
            restart_cost=0.0,
            tenancy=kind,
        )
    )


def printed(found: dict) -> str:
    console = Console(width=80, record=True, file=io.StringIO())
    for table in result_tables(found):
        console.print(table)
    return console.export_text()


def test_by_number_a_tenant_waits_for_what_it_owns() -> None:
    found = result("shares")
    vision = found["tenants"]["vision"]
    assert (vision["private_wait"], vision["excess_wait"], vision["worst_excess"]) == (0, 80, 80)
    assert "+1 min 20 s" in printed(found)


def test_with_cells_none_waits_longer() -> None:
    found = result("cells")
    assert [figures["excess_wait"] for figures in found["tenants"].values()] == [0, 0]
    assert "Every tenant waited exactly as long as in a private cluster." in printed(found)


def test_the_smallest_of_many_tenants_is_not_forgotten() -> None:
    found = result("shares")
    alike = {"jobs": 100, "mean_wait": 0.0, "excess_wait": 0.0}
    found["tenants"] |= {f"large{number}": alike for number in range(20)}
    said = printed(found)
    assert "+1 min 20 s" in said and "21 more tenants waited exactly as long." in said


def test_the_page_has_every_tenant_and_policy() -> None:
    runs = [(f"by {kind}", replayed(kind)) for kind in ("shares", "cells")]
    page = html_report(runs).partition("Mean wait beyond that in a private cluster")[2]
    for tenant, waits in {"vision": ("+1 min 20 s", "0 s"), "speech": ("0 s", "0 s")}.items():
        row = f'<th scope="row">{tenant}</th><td>{waits[0]}</td><td>{waits[1]}</td>'
        assert row in page
    assert "beyond that in a private cluster" not in html_report([("fifo", replayed(None))])


@pytest.mark.parametrize("tenancy", ["private", None])
def test_what_is_not_shared_is_not_compared(tenancy: str | None) -> None:
    found = result(tenancy)
    assert "excess_wait" not in found["tenants"]["vision"]
    assert "private cluster" not in printed(found)


def test_the_example_of_the_guide_prints_and_draws_the_anomaly(tmp_path: Path) -> None:
    picture = tmp_path / "anomaly.svg"
    command = [sys.executable, str(FOLDER / "anomaly.py"), "--svg", str(picture)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    number, cells = run.stdout.split("by cells")
    assert "vision-1  100-130 on n0" in number
    assert "vision-1  20-50 on n1" in cells
    committed = FOLDER.parents[1] / "docs" / "images" / "sharing-anomaly.svg"
    assert picture.read_text() == committed.read_text()


def test_the_comparison_of_tenants_runs_on_a_made_up_workload() -> None:
    command = [
        sys.executable,
        str(FOLDER / "tenants.py"),
        "--quick",
        "--policies",
        "fifo",
        "synergy",
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    fifo, synergy = run.stdout.splitlines()[2:]
    assert fifo.split()[:4] == ["fifo", "1", "of", "3"] and " none " in fifo
    assert "say how much a node has" in synergy, "what a policy misses is its line"
