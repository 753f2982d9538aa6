"""What is learned from jobs that ended, measured on a real trace."""

from __future__ import annotations

import heapq
import json
import statistics
from pathlib import Path

import pytest

from dovetail.model.job import JobSpec
from dovetail.model.request import gang
from dovetail.predictors.history import History
from dovetail.traces.loader import load

WARM = 1000


def job(number: int = 1, **more: object) -> JobSpec:
    return JobSpec(number, "x", 0.0, gang(1), **more)  # type: ignore[arg-type]


def test_before_anything_was_seen_the_owner_is_believed_and_then_a_default() -> None:
    history = History(default=100.0)
    assert history.expect(job()) == pytest.approx(100.0)
    assert history.expect(job(estimate=7.0)) == pytest.approx(7.0)
    low, high = history.quantiles(job(), (0.1, 0.9))
    assert low < 20 and high > 500


def test_the_finest_key_that_has_seen_enough_counts() -> None:
    history = History()
    for _ in range(10):
        history.learn(job(user="ann", group="resnet"), 50.0)
        history.learn(job(user="bob", group="resnet"), 5000.0)
    assert history.expect(job(user="ann", group="resnet")) == pytest.approx(50.0)
    assert history.expect(job(user="bob", group="new")) == pytest.approx(5000.0)
    assert 50.0 <= history.expect(job(user="eve")) <= 5000.0


def test_an_owner_who_says_how_long_is_believed_over_other_jobs_but_not_over_the_same() -> None:
    history = History()
    for _ in range(10):
        history.learn(job(user="ann", group="resnet"), 50.0)
    assert history.expect(job(user="ann", group="other", estimate=9.0)) == pytest.approx(9.0)
    assert history.expect(job(user="ann", group="resnet", estimate=9.0)) == pytest.approx(50.0)


def test_one_job_alike_is_not_yet_certainty() -> None:
    history = History()
    history.learn(job(user="ann"), 50.0)
    low, middle, high = history.quantiles(job(user="ann"), (0.1, 0.5, 0.9))
    assert low < 25.0 < middle < 100.0 < high


def test_quantiles_rise_and_survive_being_stored() -> None:
    history = History()
    for length in (10.0, 30.0, 20.0, 400.0, 15.0):
        history.learn(job(user="ann"), length)
    levels = [0.05, 0.1, 0.5, 0.9, 0.95]
    found = history.quantiles(job(user="ann"), levels)
    assert found == sorted(found)
    again = History()
    again.restore(json.loads(json.dumps(history.snapshot())))
    assert again.quantiles(job(user="ann"), levels) == found


@pytest.mark.shared
def test_on_philly_ranges_hold_what_they_promise_and_beat_saying_the_mean_or_the_median(
    public_traces: Path,
) -> None:
    history, ending, lengths = History(), [], []  # type: ignore[var-annotated]
    held, errors, means, medians = 0, [], [], []
    total, middle = 0.0, 0.0
    for trace_job in load(str(public_traces / "philly_82k.csv.gz")).jobs:
        spec, work = trace_job.spec, trace_job.work
        while ending and ending[0][0] <= spec.submit:
            _, _, old, length = heapq.heappop(ending)
            history.learn(old, length)
            lengths.append(length)
            total += length
            if len(lengths) % WARM == 0:
                middle = statistics.median(lengths)
        if len(lengths) >= WARM:
            low, median, high = history.quantiles(spec, (0.1, 0.5, 0.9))
            held += low <= work <= high
            errors.append(abs(median - work))
            means.append(abs(total / len(lengths) - work))
            medians.append(abs(middle - work))
        heapq.heappush(ending, (spec.submit + work, spec.id, spec, work))
    assert 0.7 <= held / len(errors) <= 0.9
    assert statistics.median(errors) < statistics.median(medians) / 2
    assert statistics.median(errors) < statistics.median(means) / 2
