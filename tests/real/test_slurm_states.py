"""What goes wrong on a cluster, as people see it: every job in the right state, with a reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from slurm_driven import Driven, driven
from slurm_lab import SlurmLab
from slurm_workload import Task

from dovetail.controller.reading import machines

pytestmark = pytest.mark.real

LONG, SHORT = Task(1, 400), Task(1, 2)


@pytest.fixture
def site(lab: SlurmLab, monkeypatch: pytest.MonkeyPatch) -> Iterator[Driven]:
    with driven(lab, monkeypatch, 0.2) as found:
        yield found


def node_of(site: Driven, number: int) -> str:
    return site.told(number).places[0].node


def slurm_job(lab: SlurmLab, name: str) -> str:
    return lab.call("squeue", "-h", "--states=all", "-n", name, "-o", "%i").split()[0]


def test_a_job_cancelled_behind_our_back_has_failed_and_says_why(
    site: Driven, lab: SlurmLab
) -> None:
    site.submit([LONG])
    site.state(1, "running")
    lab.call("scancel", slurm_job(lab, "t1"))
    told = site.state(1, "failed")
    assert told.reason == "cancelled in Slurm by somebody else"


def test_a_job_whose_node_is_lost_runs_again_elsewhere(site: Driven, lab: SlurmLab) -> None:
    site.submit([Task(1, 40)])
    site.state(1, "running")
    lost = node_of(site, 1)
    lab.kill(lost)
    try:
        lab.call("scontrol", "update", f"NodeName={lost}", "State=DOWN", "Reason=gone")
        lab.clear(lost)
        site.until(lambda: site.told(1).state != "running")
        assert f"ended by Slurm: node fail on {lost}" in site.told(1).reason
        site.state(1, "running")
        assert node_of(site, 1) != lost
        site.state(1, "done")
    finally:
        lab.start_node(lost)


def test_nothing_new_starts_on_a_node_that_was_drained(site: Driven, lab: SlurmLab) -> None:
    lab.call("scontrol", "update", "NodeName=n1", "State=DRAIN", "Reason=fans")
    closed = site.controller.scheduler.cluster.closed
    site.until(lambda: 0 in closed)
    site.submit([Task(4, 40)] * 4)
    site.until(lambda: len(site.started) == 3)
    assert {node_of(site, number) for number in site.started} == {"n2", "n3", "n4"}
    assert [each.name for each in machines(site.controller) if each.state != "open"] == ["n1"]
    lab.call("scontrol", "update", "NodeName=n1", "State=RESUME")
    site.until(lambda: len(site.started) == 4)


def test_jobs_of_others_are_placed_around_and_outlive_ours(site: Driven, lab: SlurmLab) -> None:
    for name in ("n1", "n2", "n3"):
        lab.call(
            "sbatch", "-w", name, "--gres=gpu:3", "--mem=100", "-J", "theirs", "-o", "/dev/null",
            "--wrap", "sleep 300",
        )  # fmt: skip
    site.until(lambda: sum(site.controller.scheduler.cluster.free) == 16 - 9)
    # The first is looked at when all have started, however long that takes.
    site.submit([Task(3, 100), Task(1, 4), Task(1, 4), Task(1, 4), Task(1, 4)])
    site.until(lambda: len(site.started) == 5)
    assert node_of(site, 1) == "n4"
    site.until(lambda: not site.controller.roster)
    states = lab.call("squeue", "-h", "-n", "theirs", "-o", "%T").split()
    assert states == ["RUNNING"] * 3


def test_a_restart_of_slurmctld_loses_nothing(site: Driven, lab: SlurmLab) -> None:
    site.submit([Task(2, 24), Task(2, 24)])
    site.until(lambda: len(site.started) == 2)
    lab.end_controller()
    site.submit([SHORT])
    lab.start_controller()
    for number in (1, 2, 3):
        assert site.state(number, "done", "failed").state == "done"


def test_what_slurm_refuses_is_the_reason_of_the_failure(site: Driven) -> None:
    site.submit([Task(1, 1)], SBATCH_QOS="golden", SBATCH_PARTITION="nowhere")
    told = site.state(1, "failed")
    assert told.reason.startswith("could not start: ")
    assert "partition" in told.reason
