"""Synergy's workloads: the artifact's very jobs where they are known, its recipe elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from dovetail.model.errors import UserError
from dovetail.model.trace import TraceJob
from dovetail.profiles import published
from dovetail.traces.kinds.model_mix import CLASSES, STEPS, models
from dovetail.traces.kinds.synergy import PHILLY
from dovetail.traces.loader import load


def made(text: str) -> list[TraceJob]:
    return list(load(f"generate:synergy,{text}").jobs)


# ---- models ------------------------------------------------------------------------------------


def test_models_and_steps_are_those_of_the_published_profiles() -> None:
    assert {name: profile.step for name, profile in published().items()} == STEPS
    tasks = {name: task for task, names in CLASSES.items() for name in names}
    assert {name: profile.task for name, profile in published().items()} == tasks


@pytest.mark.parametrize(
    ("split", "first"),
    [
        ((20, 70, 10), "alexnet gnmt transformer m5 lstm gnmt res18 transformer lstm gnmt"),
        ((33, 33, 33), "alexnet gnmt m5 res18 transformer deepspeech res50 lstm m5 mobilenet"),
        ((50, 0, 50), "alexnet m5 res18 deepspeech res50 m5 mobilenet deepspeech shufflenet m5"),
        ((0, 100, 0), "gnmt transformer lstm gnmt transformer lstm gnmt transformer lstm gnmt"),
    ],
)
def test_the_class_furthest_behind_its_share_is_next(split: tuple[float, ...], first: str) -> None:
    assert list(islice(models(split), 10)) == first.split()


def test_shares_are_met_after_every_hundred_jobs() -> None:
    tasks = {name: task for task, names in CLASSES.items() for name in names}
    drawn = Counter(tasks[name] for name in islice(models((20, 70, 10)), 100))
    assert drawn == {"image": 20, "language": 70, "speech": 10}


# ---- the artifact's own lists ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recipe", "file"),
    [
        ("rate=9,jobs=1000", "single_l9_s20-70-10_n1000.jobs.csv"),
        ("rate=5,jobs=400,sizes=mix", "multi_l5_s20-70-10_n400.jobs.csv"),
    ],
)
def test_seed_42_gives_the_jobs_of_the_artifact(recipe: str, file: str, shared: Path) -> None:
    assert made(recipe) == list(load(str(shared / "synergy" / file)).jobs)


def test_the_shares_of_sizes_were_counted_in_the_philly_trace(shared: Path) -> None:
    counted: Counter[int] = Counter()
    for job in load(str(shared / "traces" / "philly_82k.csv.gz")).jobs:
        size = job.spec.request.gpus
        if 10**1.5 < job.work / 60 < 10**4 and size <= 16:
            counted[size if size in PHILLY else 1] += 1
    total = counted.total()
    assert {size: round(counted[size] / total, 5) for size in PHILLY} == PHILLY


# ---- the recipe --------------------------------------------------------------------------------


def test_the_first_jobs_of_seed_42() -> None:
    jobs = [(job.spec.submit, job.spec.model, job.work) for job in made("rate=9,jobs=3")]
    assert [(at, model) for at, model, _ in jobs] == [
        (409, "alexnet"),
        (951, "gnmt"),
        (1053, "transformer"),
    ]
    assert [work for _, _, work in jobs] == pytest.approx([2068.2, 4101.72, 19642.39])


@pytest.mark.parametrize("sizes", ["single", "philly", "mix"])
def test_lengths_arrivals_and_steps(sizes: str) -> None:
    jobs = made(f"rate=10,jobs=20000,seed=1,sizes={sizes}")
    minutes = [job.work / 60 for job in jobs]
    assert min(minutes) > 10**1.5 - 0.02
    assert max(minutes) <= 10**4
    assert sum(at <= 1000 for at in minutes) / len(jobs) == pytest.approx(0.8, abs=0.01)
    assert sum(minutes) / len(jobs) == pytest.approx(1006, rel=0.05)
    # Gaps are rounded up, by half a second in the mean.
    assert jobs[-1].spec.submit / len(jobs) == pytest.approx(360.5, rel=0.03)
    steps = [job.work / STEPS[job.spec.model] for job in jobs]
    assert all(abs(number - round(number)) < 1e-6 for number in steps)


@pytest.mark.parametrize(
    ("sizes", "shares"),
    [
        ("single", {1: 1.0}),
        ("mix", {1: 0.70, 2: 0.10, 4: 0.15, 8: 0.05}),
        ("philly", {1: 0.909, 2: 0.009, 4: 0.040, 8: 0.037, 16: 0.004}),
    ],
)
def test_sizes(sizes: str, shares: dict[int, float]) -> None:
    jobs = made(f"rate=10,jobs=20000,sizes={sizes}")
    counts = Counter(job.spec.request.gpus for job in jobs)
    assert {size: counts[size] / len(jobs) for size in counts} == pytest.approx(shares, abs=0.01)


def test_philly_sizes_change_nothing_but_sizes() -> None:
    single, philly = (made(f"rate=10,jobs=500,sizes={sizes}") for sizes in ("single", "philly"))
    assert [job.work for job in single] == [job.work for job in philly]
    assert [job.spec.submit for job in single] == [job.spec.submit for job in philly]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("synergy", "synergy needs rate=…"),
        ("synergy,rate=0", "rate=0.0: it must be more than 0"),
        ("synergy,rate=nan", "rate=nan: it must be more than 0"),
        ("synergy,rate=1,jobs=0", "jobs=0: it must be more than 0"),
        ("synergy,rate=1,seed=-1", "seed=-1: it must be 0 or more"),
        ("synergy,rate=1,sizes=wide", "sizes=wide: say single, philly or mix"),
        ("synergy,rate=1,split=20/80", "split=20/80: write the shares of image, language, speech"),
        ("synergy,rate=1,split=20/-1/8", "split=20/-1/8: write the shares"),
        ("synergy,rate=1,split=0/0/0", "split=0/0/0: write the shares"),
        ("synergy,rate=1,load=1", "synergy has no parameter 'load'"),
        ("synergy-philly", "synergy-philly needs trace=…"),
        ("synergy-philly,trace=no.csv", "no.csv: no such file"),
        ("synergy-philly,trace=no.csv,from=9,to=2", "from=9, to=2: hours, the first one earlier"),
        ("synergy-philly,trace=no.csv,form=9", "no parameter 'form'; did you mean 'from'?"),
        ("synergy-philly,trace=no.csv,jobs=0", "jobs=0: it must be more than 0"),
    ],
)
def test_a_wrong_recipe_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(UserError) as refusal:
        load(f"generate:{text}")
    assert complaint in str(refusal.value)


# ---- the cut of the real trace -----------------------------------------------------------------

LOG = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-02 03:00:00,50,1,50,red
2017-10-01 00:00:00,10,1,10,red
2017-10-02 01:00:00,20,3,60,blue
2017-10-02 02:00:00,30,4,120,blue
2017-10-02 04:00:00,40,32,1280,red
2017-10-02 05:00:00,60,16,960,red
2017-10-09 05:00:00,70,1,70,red
"""


