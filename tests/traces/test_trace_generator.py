"""Generated workloads: the jobs and the load asked for, and the same for the same text."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from itertools import islice, pairwise

import pytest

from dovetail.model.errors import UserError
from dovetail.model.trace import TraceJob
from dovetail.traces.generator import KINDS, generate
from dovetail.traces.kinds.stream import CHUNK
from dovetail.traces.loader import load

#: what each kind needs besides the number of jobs
TEXTS = {
    "philly": "philly,load=0.8,gpus=512",
    "gavel": "gavel,load=0.8,gpus=64",
    "poisson": "poisson,rate=60,mean=100,sizes=1:3|4:1",
    "tiresias480": "tiresias480",
    "synergy": "synergy,rate=60,sizes=mix",
}

RECORDED = {"synergy-philly"}
"""Cuts of recorded traces; `test_trace_synergy` has their tests."""

every_kind = pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in RECORDED])


def text_of(kind: str) -> str:
    if kind not in TEXTS:
        pytest.fail(f"give {kind} an example in TEXTS")
    return TEXTS[kind]


def made(text: str, gpus: int | None = None) -> list[TraceJob]:
    return list(load(f"generate:{text}", cluster_gpus=gpus).jobs)


def gpu_seconds(jobs: list[TraceJob]) -> float:
    return sum(job.spec.request.gpus * job.work for job in jobs)


def offered(jobs: list[TraceJob], gpus: int) -> float:
    return gpu_seconds(jobs) / (gpus * (jobs[-1].spec.submit - jobs[0].spec.submit))


@every_kind
@pytest.mark.parametrize("jobs", [1, 2, 999, CHUNK + 1])
def test_there_are_as_many_jobs_as_asked_for_in_order(kind: str, jobs: int) -> None:
    trace = load(f"generate:{text_of(kind)},jobs={jobs}")
    found = list(trace.jobs)
    assert len(found) == trace.count == jobs
    assert [job.spec.id for job in found] == list(range(jobs))
    assert all(a.spec.submit <= b.spec.submit for a, b in pairwise(found))
    assert all(job.work >= 0 and job.spec.request.gpus >= 1 for job in found)


@pytest.mark.parametrize("kind", ["philly", "gavel", "poisson", "tiresias480"])
def test_the_first_job_comes_at_second_0(kind: str) -> None:
    assert made(text_of(kind))[0].spec.submit == 0


@every_kind
def test_the_same_text_gives_the_same_jobs(kind: str) -> None:
    trace = generate(text_of(kind))
    assert list(trace.jobs) == list(trace.jobs) == made(text_of(kind))


@every_kind
def test_another_seed_gives_other_jobs(kind: str) -> None:
    assert made(f"{text_of(kind)},seed=7") != made(f"{text_of(kind)},seed=8")


@every_kind
def test_no_job_is_wider_than_the_cluster(kind: str) -> None:
    text = text_of(kind).replace(",gpus=512", "").replace(",gpus=64", "")
    jobs = made(f"{text},jobs=2000", gpus=3)
    assert max(job.spec.request.gpus for job in jobs) == 3


@pytest.mark.parametrize("kind", ["philly", "gavel", "poisson"])
@pytest.mark.parametrize("load", [0.3, 1.2])
def test_the_load_is_what_was_asked_for(kind: str, load: float) -> None:
    jobs = made(f"{kind},jobs=5000,load={load}", gpus=100)
    assert offered(jobs, 100) == pytest.approx(load, rel=0.01)


def test_gpus_in_the_text_win_over_the_cluster() -> None:
    text = "philly,jobs=1000,load=0.5,gpus=64"
    assert made(text, gpus=128) == made(text)


def test_a_rate_is_jobs_an_hour() -> None:
    jobs = made("poisson,jobs=3601,rate=60")
    assert jobs[-1].spec.submit == pytest.approx(3600 * 60)


# ---- philly ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def philly() -> list[TraceJob]:
    return made("philly,jobs=60000,load=0.7,gpus=2816,seed=3")


def test_philly_sizes_are_mostly_single_gpus(philly: list[TraceJob]) -> None:
    sizes = Counter(job.spec.request.gpus for job in philly)
    assert sizes[1] / len(philly) == pytest.approx(0.932, abs=0.005)
    assert set(sizes) <= {1, 2, 4, 8, 12, 16, 24, 32, 64, 128}


def test_philly_lengths_have_a_heavy_tail(philly: list[TraceJob]) -> None:
    works = sorted(job.work for job in philly)
    assert works[len(works) // 2] == pytest.approx(1144, rel=0.1)  # the trace's median
    assert sum(works) / len(works) == pytest.approx(13136, rel=0.1)  # and mean
    assert works[-1] > 1_000_000


def test_philly_jobs_take_the_gpu_time_of_the_trace(philly: list[TraceJob]) -> None:
    assert gpu_seconds(philly) / len(philly) == pytest.approx(42811, rel=0.15)


def test_philly_tenants_have_unequal_weights(philly: list[TraceJob]) -> None:
    tenants = Counter(job.spec.tenant for job in philly)
    assert len(tenants) == 11
    assert tenants["6214e9"] / len(philly) == pytest.approx(0.5, abs=0.02)


def test_philly_arrivals_follow_the_day_and_the_week(philly: list[TraceJob]) -> None:
    whole = int(philly[-1].spec.submit // 604800) * 604800
    assert whole > 0
    submits = [job.spec.submit for job in philly if job.spec.submit < whole]
    by_hour = Counter(int(at % 86400 // 3600) for at in submits)
    by_day = Counter(int(at % 604800 // 86400) for at in submits)
    assert by_hour[7] > 2 * by_hour[14]
    assert by_day[4] > 2 * by_day[6]
    assert all(at.is_integer() for at in submits)


def test_a_million_jobs_are_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.traces.kinds.stream.CHUNK", 1000)
    jobs = iter(generate("philly,jobs=40000,rate=100").jobs)
    next(jobs)
    tracemalloc.start()
    for _ in islice(jobs, 30000):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000  # 30,000 jobs would be three times that


# ---- the others ------------------------------------------------------------------------------


def test_gavel_sizes_and_lengths() -> None:
    jobs = made("gavel,jobs=40000,rate=10,seed=1")
    sizes = Counter(job.spec.request.gpus for job in jobs)
    shares = {size: round(count / len(jobs), 2) for size, count in sizes.items()}
    assert shares == {1: 0.7, 2: 0.1, 4: 0.15, 8: 0.05}
    minutes = [job.work / 60 for job in jobs]
    assert min(minutes) >= 10**1.5
    assert max(minutes) <= 10**4
    assert sum(at <= 1000 for at in minutes) / len(jobs) == pytest.approx(0.8, abs=0.01)
    assert len({job.spec.model for job in jobs}) == 26


@pytest.mark.parametrize("cv", [0, 0.5, 1, 2])
def test_poisson_lengths_have_the_mean_and_spread_asked_for(cv: float) -> None:
    jobs = made(f"poisson,jobs=40000,rate=10,mean=100,cv={cv},seed=1")
    mean = sum(job.work for job in jobs) / len(jobs)
    spread = (sum((job.work - mean) ** 2 for job in jobs) / len(jobs)) ** 0.5
    assert mean == pytest.approx(100, rel=0.03)
    assert spread / 100 == pytest.approx(cv, rel=0.1, abs=1e-9)


@pytest.mark.parametrize(
    ("sizes", "shares"),
    [("2", {2: 1.0}), ("1|4", {1: 0.5, 4: 0.5}), ("1:70|8:30", {1: 0.7, 8: 0.3})],
)
def test_poisson_sizes(sizes: str, shares: dict[int, float]) -> None:
    jobs = made(f"poisson,jobs=20000,rate=10,sizes={sizes}")
    counts = Counter(job.spec.request.gpus for job in jobs)
    assert {size: counts[size] / len(jobs) for size in counts} == pytest.approx(shares, abs=0.02)


def test_an_interval_of_a_generated_trace_is_numbered_from_0() -> None:
    whole = made("tiresias480")
    trace = load("generate:tiresias480", start="300", stop="600")
    kept = [job for job in whole if 300 <= job.spec.submit <= 600]
    assert [job.spec.name for job in trace.jobs] == [job.spec.name for job in kept]
    assert [job.spec.id for job in trace.jobs] == list(range(len(kept)))
    assert trace.count is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("phily,jobs=1", "generate:phily,jobs=1: unknown kind 'phily'; did you mean 'philly'?"),
        (
            "zzz",
            "unknown kind 'zzz'; there are: gavel, philly, poisson, synergy, synergy-philly, tir",
        ),
        ("philly,job=1", "philly has no parameter 'job'; did you mean 'jobs'?"),
        ("tiresias480,x=1", "no parameter 'x'; there are: gpus, jobs, seed"),
        ("philly,jobs", "write parameters as key=value, not 'jobs'"),
        ("philly,jobs=many,rate=1", "philly:jobs=many: not a valid int"),
        ("philly,jobs=10", "say either load=… (relative to the cluster) or rate=…"),
        ("philly,rate=1,load=1", "say either load=… (relative to the cluster) or rate=…"),
        ("philly,load=0.8", "a load is relative to the cluster; say gpus=… or rate=…"),
        ("philly,load=0,gpus=8", "load=0.0: it must be more than 0"),
        ("philly,load=nan,gpus=8", "load=nan: it must be more than 0"),
        ("philly,rate=1,jobs=0", "jobs=0: it must be more than 0"),
        ("philly,rate=1,seed=-1", "seed=-1: it must be 0 or more"),
        ("poisson,rate=1,mean=-1", "mean=-1, cv=1: they must be 0 or more"),
        ("poisson,rate=1,sizes=1|x", "sizes=1|x: write 1, or 1|2|4, or 1:70|2:10|4:15|8:5"),
        ("poisson,rate=1,sizes=0", "sizes=0: write 1, or"),
        ("tiresias480,jobs=0", "jobs=0: it must be more than 0"),
    ],
)
def test_a_wrong_recipe_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        load(f"generate:{text}")
    assert complaint in str(refusal.value)


def test_a_generated_trace_has_no_format() -> None:
    with pytest.raises(UserError, match="a generated trace has no format"):
        load("generate:tiresias480", format="native")
