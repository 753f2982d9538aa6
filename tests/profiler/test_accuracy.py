"""Predicted against true speed on jobs whose surface is known, and what it cost to predict.

`pytest -rP tests/profiler/test_accuracy.py` shows the figures.
"""

from __future__ import annotations

import pytest
from synthetic_jobs import JOBS, Job, errors, median_error, profiled


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.03])
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_few_points_tell_the_whole_grid(job: Job, noise: float) -> None:
    for seed in range(10):
        findings = profiled(job, noise, seed)
        error, cost = median_error(job, findings), findings.cost
        assert error <= 0.05
        assert cost.points <= 9
        assert cost.share <= (0.04 if job.dataset else 0.34)
    print(
        f"{job.name}, noise {noise:.0%}: {cost.points} of {cost.grid_points} points "
        f"({cost.share:.0%}), median error {error:.1%}, expected {findings.error:.1%}"
    )


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_nine_in_ten_predictions_are_within_a_tenth(job: Job) -> None:
    for seed in range(10):
        off = sorted(errors(job, profiled(job, 0.03, seed)))
        assert off[int(len(off) * 0.9)] <= 0.10


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_the_expected_error_is_of_the_size_of_the_true_one(job: Job) -> None:
    for seed in range(10):
        findings = profiled(job, 0.02, seed)
        assert median_error(job, findings) <= 2 * findings.error
        assert findings.error <= 0.05


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_more_cores_than_a_minute_each_would_allow(job: Job) -> None:
    findings = profiled(job, 0.02, seed=1, most=96)
    assert findings.cost.points <= 8
    assert median_error(job, findings, most=96) <= 0.05