@pytest.fixture
def log(file: Callable[..., str]) -> str:
    return file(LOG)


def test_a_cut_has_the_known_sizes_of_an_interval_and_begins_at_second_0(log: str) -> None:
    trace = load(f"generate:synergy-philly,trace={log},from=24,to=30")
    told = [
        (job.spec.submit, job.spec.request.gpus, job.work, job.spec.model) for job in trace.jobs
    ]
    assert told == [(0, 4, 30, "alexnet"), (3600, 1, 50, "gnmt"), (10800, 16, 60, "transformer")]
    assert [job.spec.id for job in trace.jobs] == [0, 1, 2]
    assert [job.spec.tenant for job in trace.jobs] == ["blue", "red", "red"]
    assert trace.count == 3
    assert trace.notices == [
        "2 jobs of other sizes than 1, 2, 4, 8 or 16 GPUs were left out",
        f"{log} has 3 jobs between these hours, fewer than 8,000",
    ]


def test_a_cut_ends_after_as_many_jobs_as_asked_for(log: str) -> None:
    trace = load(f"generate:synergy-philly,trace={log},from=24,to=300,jobs=2,split=0/0/1")
    assert [job.spec.model for job in trace.jobs] == ["m5", "deepspeech"]
    assert trace.count == 2


@pytest.mark.parametrize(
    ("hours", "complaint"),
    [("from=50,to=60", "no job is submitted between"), ("from=28,to=28", "has no job of 1, 2, 4")],
)
def test_hours_without_jobs_are_refused(log: str, hours: str, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        load(f"generate:synergy-philly,trace={log},{hours}")


def test_the_cut_of_the_paper_from_the_csv_form(shared: Path) -> None:
    path = shared / "traces" / "philly_82k.csv.gz"
    trace = load(f"generate:synergy-philly,trace={path},from=1728,to=2328")
    jobs = list(trace.jobs)
    assert trace.count == len(jobs) == 8000
    assert {job.spec.request.gpus for job in jobs} == {1, 2, 4, 8, 16}
    assert jobs[0].spec.submit == 0
