"""The result of a run, against figures worked out by hand."""

import json

import numpy as np
import pytest
from synthetic_runs import job, random_run, run

from dovetail.metrics.records import Amounts
from dovetail.metrics.summary import SCHEMA, summarise
from dovetail.model.job import Status


def tiny(**fields):
    """Four GPUs. a takes all of them for 100 s; b and c wait for it; d asks for eight.

    c is stopped once and pays 10 s for coming back, so it holds devices for 50 s of its 40 s work.
    """
    rows = [
        job(3, 60, None, 60, gpus=8, tenant="y", status=Status.REJECTED, reason="never fits"),
        job(0, 0, 0, 100, gpus=4, tenant="x"),
        job(1, 20, 100, 150, gpus=2, tenant="y"),
        job(2, 50, 100, 170, gpus=2, tenant="y", held=50, work=40, preemptions=1),
    ]
    return run(rows, **{"preemptions": 1, "events": 9, **fields})


def test_times_of_the_tiny_run_are_those_worked_out_by_hand():
    result = summarise(tiny())
    assert result["jct"] == pytest.approx(
        {"mean": 350 / 3, "median": 120, "p95": 129, "p99": 129.8}
    )
    assert result["wait"] == pytest.approx({"mean": 50, "median": 70, "p95": 79, "p99": 79.8})
    assert result["slowdown"] == pytest.approx(
        {"mean": 2.2, "median": 2.6, "p95": 2.96, "p99": 2.992, "floor": 10}
    )


def test_makespan_and_use_of_the_tiny_run_are_those_worked_out_by_hand():
    result = summarise(tiny())
    assert result["makespan"] == 170
    assert result["utilisation"] == {"gpu": pytest.approx(600 / 680), "cpu": None, "memory": None}


def test_fairness_of_the_tiny_run_is_the_one_worked_out_by_hand():
    """Demand is 4, 6, 8, 4, 2 GPUs from 0, 20, 50, 100, 150 s on: contention 1.65, 1.5, 4/3."""
    fairness = summarise(tiny())["fairness"]
    ratios = [100 / 165, 130 / 75, 120 / (160 / 3)]
    assert fairness["jain"] == pytest.approx(3.8**2 / (2 * (1 + 2.8**2)))
    assert fairness["finish_time"] == pytest.approx(
        {"mean": sum(ratios) / 3, "worst": 2.25, "unfair": 2 / 3}
    )


def test_tenants_of_the_tiny_run_have_their_own_means():
    tenants = summarise(tiny())["tenants"]
    assert tenants["x"] == pytest.approx(
        {"jobs": 1, "finished": 1, "mean_jct": 100, "mean_wait": 0, "mean_slowdown": 1}
    )
    assert tenants["y"] == pytest.approx(
        {"jobs": 3, "finished": 2, "mean_jct": 125, "mean_wait": 75, "mean_slowdown": 2.8}
    )


def test_settings_and_counters_are_passed_through():
    result = summarise(tiny(wall_seconds=1.5, peak_memory_mib=40.0, notices=["a word"]))
    assert result["schema"] == SCHEMA
    assert (result["trace"], result["policy"], result["seed"]) == ("hand.csv", "fifo", 0)
    assert result["costs"]["restart"] == 30
    assert (result["preemptions"], result["moves"], result["events"]) == (1, 0, 9)
    assert (result["wall_seconds"], result["peak_memory_mib"]) == (1.5, 40)
    assert result["notices"] == ["a word"]
    assert "options" not in result


def test_settings_beyond_the_eight_are_kept_under_options():
    made = tiny()
    made.settings["span_penalty"] = 0.9
    assert summarise(made)["options"] == {"span_penalty": 0.9}


def test_every_outcome_is_counted_and_the_counts_add_up():
    statuses = [*Status, Status.DONE]
    rows = [job(i, 0, 0, 10, status=status) for i, status in enumerate(statuses)]
    jobs = summarise(run(rows))["jobs"]
    assert jobs == {
        "submitted": 10,
        "finished": 2,
        "failed": 1,
        "rejected": 1,
        "cancelled": 1,
        "running": 1,
        "waiting": 4,
    }
    assert sum(jobs.values()) == 2 * jobs["submitted"]


def test_a_window_limits_the_times_but_not_the_counts():
    result = summarise(tiny(measure=(1, 3)))
    assert result["measure"] == {"from": 1, "to": 3, "jobs": 2, "finished": 2}
    assert result["jct"]["mean"] == 125
    assert result["jobs"]["submitted"] == 4
    assert result["makespan"] == 170
    assert result["tenants"]["x"]["jobs"] == 0
    assert result["fairness"]["jain"] == 1
    assert result["fairness"]["finish_time"]["worst"] == pytest.approx(2.25)


