"""Figures: how soon jobs run, what waiting jobs cost Slurm, how it compares with Slurm alone."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import mean, median, quantiles

import pytest
from slurm_driven import driven
from slurm_lab import SlurmLab
from slurm_show import Show
from slurm_workload import Task, workload

from dovetail.metrics.columns import columns
from dovetail.simulator.experiment import Replay, replay

pytestmark = pytest.mark.real

CLUSTER = "8x4,cpus=12,mem=128"


def test_a_job_runs_within_three_seconds_of_its_submission(
    large: SlurmLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with driven(large, monkeypatch) as site:
        for number in range(1, 16):
            site.submit([Task(1, 1)])
            site.until(lambda number=number: number in site.started)  # type: ignore[misc]
        took = site.latencies()
    print(f"\nsubmission to running: median {median(took):.2f} s, worst {max(took):.2f} s")
    assert median(took) < 3.0


def test_a_thousand_waiting_jobs_cost_slurm_one_question_an_interval(
    large: SlurmLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    with driven(large, monkeypatch) as site:
        site.submit([Task(16, 400)] * 2)
        site.until(lambda: len(site.started) == 2)
        site.submit([Task(16, 1)] * 1000)
        site.until(lambda: len(site.controller.roster) == 1002)
        calls = site.executor.commands.calls
        before, begun = calls.total(), time.monotonic()
        site.until(lambda: time.monotonic() - begun > 15)
        asked, took = calls.total() - before, time.monotonic() - begun
        print(f"\n1000 waiting jobs: {asked} calls of Slurm in {took:.0f} s, one a second allowed")
        assert asked <= took + 1
        assert "1000" not in large.call("squeue", "-h", "-o", "%i")


# ---- side by side ----------------------------------------------------------------------------


def forecast(
    tasks: list[Task], policy: str, folder: Path, start: float, limit: float
) -> list[float]:
    """What the simulator expects; `limit` is what owners declare, 0: the truth."""
    rows = ["job_id,submit_time,gpus,duration,estimate"]
    for number, task in enumerate(tasks, 1):
        # A step of the shell takes its sleep and about 10 ms more.
        length = task.steps * 0.26
        rows.append(f"{number},{task.at:.3f},{task.gpus},{length:.3f},{limit or length:.3f}")
    path = folder / "forecast.csv"
    path.write_text("\n".join(rows) + "\n")
    settings = Replay(
        str(path),
        CLUSTER,
        policy,
        predictor="declared",
        restart_cost=2.0,
        stop_cost=1.0,
        profiling_cost=start,
    )
    found = columns(replay(settings).records)
    return [float(each) for each in found.end - found.submit]


def told(name: str, real: list[float], expected: list[float]) -> str:
    def tail(times: list[float]) -> float:
        return quantiles(times, n=20)[18]

    error = mean(expected) / mean(real) - 1
    return (
        f"{name:28} mean {mean(real):6.1f}  p95 {tail(real):6.1f}   "
        f"forecast {mean(expected):6.1f} {tail(expected):6.1f}   error of the mean {error:+.0%}"
    )


def side_by_side(lab: SlurmLab, tasks: list[Task], policies: list[str]) -> list[str]:
    """The same jobs under Slurm alone and under Dovetail, a line each."""
    alone = Show(lab, "", tasks, 1.0)
    expected = forecast(tasks, "fifo:backfill=easy", alone.folder, 1.0, limit=60.0)
    lines = [told("Slurm's backfill", alone.run_by_slurm(), expected)]
    for policy in policies:
        show = Show(lab, policy, tasks, 1.0)
        show.run()
        expected = forecast(tasks, policy, show.folder, 1.5, limit=0.0)
        lines.append(told(f"Dovetail, {policy}", show.completion_times(), expected))
    return lines


def test_side_by_side_with_the_backfill_of_slurm(
    large: SlurmLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(large.conf))
    tasks = workload(80, seed=11, mean=4.0, pause=0.6)
    lines = side_by_side(large, tasks, ["fifo:backfill=easy", "sjf:backfill=easy"])
    print("\n80 jobs of 1 to 16 GPUs on 8 x 4; seconds from submission to end")
    print("\n".join(lines))
    assert len(lines) == 3
