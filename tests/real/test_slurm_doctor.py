"""What the doctor says of a healthy cluster, and of one that is not."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from slurm_lab import SlurmLab

from dovetail.executors.slurm.commands import CommandLine
from dovetail.executors.slurm.doctor import Finding, Verdict, examine
from dovetail.executors.slurm.options import Options

pytestmark = pytest.mark.real


def findings(lab: SlurmLab, options: Options | None = None, ahead: float = 0) -> dict[str, Finding]:
    def wall() -> datetime:
        return datetime.now() + timedelta(seconds=ahead)

    found = examine(lab.folder / "data", options or Options(), CommandLine(), wall)
    return {each.about: each for each in found}


def test_a_healthy_cluster_is_found_healthy(lab: SlurmLab) -> None:
    found = findings(lab)
    assert found["GPUs"].found == "4 nodes in partition all, 16 GPUs (v100)"
    assert found["data folder"].found == f"nodes can write {lab.folder / 'data'}"
    assert {"commands", "version", "slurmctld", "clock", "gangs", "submitting"} <= found.keys()
    assert {name for name, each in found.items() if each.verdict is Verdict.WRONG} == set()
    assert {name for name, each in found.items() if each.verdict is Verdict.WEAK} <= {"owners"}


def test_what_is_wrong_comes_with_what_to_do(
    lab: SlurmLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert findings(lab, ahead=3600)["clock"].advice == "synchronise the clocks (chrony, ntp)"
    lab.call("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=fan")
    assert findings(lab)["closed nodes"].found == "n2 (fan)"
    told = findings(lab, Options(partition="moon"))["slurmctld"]
    assert told.found == "partition moon has no nodes; there are all, half"
    refused = findings(lab, Options(reservation="nobody's"))["submitting"]
    assert (refused.verdict, "reservation" in refused.found.lower()) == (Verdict.WRONG, True)
    monkeypatch.setenv("PATH", str(lab.folder))
    assert [each.about for each in findings(lab).values()] == ["commands"]


def test_a_folder_that_cannot_be_used_is_noticed(lab: SlurmLab) -> None:
    found = list(examine(Path("/proc/nowhere"), Options(), CommandLine(), datetime.now))[-1]
    assert (found.about, found.verdict) == ("data folder", Verdict.WRONG)
    assert found.advice.startswith("choose one on a file system that nodes and this machine share")
