"""The live half of the demo: jobs that learn, profiles that are measured, and a clean end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from hosting import PATIENCE

from dovetail.demo import rounds
from dovetail.demo.kinds import KINDS
from dovetail.demo.machine import MOST, few_cores
from dovetail.demo.measuring import Known, command
from dovetail.demo.rounds import MIX, orders
from dovetail.demo.site import running
from dovetail.model.errors import UserError
from dovetail.profiler.measurement import Measurement


def known(kind: str, processor: float, speed: float = 10.0) -> Known:
    return Known(KINDS[kind], Measurement(1, speed, used=processor * speed))


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_really_learns(kind: str) -> None:
    done = subprocess.run(command(kind, 60), capture_output=True, text=True, check=True)
    right = re.fullmatch(r"60 steps, (\d+)% right\n", done.stdout)
    # The share is a moving mean that begins at 0: 95 % of it is past after 60 steps.
    assert right is not None and int(right[1]) >= 85


def test_a_job_that_keeps_its_device_busy_profits_from_no_more() -> None:
    profile = known("text", 0.002).profile(2, (0.5, 4.0))
    assert profile.surface.cores[0] == 0.25
    assert [profile.rate(cores, 4.0) for cores in (0.25, 0.5, 2.0)] == [1.0, 1.0, 1.0]


def test_a_job_that_decodes_profits_from_every_core() -> None:
    profile = known("image", 0.020).profile(2, (0.5, 4.0))
    assert [profile.rate(cores, 4.0) for cores in (0.5, 1.0, 2.0)] == [1.0, 2.0, 4.0]
    assert 1 / profile.step == pytest.approx(25.0)


def test_jobs_are_as_long_as_stated_and_shorter_in_steps_where_others_are_busy() -> None:
    calm = [known("image", 0.02, 50.0), known("speech", 0.004, 83.0), known("text", 0.002, 50.0)]
    busy = [known("image", 0.02, 25.0), *calm[1:]]
    steps = {order.kind: order.steps for order in orders(calm, 0.5)}
    assert steps["image"] == pytest.approx(25 * rounds.LENGTHS["image"], rel=0.02)
    fewer = {order.kind: order.steps for order in orders(busy, 0.5)}
    assert fewer["image"] == pytest.approx(steps["image"] / 2, abs=1)
    assert [order.kind for order in orders(calm, 0.5)] == list(MIX)


def test_few_cores_are_used_and_all_given_back() -> None:
    before = os.sched_getaffinity(0)
    with few_cores() as used:
        assert 1 <= len(os.sched_getaffinity(0)) <= MOST
        assert used.share[0] * used.gpus == pytest.approx(used.cores)
    assert os.sched_getaffinity(0) == before


def test_a_controller_of_ones_own_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), running(tmp_path / "box", ["--gpus", "2"]) as box:
        job = box.submit(["sleep", "600"], gpus=1)
        while not box.show(job).job.places:
            time.sleep(0.05)
        raise ZeroDivisionError
    assert processes(str(tmp_path)) == []


def test_a_controller_that_cannot_start_says_why(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match="did not start: unknown policy 'nothing'"),
        running(tmp_path, ["--policy", "nothing"]),
    ):
        raise AssertionError("it must not start")


@pytest.mark.real
def test_the_live_half_ends_with_a_table(
    dovetail: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "LENGTHS", dict.fromkeys(rounds.LENGTHS, 1.0))
    answer = dovetail("demo", "--no-simulation", "--rounds", 1)
    assert answer.code == 0, answer.err
    assert re.search(r"mean completion time +[\d.]+ s +[\d.]+ s +[\d.]+ ×", answer.out)
    assert "proportional 1: 10/10 done" in answer.out and "synergy 1: 10/10 done" in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80


@pytest.mark.real
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_interrupted_clears_up(number: signal.Signals, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "dovetail", "demo", "--no-simulation", "--rounds", "1"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        # Tests that run in the background of a shell ignore Ctrl-C, and so would this.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("proportional 1:"):
            break
    assert list(tmp_path.iterdir()) and processes(str(tmp_path))
    process.send_signal(number)
    assert process.wait(PATIENCE) == 130
    process.stdout.close()
    assert [*tmp_path.iterdir(), *processes(str(tmp_path))] == []


def processes(text: str) -> list[str]:
    """Those whose command or environment names it."""
    found = []
    for process in psutil.process_iter():
        try:
            told = " ".join([*process.cmdline(), *process.environ().values()])
        except psutil.Error:
            continue
        if text in told and process.pid != os.getpid():
            found.append(f"{process.pid}: {' '.join(process.cmdline())}")
    return found
