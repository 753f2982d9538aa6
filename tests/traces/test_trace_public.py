"""The public traces beside the project, whole: how many jobs, and what is in them."""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from trace_support import public_data

from dovetail.model.trace import Trace
from dovetail.traces.loader import load
from dovetail.traces.openb import nodes

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The traces that are published in archives."""
    shared = public_data()
    target = tmp_path_factory.mktemp("archives")
    archives = ("traces/shockwave_traces", "gavel/msr_seed0_vc_traces")
    for archive in (*archives, "gavel/physical_cluster_traces"):
        with tarfile.open(shared / f"{archive}.tar.gz") as tar:
            tar.extractall(target, filter="data")
    yield target


def gpu_hours(trace: Trace) -> float:
    return sum(job.spec.request.milli_gpus * job.work for job in trace.jobs) / 3_600_000


@pytest.mark.parametrize(
    ("name", "format", "jobs"),
    [
        ("traces/philly_82k.csv.gz", "philly", 82247),
        ("traces/tiresias_60_job.csv", "tiresias", 60),
        ("traces/synth480_seed42.csv", "tiresias", 480),
        ("traces/muri_trace1.csv.gz", "muri", 1494),
        ("traces/muri_trace2.csv.gz", "muri", 5755),
        ("traces/muri_trace3.csv.gz", "muri", 992),
        ("traces/muri_trace4.csv.gz", "muri", 2638),
        ("traces/muri_trace3_seconds_tiresias_format.csv", "tiresias", 992),
        ("traces/openb_pod_list_default.csv.gz", "openb", 8152),
        ("traces/openb_pod_list_gpushare100.csv.gz", "openb", 8152),
        ("traces/openb_pod_list_gpuspec33.csv.gz", "openb", 8152),
        ("synergy/static100.jobs.csv", "synergy", 100),
        ("synergy/dynamic100.jobs.csv", "synergy", 100),
        ("synergy/single_l9_s20-70-10_n1000.jobs.csv", "synergy", 1000),
        ("synergy/multi_l5_s20-70-10_n400.jobs.csv", "synergy", 400),
    ],
)
def test_a_public_trace_is_recognised_and_whole(
    name: str, format: str, jobs: int, shared: Path
) -> None:
    trace = load(str(shared / name))
    assert (trace.format, trace.count) == (format, jobs)


def test_the_week_of_philly_that_others_simulate(shared: Path) -> None:
    week = load(
        str(shared / "traces/philly_82k.csv.gz"), start="2017-10-01", stop="2017-10-07T23:59:45"
    )
    clusters = (shared / "traces/philly_vc_nodes.csv").read_text().split()[2:]
    partitions = {line.split(",")[0] for line in clusters}
    assert len(partitions) == 11
    assert sum(job.spec.tenant in partitions for job in week.jobs) == 10650
    assert week.origin is not None and week.origin.isoformat() == "2017-10-01T00:00:45+00:00"
    assert week.notices == ["the file was not in submit order; its jobs were sorted"]


def test_the_480_jobs_can_be_made_again(shared: Path) -> None:
    recorded = load(str(shared / "traces/synth480_seed42.csv"))
    assert list(load("generate:tiresias480").jobs) == list(recorded.jobs)


def test_muri_milliseconds_are_the_seconds_of_its_other_form(shared: Path) -> None:
    milliseconds = load(str(shared / "traces/muri_trace3.csv.gz"))
    seconds = load(str(shared / "traces/muri_trace3_seconds_tiresias_format.csv"))
    plain = [job._replace(spec=job.spec._replace(priority=0.0)) for job in milliseconds.jobs]
    assert [(job.spec.name, job.spec.submit, job.spec.request, job.work) for job in plain] == [
        (job.spec.name, job.spec.submit, job.spec.request, job.work) for job in seconds.jobs
    ]


def test_openb_pods_are_all_there(shared: Path) -> None:
    trace = load(str(shared / "traces/openb_pod_list_default.csv.gz"))
    assert Counter(job.outcome for job in trace.jobs) == {
        "finished": 5385,
        "failed": 1870,
        "cancelled": 897,  # never scheduled
    }
    ran = [job for job in trace.jobs if job.outcome != "cancelled" and job.spec.request.gpus]
    assert sum(job.work > 0 for job in ran) == 6203
    milli = sum(job.spec.request.milli_gpus for job in trace.jobs)
    assert milli / 1000 == pytest.approx(6086.8, abs=0.05)


def test_openb_machines_are_all_there(shared: Path) -> None:
    machines = nodes(str(shared / "traces/openb_node_list_gpu_node.csv"))
    assert len(machines) == 1213
    assert sum(node.gpus for node in machines) == 6212
    assert Counter(node.type for node in machines).most_common(2) == [("G2", 549), ("T4", 404)]


@pytest.mark.parametrize("jobs", [120, 220, 460, 900])
def test_shockwave_traces_bring_their_durations(jobs: int, members: Path) -> None:
    found = sorted((members / "reproduce").glob(f"{jobs}_*.trace"))
    assert found
    assert all(load(str(path)).count == jobs for path in found)


@pytest.mark.parametrize(
    ("name", "jobs"), [("max_min_fairness", 96), ("minimize_makespan", 100), ("small_test", 20)]
)
def test_gavel_traces_need_throughputs(name: str, jobs: int, members: Path, shared: Path) -> None:
    rates = shared / "gavel/physical_cluster_throughputs.json.gz"
    path = members / "physical_cluster" / f"{name}.trace"
    trace = load(str(path), format=f"gavel:throughputs={rates}")
    assert trace.count == jobs


def test_gavel_traces_of_the_old_form(members: Path, shared: Path) -> None:
    format = f"gavel:throughputs={shared / 'gavel/simulation_throughputs.json.gz'}"
    trace = load(str(members / "seed=0" / "7f04ca.trace"), format=format)
    assert trace.count == 972
    # The same Philly job is in a Muri trace with its length: the V100 of then was 6 % faster.
    assert next(iter(trace.jobs)).work == pytest.approx(2868294 * 1.06, rel=0.001)


def test_a_public_trace_that_is_cut_short_is_told_with_its_line(
    members: Path, shared: Path
) -> None:
    format = f"gavel:throughputs={shared / 'gavel/simulation_throughputs.json.gz'}"
    trace = load(str(members / "seed=0" / "ee9e8c.trace"), format=format, skip_bad=True)
    assert trace.count == 1978
    assert len(trace.notices) == 1 and "ee9e8c.trace:1979: 2 fields" in trace.notices[0]


def test_synergy_work_is_the_duration_at_the_proportional_share(shared: Path) -> None:
    first = next(iter(load(str(shared / "synergy/dynamic100.jobs.csv")).jobs))
    assert (first.spec.submit, first.work, first.spec.model) == (8.0, 14009.4, "alexnet")


def test_philly_offers_978_thousand_gpu_hours(shared: Path) -> None:
    assert gpu_hours(load(str(shared / "traces/philly_82k.csv.gz"))) == pytest.approx(978078, abs=1)
