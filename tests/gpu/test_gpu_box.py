"""A box with a real NVIDIA GPU and PyTorch: what only such a machine can show."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dovetail.demo.site import running
from dovetail.executors.local import gpus
from dovetail.live import Box

FOUND = gpus.gpus()
TORCH = importlib.util.find_spec("torch") is not None
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not FOUND, reason="there is no NVIDIA GPU"),
    pytest.mark.skipif(not TORCH, reason="PyTorch is not installed"),
]

TRAINING = Path(__file__).resolve().parents[2] / "examples" / "live" / "train_torch.py"
PATIENCE = 120.0
BUSY = """
import os, time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
print("on", os.environ["CUDA_VISIBLE_DEVICES"], torch.cuda.device_count(), flush=True)
until = time.monotonic() + {seconds}
while time.monotonic() < until:
    for _ in range(50):
        a @ a
    torch.cuda.synchronize()
"""
IDLE = (
    "import time, torch; torch.zeros(1, device='cuda'); print('here', flush=True); time.sleep(600)"
)


def until(fact: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := fact()):
        assert time.monotonic() < deadline, f"{what} did not come about"
        time.sleep(0.1)
    return found


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """All GPUs of this machine; who leaves them idle for some seconds is cancelled."""
    folder = tmp_path_factory.mktemp("box")
    options = ["--policy", "priority:preempt=true", "--idle", "20s:cancel"]
    with running(folder, options) as found:
        yield found


@contextmanager
def beside(program: str) -> Iterator[None]:
    """Somebody who uses a GPU without asking us."""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "here\n"
            yield
        finally:
            process.kill()


def python(box: Box, program: str, **fields: Any) -> int:
    return box.submit([sys.executable, "-c", program], **{"gpus": 1, "memory": "8G", **fields})


def test_the_gpus_are_found_with_their_type(box: Box) -> None:
    (node,) = box.nodes()
    assert (node.gpus, node.type, node.virtual) == (len(FOUND), FOUND[0].type, False)


def test_a_job_computes_on_the_gpu_it_was_given_and_its_use_is_seen(box: Box) -> None:
    job = python(box, BUSY.format(seconds=8))
    until(lambda: box.show(job).job.state == "running", "the start")
    seen = until(
        lambda: [share for share in gpus.utilisation(FOUND) if share is not None and share > 50],
        "the load",
    )
    assert seen
    assert box.wait(job, PATIENCE).state == "done"
    said = "".join(box.follow(job))
    place = box.show(job).runs[0].places[0]
    assert re.match(r"on (\d+) 1\n", said), said
    assert place.node == box.nodes()[0].name


def test_who_leaves_its_gpu_idle_is_told_and_cancelled(box: Box) -> None:
    busy = python(box, BUSY.format(seconds=30), name="busy")
    assert box.wait(busy, PATIENCE).state == "done", "a busy job was taken for an idle one"
    idle = python(box, IDLE, name="idle")
    ended = box.wait(idle, PATIENCE)
    assert ended.state == "cancelled"
    assert "used less than 5 %" in ended.reason, ended.reason


def test_a_gpu_that_others_use_is_not_given_out_until_they_leave(box: Box) -> None:
    programs = "; ".join(f"torch.zeros(1, device='cuda:{n}')" for n in range(len(FOUND)))
    with beside(IDLE.replace("torch.zeros(1, device='cuda')", programs)):
        until(lambda: len(box.nodes()[0].foreign) == len(FOUND), "the sight of the others")
        job = python(box, BUSY.format(seconds=1))
        time.sleep(2)
        found = box.show(job).job
        assert found.state == "waiting", found
        assert "others" in box.why(job).text, box.why(job)
    assert box.wait(job, PATIENCE).state == "done"


def test_pytorch_training_is_stopped_for_others_and_goes_on_where_it_was(box: Box) -> None:
    everything = len(FOUND)
    job = box.submit(
        [sys.executable, str(TRAINING), "--epochs", "200"],
        gpus=everything,
        memory="8G",
        resumable=True,
    )
    until(lambda: (told := box.show(job).job.progress) and told.steps >= 500, "progress")
    urgent = python(box, BUSY.format(seconds=2), gpus=everything, priority="high")
    assert box.wait(urgent, PATIENCE).state == "done"
    assert box.wait(job, PATIENCE).state == "done"
    saved = re.findall(r"saved at step (\d+)", "".join(box.follow(job, 1)))[-1]
    assert f"resumed at step {saved}\n" in "".join(box.follow(job, 2))
    assert [run.number for run in box.show(job).runs] == [1, 2]
