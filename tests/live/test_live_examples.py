"""The programs and task files of `examples/live`, run by a real controller."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hosting import PATIENCE, slow_at_first, until

from dovetail.demo.site import running
from dovetail.live import Box

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "live"
TORCH = importlib.util.find_spec("torch") is not None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("box")


@pytest.fixture(scope="module")
def box(folder: Path) -> Iterator[Box]:
    with running(folder, ["--gpus", "2", "--policy", "priority:preempt=true"]) as found:
        yield found


def text(box: Box, job: int, attempt: int = 0) -> str:
    return "".join(box.follow(job, attempt, pace=0.1))


def preempted(box: Box, words: list[str], after: int) -> int:
    """A job that was stopped for a more important one after so many steps, and has ended."""
    job = box.submit(words, gpus=2, memory="1G", resumable=True)
    until(lambda: (told := box.show(job).job.progress) and told.steps >= after)
    urgent = box.submit(["sleep", "1"], gpus=2, memory="64M", priority="high")
    until(lambda: box.show(job).job.state == "waiting")
    assert "priority" in box.show(job).job.reason or urgent in box.show(job).job.blockers
    assert box.wait(urgent, PATIENCE).state == "done"
    assert box.wait(job, PATIENCE).state == "done"
    return job


def test_a_plain_loop_is_stopped_with_a_checkpoint_and_goes_on_from_there(
    box: Box, folder: Path, dovetail: Callable[..., Any]
) -> None:
    words = [sys.executable, str(EXAMPLES / "train.py"), "--steps", "100", "--seconds"]
    job = preempted(box, ["sh", "-c", slow_at_first(words)], after=5)
    saved = re.search(r"saved at step (\d+)", text(box, job, 1))
    assert saved is not None and 5 <= int(saved[1]) < 100
    after = text(box, job, 2)
    assert f"resumed at step {saved[1]}\n" in after
    assert f"step {20 * (int(saved[1]) // 20)}:" not in after
    assert [run.number for run in box.show(job).runs] == [1, 2]
    assert box.show(job).job.saved is not None
    # The same line as without an interruption.
    alone = subprocess.run([*words, "0"], capture_output=True, text=True, check=True, cwd=folder)
    assert after.splitlines()[-1] == alone.stdout.splitlines()[-1]


def test_progress_is_shown_while_it_runs(
    box: Box, folder: Path, dovetail: Callable[..., Any]
) -> None:
    words = [sys.executable, str(EXAMPLES / "train.py"), "--steps", "5000"]
    job = box.submit(words, gpus=1)
    until(lambda: (told := box.show(job).job.progress) and told.steps >= 5)
    shown = dovetail("show", job, "--data-dir", folder).out
    assert re.search(r"progress +\d+ of 5,?000", shown), shown
    box.cancel(job)
    box.wait(job, PATIENCE)


def test_the_loop_works_where_there_is_no_controller(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DOVETAIL_")}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "train.py"), "--steps", "40", "--seconds", "0"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1].startswith("y = ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("file", "jobs"), [("task.yaml", 1), ("sweep.yaml", 6), ("array.yaml", 5)])
def test_a_task_file_becomes_its_jobs(
    box: Box, folder: Path, dovetail: Callable[..., Any], file: str, jobs: int
) -> None:
    answer = dovetail("submit", "--hold", "--data-dir", folder, EXAMPLES / file)
    assert answer.code == 0, answer.err
    number = int(answer.out)
    assert len(box.members(number)) == jobs
    box.cancel(number)


def test_each_job_of_an_array_knows_which_it_is(box: Box) -> None:
    array = box.submit(EXAMPLES / "array.yaml")
    members = [box.wait(job.id, PATIENCE) for job in box.members(array)]
    assert [job.state for job in members] == ["done"] * 5
    said = [text(box, job.id) for job in members]
    assert [line.split(" on ")[0] for line in said] == [f"shard {n} of 5" for n in range(5)]


@pytest.mark.skipif(TORCH, reason="PyTorch is installed")
def test_what_to_install_is_said_in_a_sentence(tmp_path: Path) -> None:
    program = [sys.executable, str(EXAMPLES / "train_torch.py")]
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "This example needs PyTorch: pip install torch\n"


@pytest.mark.real
@pytest.mark.skipif(not TORCH, reason="PyTorch is not installed")
def test_a_pytorch_loop_is_stopped_with_a_checkpoint_and_goes_on_from_there(box: Box) -> None:
    words = [sys.executable, str(EXAMPLES / "train_torch.py"), "--epochs", "20"]
    job = preempted(box, words, after=200)
    saved = re.search(r"saved at step (\d+)", text(box, job, 1))
    assert saved is not None
    assert f"resumed at step {saved[1]}\n" in text(box, job, 2)
