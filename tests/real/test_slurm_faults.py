"""What goes wrong on clusters: each ends in the right state, with a reason."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from executor_contract import Ended, Running, collect, small, until
from slurm_lab import SlurmLab
from slurm_rig import FIRST, QUICK, SlurmRig

from dovetail.executors.protocol import Attempt, Closed, Fault, Opened
from dovetail.executors.slurm import Options, Slurm
from dovetail.executors.slurm.commands import CommandLine
from dovetail.model.allocation import NOTHING, Part, allocation_of
from dovetail.model.errors import UserError

pytestmark = pytest.mark.real


@pytest.fixture
def slurm(lab: SlurmLab) -> Iterator[SlurmRig]:
    rig = SlurmRig(lab)
    yield rig
    rig.close()


def slurm_id(rig: SlurmRig) -> str:
    return rig.jobs()[-1]["JobId"]


def test_a_restart_of_slurmctld_is_survived(slurm: SlurmRig) -> None:
    slurm.running("sh", "-c", "sleep 6; exit 5")
    slurm.lab.end_controller()
    slurm.true(lambda: slurm.executor.trouble != "")
    second = Attempt(2, 1)
    slurm.start("true", attempt=second, allocation=small(devices=2))
    slurm.wait(1.0)
    slurm.lab.start_controller()
    found = collect(slurm, lambda found: sum(isinstance(each, Ended) for each in found) == 2)
    ended = {each.attempt: each for each in found if isinstance(each, Ended)}
    assert ended == {FIRST: Ended(FIRST, 5), second: Ended(second, 0)}
    slurm.true(lambda: not slurm.executor.trouble)
    assert [job["JobState"] for job in slurm.jobs()[-2:]] == ["FAILED", "COMPLETED"]


def test_a_job_on_a_node_whose_slurmd_is_killed_is_lost_through_no_fault_of_its(
    slurm: SlurmRig,
) -> None:
    where = allocation_of((Part(1, 0b1, 1000, 256),))
    slurm.running("sleep", "120", allocation=where)
    slurm.lab.kill("n2")
    try:
        slurm.lab.call("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=gone")
        found = collect(
            slurm,
            lambda found: {Ended, Closed} <= {type(each) for each in found},
        )
        assert next(each for each in found if isinstance(each, Closed)) == Closed(1, "gone")
        ended = next(each for each in found if isinstance(each, Ended))
        assert (ended.fault, ended.reason) == (Fault.ENGINE, "ended by Slurm: node fail on n2")
    finally:
        slurm.lab.start_node("n2")
        slurm.lab.call("scontrol", "update", "NodeName=n2", "State=RESUME")
    assert until(slurm, Opened)[-1] == Opened(1)


def test_a_node_drained_by_an_administrator_takes_nothing_new(slurm: SlurmRig) -> None:
    slurm.lab.call("scontrol", "update", "NodeName=n3", "State=DRAIN", "Reason=new fans")
    assert until(slurm, Closed) == [Closed(2, "new fans")]
    slurm.reopen()
    assert until(slurm, Closed) == [Closed(2, "new fans")]
    slurm.executor.close()
    slurm.lab.call("scontrol", "update", "NodeName=n3", "State=RESUME")
    slurm.executor = Slurm(slurm.data, QUICK)
    assert until(slurm, Opened)[-1] == Opened(2), "it was opened while nobody was there"


def test_a_job_cancelled_behind_our_back_is_not_tried_again(slurm: SlurmRig) -> None:
    slurm.running("sleep", "600")
    slurm.lab.call("scancel", slurm_id(slurm))
    ended = slurm.ended()
    assert (ended.fault, ended.reason) == (Fault.OTHERS, "cancelled in Slurm by somebody else")


def test_a_job_that_slurm_does_not_start_in_time_is_taken_back(lab: SlurmLab) -> None:
    rig = SlurmRig(lab, Options(interval=0.2, patience=2.0))
    # A node that no other test here restarts slurmctld under: that may leave GPUs counted as used.
    words = ["-w", "n4", "--gres=gpu:4", "--mem=100", "-o", "/dev/null", "--wrap", "sleep 600"]
    lab.call("sbatch", *words)
    rig.true(lambda: rig.executor.used_by_others() != NOTHING)
    rig.start("true", allocation=allocation_of((Part(3, 0b1, 1000, 256),)))
    ended = rig.ended()
    assert ended.fault is Fault.ENGINE
    assert ended.reason == "Slurm did not start it on its nodes in time (Resources)"
    assert not (rig.folder() / "job" / "claim").exists()
    rig.close()


def test_what_slurm_refuses_is_said_in_its_words(slurm: SlurmRig) -> None:
    ended = slurm.run("true", environment={"SBATCH_PARTITION": "nowhere"})
    assert ended.reason.startswith("could not start: ")
    assert "invalid partition" in ended.reason.lower()


def test_a_command_is_not_run_in_another_folder_than_its_own(slurm: SlurmRig) -> None:
    assert slurm.run("echo", "here", directory=Path("/nonexistent")).code == 2
    assert "can't cd to /nonexistent" in slurm.log()


# ---- submissions nobody knows of -------------------------------------------------------------


class Deaf(CommandLine):
    """Submits, and does not hear the answer."""

    def text(self, *words: str, **more: object) -> str:
        said = super().text(*words, **more)  # type: ignore[arg-type]
        if words[0] == "sbatch" and self.calls["sbatch"] == 1:
            return "what was I going to say"
        return said


def test_a_submission_without_an_answer_is_found_and_not_made_again(lab: SlurmLab) -> None:
    rig = SlurmRig(lab)
    rig.executor.close()
    rig.executor = Slurm(rig.data, QUICK, Deaf())
    assert rig.run("sh", "-c", "echo once; exit 4") == Ended(FIRST, 4)
    assert rig.executor.commands.calls["sbatch"] == 1
    rig.close()


def test_two_submissions_of_an_attempt_run_it_once(slurm: SlurmRig) -> None:
    """As when a controller dies while `sbatch` is under way, and the next one does not see it."""
    launch = slurm.command("sh", "-c", "echo once >> ran; sleep 1; exit 6")
    slurm.executor.start(launch)
    slurm.executor.close()
    blind = Slurm(slurm.data, QUICK)
    blind._found = set()
    late = blind._run(launch)
    blind._worker.order(lambda: blind._worker.follow(late))
    slurm.executor = blind
    assert slurm.ended().code == 6
    assert (slurm.directory / "ran").read_text() == "once\n"
    slurm.wait(2.0)
    assert (slurm.directory / "ran").read_text() == "once\n"


def test_a_submission_that_arrives_after_its_attempt_was_given_up_is_ended(
    slurm: SlurmRig,
) -> None:
    """As when a controller dies while `sbatch` is under way, and the job is cancelled meanwhile."""
    slurm.running("sleep", "600")
    slurm.reopen()
    assert slurm.executor.reports() == []
    slurm.true(lambda: slurm.jobs()[-1]["JobState"] == "CANCELLED")


def test_a_submission_that_arrives_before_its_attempt_is_started_again_is_not_ended(
    slurm: SlurmRig,
) -> None:
    """As when a controller dies while `sbatch` is under way, and the next one takes its time."""
    launch, number = slurm.running("sleep", "600"), slurm_id(slurm)
    slurm.reopen()
    slurm.start("true", attempt=Attempt(2, 1), allocation=small(devices=2))
    slurm.wait(5 * QUICK.interval)
    slurm.executor.start(launch)
    slurm.ended()
    states = {job["JobId"]: job["JobState"] for job in slurm.jobs()}
    assert states[number] == "RUNNING"
    slurm.executor.stop(FIRST, 5.0)
    assert slurm.ended().attempt == FIRST


def test_how_a_job_ended_is_known_when_slurm_has_forgotten_it(slurm: SlurmRig) -> None:
    launch = slurm.running("sh", "-c", "sleep 1; exit 7")
    slurm.executor.close()
    slurm.true((slurm.folder() / "job" / "ended").exists)
    slurm.executor = Slurm(slurm.data, QUICK, Forgetful())
    assert slurm.executor.adopt(launch)
    assert slurm.ended() == Ended(FIRST, 7)


class Forgetful(CommandLine):
    """A Slurm that keeps no record of jobs."""

    def json(self, *words: str) -> dict[str, object]:
        said = super().json(*words)
        return {**said, "jobs": []} if "jobs" in said else said


# ---- answers that are none -------------------------------------------------------------------


def in_the_way(lab: SlurmLab, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command of this name comes first on the path."""
    folder = lab.folder / f"bin-{time.monotonic_ns()}"
    folder.mkdir()
    command = folder / name
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return command


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo '<html>busy</html>'", "something else than JSON"),
        ("echo '[]'", "something else than an object"),
        ("echo '{\"jobs\": 7}'", "no list of jobs"),
        ('echo \'{"jobs": [{"job_id": "x"}]}\'', "cannot be read"),
        ("exit 1", "failed without a word"),
        ('echo \'{"jobs": [], "errors": [{"error": "no answer"}]}\'', "squeue: no answer"),
        ("sleep 20", "did not answer within 2 s"),
    ],
)
def test_garbage_and_silence_are_waited_out(
    lab: SlurmLab, script: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = SlurmRig(lab)
    rig.executor.close()
    rig.executor = Slurm(rig.data, QUICK, CommandLine(patience=2.0))
    rig.running("sh", "-c", "sleep 2; exit 8")
    command = in_the_way(lab, "squeue", script, monkeypatch)
    rig.true(lambda: told in rig.executor.trouble)
    begun = time.monotonic()
    rig.executor.reports()
    rig.executor.stop(Attempt(99, 1), 1.0)
    assert time.monotonic() - begun < 2.0, "nobody waits for Slurm"
    command.unlink()
    assert rig.ended() == Ended(FIRST, 8)
    rig.true(lambda: not rig.executor.trouble)
    rig.close()


def test_without_slurm_the_reason_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="Slurm cannot be used from here: there is no command"):
        Slurm(tmp_path)


def test_a_suspended_job_is_found_suspended(slurm: SlurmRig) -> None:
    launch = slurm.running("sleep", "600")
    slurm.executor.suspend(FIRST)
    slurm.true(lambda: slurm.jobs()[-1]["JobState"] == "STOPPED")
    slurm.reopen()
    assert slurm.executor.adopt(launch)
    kinds = [type(each).__name__ for each in collect(slurm, lambda found: len(found) > 1)]
    assert kinds == ["Running", "Paused"]
    slurm.executor.resume(FIRST)
    until(slurm, Running)
    slurm.executor.stop(FIRST, 5.0)
    assert slurm.ended().signal == 15
