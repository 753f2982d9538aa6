"""Fairness against values worked out by hand, and against a slow but obvious integral."""

import numpy as np
import pytest
from synthetic_runs import job, random_run, run

from dovetail.metrics.columns import sample
from dovetail.metrics.fairness import (
    Stays,
    contention,
    finish_time_fairness,
    finish_time_ratios,
    jain,
    stays,
)
from dovetail.model.job import Status


def floats(*values):
    return np.array(values, dtype=float)


@pytest.mark.parametrize(
    ("values", "index"),
    [
        ((1, 1, 1), 1.0),
        ((5,), 1.0),
        ((1, 0, 0, 0), 0.25),
        ((1, 2, 3), 36 / 42),
        ((0, 0), 1.0),
    ],
)
def test_jain_is_one_for_equals_and_one_nth_for_a_single_winner(values, index):
    assert jain(floats(*values)) == pytest.approx(index)


def test_jain_of_nobody_is_unknown():
    assert jain(floats()) is None


def test_contention_is_the_average_demand_during_the_stay_over_capacity():
    everyone = Stays(floats(0, 20, 50), floats(100, 150, 170), floats(4, 2, 2))
    found = contention(everyone, everyone.since, everyone.until, 4)
    assert found == pytest.approx([1.65, 1.5, 4 / 3])


def test_a_stay_of_no_length_has_contention_one():
    everyone = Stays(floats(0, 5), floats(10, 5), floats(4, 4))
    assert contention(everyone, floats(5), floats(5), 2) == pytest.approx([1])


def test_contention_keeps_its_digits_when_times_are_seconds_since_1970():
    epoch = 1_700_000_000.0
    everyone = Stays(floats(0, 20, 50) + epoch, floats(100, 150, 170) + epoch, floats(4, 2, 2))
    found = contention(everyone, everyone.since, everyone.until, 4)
    assert found == pytest.approx([1.65, 1.5, 4 / 3], rel=1e-9)


def test_contention_of_many_jobs_equals_the_sum_over_all_pairs():
    made = random_run(200, seed=3)
    all_jobs, counted = stays(made), sample(made)
    overlap = np.minimum(all_jobs.until[:, None], counted.end) - np.maximum(
        all_jobs.since[:, None], counted.submit
    )
    slow = (np.maximum(overlap, 0) * all_jobs.amount[:, None]).sum(axis=0) / counted.jct / 512
    assert contention(all_jobs, counted.submit, counted.end, 512) == pytest.approx(slow)


def test_a_job_that_takes_twice_as_long_on_a_cluster_asked_for_twice_over_is_treated_fairly():
    assert finish_time_ratios(floats(200), floats(100), floats(2)) == pytest.approx([1])


def test_a_job_that_waits_on_an_idle_cluster_is_not():
    assert finish_time_ratios(floats(200), floats(100), floats(0.5)) == pytest.approx([2])


def test_jobs_without_gpus_compete_for_none():
    made = run([job(0, 0, 0, 100, gpus=8), job(1, 0, 0, 100, gpus=0)], gpus=4)
    assert finish_time_fairness(made, sample(made)) == pytest.approx([0.5, 1])


def test_rejected_jobs_demand_nothing_and_jobs_still_there_demand_until_the_end():
    rows = [
        job(0, 0, 0, 100, gpus=4),
        job(1, 0, None, 0, gpus=64, status=Status.REJECTED),
        job(2, 50, None, gpus=4, status=Status.WAITING),
    ]
    made = run(rows, gpus=4, end=200.0)
    assert stays(made).until.tolist() == [100, 200]
    assert finish_time_fairness(made, sample(made)) == pytest.approx([1 / 1.5])


def test_a_cluster_without_gpus_has_no_contention():
    made = run([job(0, 0, 0, 100, gpus=0)], gpus=0)
    assert finish_time_fairness(made, sample(made)) == pytest.approx([1])
