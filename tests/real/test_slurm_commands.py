"""The commands people type, on a real cluster: up, submit, logs, doctor, down."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_lab import SlurmLab

pytestmark = pytest.mark.real


class Typing:
    """A person at a login node."""

    def __init__(self, lab: SlurmLab) -> None:
        self.lab = lab
        self.data = lab.folder / f"typed-{time.monotonic_ns()}"

    def __call__(self, *words: str, check: bool = True) -> str:
        command = words[0]
        done = subprocess.run(
            [sys.executable, "-m", "dovetail", command, "--data-dir", str(self.data), *words[1:]],
            env=self.lab.environment,
            cwd=self.lab.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        assert not check or done.returncode == 0, done.stderr + done.stdout
        return done.stdout + done.stderr


@pytest.fixture
def typed(lab: SlurmLab) -> Iterator[Typing]:
    person = Typing(lab)
    yield person
    person("down", "--stop-jobs", check=False)


def test_from_nothing_to_a_job_on_a_node(typed: Typing) -> None:
    typed("up", "--engine", "slurm", "--detach")
    log = (typed.data / "controller.log").read_text()
    assert "Dovetail is up on 4 nodes: 16 v100, 32 cores, 128 GiB of memory." in log
    assert "Slurm 22.05, partition all: 4 nodes" in log
    typed("submit", "--gpus", "2", "--", "sh", "-c", "echo GPUs $CUDA_VISIBLE_DEVICES")
    deadline = time.monotonic() + 90
    while "GPUs 0,1" not in (told := typed("logs", "1", check=False)):
        assert time.monotonic() < deadline, told
        time.sleep(0.3)


def test_the_doctor_says_what_is_there(typed: Typing) -> None:
    told = json.loads(typed("doctor", "--engine", "slurm", "--json"))
    assert {"about": "submitting", "verdict": "fine", "found": "allowed", "advice": ""} in told
    wrong = typed("doctor", "--engine", "slurm", "--partition", "moon", check=False)
    assert "!!  slurmctld: partition moon has no nodes; there are all, half" in wrong


def test_wrong_words_are_one_sentence(typed: Typing, tmp_path: Path) -> None:
    told = typed("up", "--engine", "slrm", check=False)
    assert told.strip() == "dovetail: unknown engine 'slrm'; did you mean 'slurm'?"
    told = typed("up", "--partition", "all", check=False)
    assert told.strip() == "dovetail: a partition and the like belong to --engine slurm"
