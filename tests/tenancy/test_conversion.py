"""From a configuration of HiveD to a cluster file, which then runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dovetail.simulator.experiment import Replay, replay

HIVED = """
physicalCluster:
  cellTypes:
    A100-PAIR: {childCellType: A100, childCellNumber: 2}
    A100-NODE: {childCellType: A100-PAIR, childCellNumber: 2, isNodeLevel: true}
    A100-RACK: {childCellType: A100-NODE, childCellNumber: 2}
    T4-NODE: {childCellType: T4, childCellNumber: 2, isNodeLevel: true}
  physicalCells:
    - {cellType: A100-RACK, cellChildren: [{cellAddress: a0}, {cellAddress: a1}]}
    - cellType: A100-RACK
      cellChildren: [{cellAddress: a2}, {cellAddress: a3, pinnedCellId: mine}]
    - {cellType: T4-NODE, cellAddress: t0}
virtualClusters:
  vision:
    virtualCells:
      - {cellType: A100-RACK, cellNumber: 1}
      - {cellType: T4-NODE.T4, cellNumber: 2}
  speech:
    virtualCells: [{cellType: A100-RACK.A100-NODE.A100-PAIR, cellNumber: 2}]
    pinnedCells: [{pinnedCellId: mine}]
"""
OURS = """[[nodes]]
count = 4
gpus = 4
type = "A100"
rack = 2

[[nodes]]
count = 1
gpus = 2
type = "T4"

[[tenants]]
name = "vision"
own = [{ type = "A100", racks = 1 }, { type = "T4", gpus = [1, 1] }]

[[tenants]]
name = "speech"
own = [{ type = "A100", gpus = [2, 2] }]
pinned = ["n3"]  # mine
"""

Command = Callable[..., Any]


def test_a_configuration_of_hived_becomes_a_cluster_file_that_runs(
    tmp_path: Path, dovetail: Command
) -> None:
    source, target, jobs = (tmp_path / name for name in ("hived.yaml", "ours.toml", "jobs.csv"))
    source.write_text(HIVED)
    answer = dovetail("tenants", "convert", source, "--out", target)
    assert answer.code == 0, answer.err
    assert target.read_text() == OURS
    jobs.write_text(
        "job_id,submit_time,gpus,duration,tenant,gpu_type\n"
        "a,0,8,5,vision,A100\nb,0,4,5,speech,A100\nc,0,2,5,speech,A100\nd,0,1,5,vision,T4\n"
    )
    run = replay(Replay(str(jobs), str(target), "fifo", tenancy="cells", restart_cost=0))
    assert list(run.records.first_start) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "A100-RACK, cellNumber: 1",
            "A100-RACK, cellNumber: 2",
            "FILE:19: speech asks for 1 cell of type A100-NODE; 0 are left after vision (2 cells "
            "of type A100-RACK)",
        ),
        (
            "T4-NODE.T4, cellNumber: 2",
            "T4-NODE.T4, cellNumber: 3",
            "FILE:17: vision asks for 3 cells of type T4; there are 2",
        ),
        (
            "childCellType: A100-PAIR, childCellNumber: 2",
            "childCellType: A100-PAIR, childCellNumber: 3",
            "FILE: speech owns A100-PAIR of 2 GPUs; our nodes are not divided like that",
        ),
        ("virtualClusters:", "tenants:", "FILE:2: virtualClusters is missing"),
        ("childCellType: T4, ", "", "FILE:7: childCellType is missing"),
        (
            "cellNumber: 2}]",
            "cellNumber: two}]",
            "FILE:19: cellNumber is 'two'; it must be a whole number",
        ),
        ("T4-NODE, cellAddress", "T4-NOD, cellAddress", "FILE:12: no cell type is called 'T4-NOD'"),
        (
            "{cellAddress: a0}, ",
            "",
            "FILE:9: 0 lists 1 children; A100-RACK has 2",
        ),
        (
            "T4, childCellNumber: 2, isNodeLevel: true",
            "T4, childCellNumber: 2",
            "FILE:7: cell type",
        ),
        (
            "s: [{pinnedCellId: mine}]",
            "s: [{pinnedCellId: x}]",
            "FILE:19: no cell is pinned as 'x'",
        ),
        ("physicalCluster:", "- [", "FILE:4: not YAML: expected"),
        ("[{pinnedCellId: mine}]", "mine", "FILE:19: pinnedCells is 'mine'; it must be a list"),
        ("[{pinnedCellId: mine}]", "[mine]", "FILE:19: each of pinnedCells must be a table, not"),
        ("[{cellAddress: a0}, ", "[a0, ", "FILE:9: a physical cell must be a table, not 'a0'"),
        (
            "{childCellType: T4, childCellNumber: 2, isNodeLevel: true}",
            "[T4]",
            "FILE:4: T4-NODE must be a table, not ['T4']",
        ),
        (
            "A100-NODE, childCellNumber: 2",
            "A100-NODE, childCellNumber: 1000000000",
            "FILE:6: a cell of type 'A100-RACK' has 4000000000 devices; 1000000 is most",
        ),
        (
            "A100-RACK, cellNumber: 1",
            "A100-RACK, cellNumber: -1",
            "FILE:16: vision asks for -1 cells of type A100-RACK; there are 2",
        ),
        ("  speech:", "  idle: {}\n  speech:", "FILE:18: idle owns nothing; ours own something"),
        ("[{pinnedCellId: mine}]", "[" * 9999, "FILE: cells are in too many others"),
    ],
)
def test_what_cannot_be_converted_is_said(
    tmp_path: Path, dovetail: Command, old: str, new: str, said: str
) -> None:
    source = tmp_path / "hived.yaml"
    assert old in HIVED
    source.write_text(HIVED.replace(old, new))
    answer = dovetail("tenants", "convert", source)
    assert answer.code == 2
    found = " ".join(answer.err.split()).replace(str(source), "FILE")
    assert found.startswith(f"dovetail: {said}"), found
