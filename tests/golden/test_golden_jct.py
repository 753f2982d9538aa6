"""Mean completion times that other simulators found too, to the last printed digit.

Sources: the issue's table, measured with the published simulators of Tiresias, PAI and Helios.
Restart cost 0, one plan per instant, ties by submit time, then id.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dovetail.metrics.summary import summarise
from dovetail.simulator.experiment import Replay, replay

SIXTY = "tiresias_60_job.csv"
MURI = "muri_trace3_seconds_tiresias_format.csv"
GENERATED = "generate:tiresias480"


def result_of(trace: str, cluster: str, policy: str, placement: str, **more: Any) -> dict[str, Any]:
    settings = Replay(trace, cluster, policy, placement=placement, restart_cost=0.0, **more)
    return summarise(replay(settings))


def assert_all_finished(result: dict[str, Any], jobs: int) -> None:
    counts = dict(result["jobs"])
    assert counts.pop("submitted") == jobs
    assert counts.pop("finished") == jobs
    assert not any(counts.values())
    assert result["measure"]["finished"] == jobs


@pytest.mark.parametrize(
    ("policy", "placement", "mean"),
    [
        ("fifo", "count", 14059.3),
        ("fifo:skip=true", "count", 5722.0),
        ("sjf:skip=true", "count", 3940.3),
        ("srtf", "count", 2788.2),
        ("srsf", "count", 2540.6),
        ("smallest-first:preempt=true", "count", 5382.4),
        ("fifo", "consolidated", 15001.2),
        ("fifo:skip=true", "consolidated", 5732.0),
    ],
)
def test_480_generated_jobs_on_15x4(policy: str, placement: str, mean: float) -> None:
    result = result_of(GENERATED, "15x4", policy, placement)
    assert round(result["jct"]["mean"], 1) == mean
    assert_all_finished(result, 480)


@pytest.mark.parametrize(
    ("policy", "median", "p95", "makespan", "preemptions"),
    [
        ("fifo", 14123.0, 27006.8, 43878, 0),
        ("fifo:skip=true", 2001.0, 22669.4, 45644, 0),
        ("smallest-first:preempt=true", 468.0, 24371.5, 48344, 81),
    ],
)
def test_480_generated_jobs_agree_with_the_published_simulator_beyond_the_mean(
    policy: str, median: float, p95: float, makespan: float, preemptions: int
) -> None:
    result = result_of(GENERATED, "15x4", policy, "count")
    assert result["jct"]["median"] == median
    assert result["jct"]["p95"] == pytest.approx(p95, abs=0.1)
    assert result["makespan"] == makespan
    assert (result["preemptions"], result["moves"]) == (preemptions, 0)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("cluster", "policy", "mean"),
    [
        ("2x4", "fifo", 1556.5),
        ("2x4", "fifo:skip=true", 715.3),
        ("2x4", "srtf", 519.9),
        ("2x4", "srsf", 563.4),
        ("2x4", "smallest-first:preempt=true", 725.7),
        ("2x4", "las:thresholds=3250/7200", 715.3),
        ("4x4", "fifo:skip=true", 190.7),
        ("4x4", "srtf", 192.1),
        ("4x4", "las:thresholds=3250/7200", 190.7),
    ],
)
def test_the_60_jobs_of_tiresias_by_count(
    cluster: str, policy: str, mean: float, public_traces: Path
) -> None:
    result = result_of(str(public_traces / SIXTY), cluster, policy, "count")
    assert round(result["jct"]["mean"], 1) == mean
    assert_all_finished(result, 60)


@pytest.mark.shared
def test_the_60_jobs_of_tiresias_consolidated(public_traces: Path) -> None:
    result = result_of(str(public_traces / SIXTY), "2x4", "fifo:skip=true", "consolidated")
    assert abs(result["jct"]["mean"] - 782.55) < 0.005
    assert_all_finished(result, 60)


@pytest.mark.parametrize(
    ("policy", "published"),
    [("las:thresholds=3250/7200", 4777.8), ("las:thresholds=3250/7200,promote=8", 4611.1)],
)
def test_2d_las_is_within_two_percent_of_the_published_simulator_with_its_timer_fixed(
    policy: str, published: float
) -> None:
    result = result_of(GENERATED, "15x4", policy, "count")
    assert result["jct"]["mean"] == pytest.approx(published, rel=0.02)
    assert_all_finished(result, 480)


@pytest.mark.shared
@pytest.mark.parametrize(("policy", "mean"), [("fifo", 991_167.0), ("fifo:skip=true", 480_104.8)])
def test_trace_c_on_8x8(policy: str, mean: float, public_traces: Path) -> None:
    result = result_of(str(public_traces / MURI), "8x8", policy, "count")
    assert round(result["jct"]["mean"], 1) == mean
    assert_all_finished(result, 992)


@pytest.mark.shared
@pytest.mark.parametrize(
    ("policy", "jct", "wait"), [("fifo", 8118.0, 289.0), ("sjf", 7934.7, 105.7)]
)
def test_the_philly_week_with_the_semantics_of_helios(
    policy: str, jct: float, wait: float, public_traces: Path
) -> None:
    result = result_of(
        str(public_traces / "philly_82k.csv.gz"),
        "352x8",
        policy,
        "consolidated:fit=best",
        start="2017-10-01",
        stop="2017-10-07T23:59:45",
        partition_by=f"vc={public_traces / 'philly_vc_nodes.csv'}",
    )
    assert round(result["jct"]["mean"], 1) == jct
    assert round(result["wait"]["mean"], 1) == wait
    assert_all_finished(result, 10_650)


@pytest.mark.shared
def test_the_recipe_draws_the_published_480_jobs(public_traces: Path) -> None:
    from dovetail.traces.loader import load

    ours, theirs = load(GENERATED), load(str(public_traces / "synth480_seed42.csv"))
    for made, read in zip(ours.jobs, theirs.jobs, strict=True):
        assert (made.spec.submit, made.spec.request, made.work) == (
            read.spec.submit,
            read.spec.request,
            read.work,
        )


SIMULATE = ("simulate", GENERATED, "--cluster", "15x4", "--restart-cost", "0")


@pytest.mark.parametrize(
    ("policy", "placement", "mean"),
    [("fifo:skip=true", "consolidated", 5732.0), ("srsf", "count", 2540.6)],
)
def test_the_command_prints_the_same_figures(
    policy: str, placement: str, mean: float, dovetail: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "result.json"
    told = ("--policy", policy, "--placement", placement)
    assert dovetail(*SIMULATE, *told, "--json", file).code == 0
    result = json.loads(file.read_text())
    assert round(result["jct"]["mean"], 1) == mean
    assert_all_finished(result, 480)


def test_the_installed_command_prints_the_same_figures() -> None:
    command = Path(sys.executable).with_name("dovetail")
    told = ("--policy", "srtf", "--placement", "count", "--json", "-")
    done = subprocess.run(
        [command, *SIMULATE, *told], capture_output=True, text=True, check=True, timeout=600
    )
    result = json.loads(done.stdout)
    assert round(result["jct"]["mean"], 1) == 2788.2
    assert_all_finished(result, 480)
