"""Jobs land where they were planned, as whom they were submitted, and beside those of others."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator

import pytest
from executor_contract import Ended, Running, until
from slurm_lab import SlurmLab
from slurm_rig import FIRST, QUICK, SlurmRig

from dovetail.executors.protocol import Attempt
from dovetail.executors.slurm import Options, Slurm
from dovetail.model.allocation import NOTHING, Part, allocation_of
from dovetail.model.errors import UserError
from dovetail.model.node import Node

pytestmark = pytest.mark.real


@pytest.fixture
def slurm(lab: SlurmLab) -> Iterator[SlurmRig]:
    rig = SlurmRig(lab)
    yield rig
    rig.close()


def held(rig: SlurmRig, job: dict[str, str]) -> tuple[str, str, str, str]:
    return job["NodeList"], job["NumCPUs"], job["MinMemoryNode"], job["TresPerNode"]


def test_nodes_are_what_slurm_says_they_are(slurm: SlurmRig) -> None:
    assert slurm.executor.nodes[2] == Node("n3", 4, 8000, 32768, "v100", labels=("fast", "lab"))
    able = slurm.executor.capabilities["v100"]
    assert not (able.resize_in_place or able.suspend_frees_gpu or able.move or able.share)


def test_a_job_gets_the_node_gpus_cores_and_memory_it_was_given(slurm: SlurmRig) -> None:
    slurm.running("sleep", "600", allocation=allocation_of((Part(2, 0b111, 5000, 777),)))
    job = slurm.jobs()[-1]
    assert held(slurm, job) == ("n3", "5", "777M", "gres:gpu:3")
    assert slurm.executor.devices(FIRST) == {"n3": (0, 1, 2)}


def test_cores_are_rounded_down_to_whole_ones_but_not_to_none(slurm: SlurmRig) -> None:
    slurm.running("sleep", "600", allocation=allocation_of((Part(0, 1, 2900, 10),)))
    slurm.running(
        "sleep", "600", allocation=allocation_of((Part(0, 2, 400, 10),)), attempt=Attempt(2, 1)
    )
    assert [job["NumCPUs"] for job in slurm.jobs()[-2:]] == ["2", "1"]


def test_a_gang_over_nodes_alike_is_one_job(slurm: SlurmRig) -> None:
    parts = (Part(1, 0b1111, 4000, 500), Part(3, 0b1111, 4000, 500))
    ended = slurm.run(
        "sh", "-c", "srun sh -c 'echo $SLURMD_NODENAME has $CUDA_VISIBLE_DEVICES'",
        allocation=allocation_of(parts),
    )  # fmt: skip
    assert ended == Ended(FIRST, 0)
    said = sorted(slurm.log().splitlines())
    assert said == ["n2 has 0,1,2,3", "n4 has 0,1,2,3"]


def test_a_gang_of_unlike_parts_has_exactly_these_parts(slurm: SlurmRig) -> None:
    parts = (Part(0, 0b111, 6000, 900), Part(1, 0b1, 1000, 100), Part(2, 0b1, 1000, 100))
    told = "srun --het-group=0-1 sh -c 'echo $SLURMD_NODENAME has $CUDA_VISIBLE_DEVICES'; sleep 600"
    slurm.running("sh", "-c", told, allocation=allocation_of(parts))
    jobs = [job for job in slurm.jobs() if job["JobState"] == "RUNNING"]
    assert [held(slurm, job) for job in jobs] == [
        ("n1", "6", "900M", "gres:gpu:3"),
        ("n[2-3]", "2", "100M", "gres:gpu:1"),
    ]
    slurm.true(lambda: len(slurm.log().splitlines()) == 3)
    assert sorted(slurm.log().splitlines()) == ["n1 has 0,1,2", "n2 has 0", "n3 has 0"]
    slurm.executor.stop(FIRST, 10.0)
    assert slurm.ended().signal == 15
    assert not [job for job in slurm.jobs() if job["JobState"] == "RUNNING"]


def test_a_job_without_gpus_asks_for_none(slurm: SlurmRig) -> None:
    assert slurm.run("true", allocation=allocation_of((Part(1, 0, 1000, 64),))).code == 0
    assert "TresPerNode" not in slurm.jobs()[-1]


def test_the_command_the_folder_and_the_environment_are_the_jobs_own(slurm: SlurmRig) -> None:
    words = ("sh", "-c", 'printf "%s|" "$@"; pwd; echo $GREETING $DOVETAIL_JOB', "x", "a b", "$c;'")
    slurm.run(*words, environment={"GREETING": "hello", "SBATCH_TIMELIMIT": "7"})
    assert slurm.log().splitlines() == [f"a b|$c;'|{slurm.directory}", "hello 1"]
    assert slurm.jobs()[-1]["TimeLimit"] == "00:07:00"
    assert slurm.jobs()[-1]["JobName"] == ".._a_name"


def test_partition_and_time_limit_are_passed_on_and_their_nodes_are_all_there_is(
    lab: SlurmLab,
) -> None:
    rig = SlurmRig(lab, Options(partition="half", time_limit="5", interval=0.2))
    assert [node.name for node in rig.executor.nodes] == ["n1", "n2"]
    assert rig.run("true").code == 0
    job = rig.jobs()[-1]
    assert (job["Partition"], job["TimeLimit"]) == ("half", "00:05:00")
    rig.close()


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (Options(share=0.5), ["n1", "n2"]),
        (Options(nodes="n[2-4]"), ["n2", "n3", "n4"]),
        (Options(nodes="n[2-4]", share=0.4), ["n2"]),
    ],
)
def test_dovetail_can_be_given_a_share(lab: SlurmLab, options: Options, names: list[str]) -> None:
    rig = SlurmRig(lab, options)
    assert [node.name for node in rig.executor.nodes] == names
    rig.close()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (Options(partition="none"), "partition none has no nodes; there are all, half"),
        (Options(partition="half", nodes="n3"), "partition half has no node n3"),
        (Options(share=0.1), "a share of 0.1 of 4 nodes is none"),
        (Options(share=2), "a share of 2 asked for; it must be over 0, at most 1"),
    ],
)
def test_a_share_that_cannot_be_is_refused(lab: SlurmLab, options: Options, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Slurm(lab.folder / "none", options)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_jobs_belong_to_who_submitted_them(slurm: SlurmRig) -> None:
    nobody = pwd.getpwnam("nobody")
    told = "id -un; echo $HOME; python3 -c 'import dovetail_client as d; d.progress(5, total=9)'"
    slurm.start("sh", "-c", told, owner=(nobody.pw_uid, nobody.pw_gid))
    found = until(slurm, Ended)
    assert slurm.log().splitlines() == ["nobody", nobody.pw_dir]
    assert slurm.jobs()[-1]["UserId"] == f"nobody({nobody.pw_uid})"
    assert any(getattr(each, "steps", 0) == 5 for each in found)
    assert (slurm.folder() / "job").stat().st_uid == nobody.pw_uid


# ---- others ----------------------------------------------------------------------------------


def test_jobs_that_slurm_runs_on_its_own_are_seen_and_left_alone(slurm: SlurmRig) -> None:
    assert slurm.executor.used_by_others() == NOTHING
    slurm.running("sleep", "600", allocation=allocation_of((Part(1, 0b1, 1000, 100),)))
    slurm.lab.call(
        "sbatch", "-w", "n2", "--gres=gpu:2", "-c", "3", "--mem=400", "-o", "/dev/null",
        "--wrap", "sleep 600",
    )  # fmt: skip
    slurm.true(lambda: slurm.executor.used_by_others() != NOTHING)
    assert slurm.executor.used_by_others().parts == (Part(1, 0b1100, 3000, 400),)
    slurm.executor.stop(FIRST, 5.0)
    slurm.ended()
    theirs = [job for job in slurm.jobs() if job["JobName"] == "wrap"][-1]
    assert theirs["JobState"] == "RUNNING"
    slurm.lab.call("scancel", theirs["JobId"])
    slurm.true(lambda: slurm.executor.used_by_others() == NOTHING)


def test_two_dovetails_see_each_other_as_others(slurm: SlurmRig) -> None:
    slurm.running("sleep", "600")
    second = SlurmRig(slurm.lab, QUICK)
    second.wait(0.5)
    assert second.executor.used_by_others().parts == (Part(0, 0b1000, 1000, 256),)
    assert not second.executor.adopt(second.command("sleep", "600"))
    second.executor.stop(FIRST, 0.0)
    slurm.wait(1.0)
    assert not any(isinstance(each, Ended) for each in slurm.executor.reports())
    second.close()


def test_if_dovetail_stops_its_jobs_go_on(slurm: SlurmRig) -> None:
    launch = slurm.running("sh", "-c", "sleep 2; echo done")
    slurm.executor.close()
    slurm.true(lambda: slurm.log() == "done\n")
    slurm.reopen()
    assert slurm.executor.adopt(launch)
    found = until(slurm, Ended)
    assert found == [Running(FIRST, launch.allocation), Ended(FIRST, 0)]
