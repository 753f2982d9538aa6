"""Warm-up and measured window: only some jobs count, but all of them load the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dovetail.metrics.summary import summarise
from dovetail.model.errors import UserError
from dovetail.simulator.experiment import Replay, grid, replay

TRACE = "job_id,submit_time,gpus,duration,tenant\n" + "\n".join(
    f"{name},{at},1,10,{tenant}"
    for name, at, tenant in [("a", 0, "x"), ("b", 1, "x"), ("c", 2, "y"), ("d", 3, "y")]
)


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Four jobs of ten seconds for one GPU: they end at 10, 20, 30 and 40."""
    file = tmp_path / "jobs.csv"
    file.write_text(TRACE)
    return str(file)


def measured(trace: str, window: str | None, **more: Any) -> dict[str, Any]:
    return summarise(replay(Replay(trace, "1x1", measure=window, **more)))


@pytest.mark.parametrize(
    ("window", "jobs", "mean"),
    [(None, 4, 23.5), ("0:4", 4, 23.5), ("1:3", 2, 23.5), ("2:3", 1, 28.0), ("3:99", 1, 37.0)],
)
def test_only_jobs_of_the_window_count(
    trace: str, window: str | None, jobs: int, mean: float
) -> None:
    result = measured(trace, window)
    assert result["measure"]["jobs"] == result["measure"]["finished"] == jobs
    assert result["jct"]["mean"] == mean
    assert result["wait"]["mean"] == mean - 10
    assert result["jobs"]["finished"] == 4
    assert result["makespan"] == 40


def test_tenants_outside_the_window_have_no_figures(trace: str) -> None:
    tenants = measured(trace, "2:4")["tenants"]
    assert tenants["y"]["jobs"] == 2
    assert tenants["x"]["jobs"] == 0
    assert tenants["x"]["mean_jct"] is None


def test_the_window_counts_in_submit_order_whatever_the_order_of_ends(trace: str) -> None:
    result = measured(trace, "1:2", policy="ljf")
    assert result["measure"]["jobs"] == 1


def test_a_window_without_jobs_has_no_mean(trace: str) -> None:
    result = measured(trace, "50:60")
    assert result["measure"]["jobs"] == 0
    assert result["jct"]["mean"] is None


@pytest.mark.parametrize("window", ["", ":", "3", "3:", ":3", "3:3", "5:3", "a:b", "-1:3", "1.5:3"])
def test_a_window_that_is_none_is_refused(trace: str, window: str) -> None:
    with pytest.raises(UserError, match="FIRST:LAST"):
        measured(trace, window)


def test_jobs_between_two_times_alone_are_submitted(trace: str) -> None:
    result = measured(trace, None, start="1", stop="2")
    assert result["jobs"]["submitted"] == 2
    assert result["jct"]["mean"] == (10 + 19) / 2


def test_a_grid_gives_results_in_the_order_of_its_settings(trace: str) -> None:
    settings = [Replay(trace, "1x1", policy) for policy in ("fifo", "ljf", "sjf")]
    seen: list[tuple[int, int | None]] = []
    runs = grid(settings, 1, lambda done, of: seen.append((done, of)))
    assert [run.settings["policy"] for run in runs] == ["fifo", "ljf", "sjf"]
    assert seen == [(1, 3), (2, 3), (3, 3)]
    many = grid(settings, 2)
    assert [list(run.records.end) for run in many] == [list(run.records.end) for run in runs]


def test_progress_is_reported_while_a_long_run_goes_on() -> None:
    seen: list[tuple[int, int | None]] = []
    trace = "generate:philly,jobs=5000,load=0.5,seed=1"
    replay(Replay(trace, "16x8"), lambda done, of: seen.append((done, of)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen
    assert {of for _, of in seen} == {5000}


def test_a_series_has_the_state_after_every_decision(trace: str) -> None:
    run = replay(Replay(trace, "1x1", series=True))
    assert run.series is not None
    assert list(run.series.time)[:5] == [0.0, 1.0, 2.0, 3.0, 10.0]
    assert list(run.series.waiting)[:5] == [0, 1, 2, 3, 2]
    assert set(run.series.running) == {0, 1}
    assert set(run.series.milli_gpus) == {0, 1000}


def test_the_settings_of_a_run_are_named_in_its_result(trace: str) -> None:
    result = summarise(
        replay(Replay(trace, "1x1", "tiresias", restart_cost=0.0, span_penalty=0.1, seed=5))
    )
    assert result["policy"] == "tiresias"
    assert result["placement"] == "consolidated"
    assert result["costs"]["restart"] == result["costs"]["resume"] == 0.0
    assert result["costs"]["span_penalty"] == 0.1
    assert result["seed"] == 5