@pytest.mark.parametrize("measure", [(4, 9), (3, 4), (2, 2), (9, 2)])
def test_a_window_without_finished_jobs_gives_nulls(measure):
    result = summarise(tiny(measure=measure))
    assert result["jct"] == dict.fromkeys(("mean", "median", "p95", "p99"))
    assert result["wait"] == result["jct"]
    assert result["fairness"]["jain"] is None
    assert set(result["fairness"]["finish_time"].values()) == {None}
    json.dumps(result, allow_nan=False)


def test_an_empty_run_gives_nulls():
    result = summarise(run([]))
    assert result["jobs"]["submitted"] == 0
    assert result["makespan"] is None
    assert result["utilisation"] == {"gpu": None, "cpu": None, "memory": None}
    assert result["tenants"] == {}
    json.dumps(result, allow_nan=False)


def test_a_run_in_which_nothing_started_has_no_makespan():
    result = summarise(run([job(0, 5, None, status=Status.WAITING)], end=50.0))
    assert result["makespan"] is None
    assert result["utilisation"]["gpu"] is None


def test_a_failed_job_that_held_devices_counts_in_the_makespan():
    rows = [job(0, 10, 10, 20), job(1, 10, 10, 500, status=Status.FAILED)]
    assert summarise(run(rows))["makespan"] == 490


def test_a_job_cancelled_before_it_started_does_not():
    rows = [job(0, 10, 10, 20), job(1, 10, None, 500, status=Status.CANCELLED)]
    assert summarise(run(rows))["makespan"] == 10


def test_a_job_still_running_stretches_the_makespan_to_the_end_of_the_run():
    rows = [job(0, 10, 10, 20), job(1, 10, 10, held=90, work=300, status=Status.RUNNING)]
    result = summarise(run(rows, gpus=1, end=110.0))
    assert result["makespan"] == 100
    assert result["utilisation"]["gpu"] == 1


def test_use_of_cpu_and_memory_is_stated_where_the_cluster_states_them():
    used = Amounts(milli_gpus=1, cpu=17_000, memory=34)
    result = summarise(tiny(capacity=Amounts(4000, cpu=1000, memory=0.5), used=used))
    assert result["utilisation"]["cpu"] == pytest.approx(0.1)
    assert result["utilisation"]["memory"] == pytest.approx(0.4)


def test_nan_and_numpy_values_never_reach_the_json():
    report = {
        "ratio": float("nan"),
        "share": np.float64(0.5),
        "counts": (np.int64(3), float("inf")),
    }
    result = summarise(tiny(policy_report=report))
    assert result["policy_report"] == {"ratio": None, "share": 0.5, "counts": [3, None]}
    json.dumps(result, allow_nan=False)


def test_rejections_are_told_by_reason_and_add_up():
    def turned_away(i, reason):
        return job(i, 0, None, 0, status=Status.REJECTED, reason=reason)

    failed = job(4, 0, 0, 1, status=Status.FAILED, reason="broke")
    rows = [turned_away(0, "too big"), turned_away(1, ""), turned_away(2, "too big"), failed]
    result = summarise(run(rows))
    assert result["rejections"] == {"too big": 2, "no reason given": 1}
    assert list(result["rejections"]) == ["too big", "no reason given"]
    assert sum(result["rejections"].values()) == result["jobs"]["rejected"]


def test_deadlines_are_met_missed_rejected_or_undecided():
    rows = [
        job(0, 0, 0, 10, deadline=10.0),
        job(1, 0, 0, 11, deadline=10.0),
        job(2, 0, 0, 5, deadline=10.0, status=Status.FAILED),
        job(3, 0, None, 0, deadline=10.0, status=Status.REJECTED),
        job(4, 0, 0, held=9, status=Status.RUNNING, deadline=99.0),
        job(5, 0, None, status=Status.WAITING, deadline=9.0),
        job(6, 0, 0, 500),
    ]
    result = summarise(run(rows, end=50.0))
    expected = {"jobs": 6, "met": 1, "missed": 3, "rejected": 1, "undecided": 1}
    assert result["deadlines"] == expected
    assert "deadlines" not in summarise(tiny())


def test_a_short_job_counts_as_ten_seconds_long():
    result = summarise(run([job(0, 0, 19, 20, work=1), job(1, 0, 0, 1, work=1)]))
    assert result["slowdown"]["mean"] == 1.5


def test_rounding_never_makes_a_wait_negative():
    result = summarise(run([job(0, 0.1, 0.1, 0.3, held=0.2 + 1e-12)]))
    assert result["wait"]["mean"] == 0


def test_the_order_in_which_jobs_left_does_not_matter():
    there, back = tiny(), tiny()
    rows = random_run(300, seed=5)
    assert summarise(there) == summarise(back)
    forward, backward = summarise(rows), summarise(reversed_rows(rows))
    assert backward["jct"] == pytest.approx(forward["jct"])
    assert list(backward["tenants"]) == list(forward["tenants"])


def reversed_rows(made):
    records = made.records
    for name in ("id", "submit", "first_start", "end", "run_time", "work", "milli_gpus"):
        getattr(records, name).reverse()
    records.tenant.reverse()
    records.outcome.reverse()
    return made
