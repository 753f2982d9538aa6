"""Synergy's own experiments: as long as there with proportional shares, no longer with tune.

The reference is what its artifact found (../shared/data/synergy/summary.csv), in 300 s rounds with
free preemption. Events instead of rounds make proportional runs a little shorter here.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from dovetail.metrics.summary import summarise
from dovetail.simulator.experiment import Replay, replay

POLICIES = {"FIFO": "fifo:skip=true,preempt=true", "SRTF": "srtf", "LAS": "las"}
SMALL, LARGE = "4x8,cpus=24,mem=500", "16x8,cpus=24,mem=500"
CLUSTERS = {"static100": SMALL, "dynamic100": SMALL}

STATIC, DYNAMIC = "static100", "dynamic100"
SINGLE, MULTI = "single_l9_s20-70-10_n1000", "multi_l5_s20-70-10_n400"
RUNS = [
    (STATIC, "FIFO"),
    (DYNAMIC, "SRTF"),
    *((SINGLE, policy) for policy in POLICIES),
    *((MULTI, policy) for policy in POLICIES),
]

HOUR = 3600.0


class Result(NamedTuple):
    """Hours."""

    jct: float
    makespan: float
    finished: int


@cache
def ours(trace: str, policy: str, allocator: str, cluster: str) -> Result:
    settings = Replay(trace, cluster, policy, allocator=allocator, restart_cost=0.0, move_cost=0.0)
    found = summarise(replay(settings))
    return Result(found["jct"]["mean"] / HOUR, found["makespan"] / HOUR, found["jobs"]["finished"])


def run(folder: Path, trace: str, policy: str, allocator: str) -> Result:
    file = str(folder / f"{trace}.jobs.csv")
    return ours(file, POLICIES[policy], allocator, CLUSTERS.get(trace, LARGE))


def theirs(folder: Path, trace: str, policy: str, mechanism: str) -> Result:
    with open(folder / "summary.csv") as file:
        for row in csv.DictReader(file):
            if (row["trace"], row["policy"], row["mechanism"]) == (trace, policy, mechanism):
                finished = int(row["jobs_finished"])
                return Result(float(row["avg_jct_h"]), float(row["makespan_h"]), finished)
    raise LookupError((trace, policy, mechanism))


@pytest.fixture
def synergy(public_traces: Path) -> Path:
    return public_traces.parent / "synergy"


@pytest.mark.shared
def test_every_row_of_the_artifact_is_looked_at(synergy: Path) -> None:
    with open(synergy / "summary.csv") as file:
        rows = {(row["trace"], row["policy"]) for row in csv.DictReader(file)}
    assert rows == set(RUNS)


@pytest.mark.shared
@pytest.mark.parametrize(("trace", "policy"), RUNS)
def test_proportional_takes_as_long_as_in_the_artifact(
    trace: str, policy: str, synergy: Path
) -> None:
    here, there = (each(synergy, trace, policy, "proportional") for each in (run, theirs))
    assert here.finished == there.finished
    assert 0.95 <= here.jct / there.jct <= 1.02


@pytest.mark.shared
@pytest.mark.parametrize(("trace", "policy"), RUNS)
def test_tune_is_no_worse_than_in_the_artifact(trace: str, policy: str, synergy: Path) -> None:
    here, there = (each(synergy, trace, policy, "tune") for each in (run, theirs))
    assert here.finished == there.finished
    assert here.jct <= there.jct
    assert here.makespan <= there.makespan


@pytest.mark.shared
@pytest.mark.parametrize(("trace", "policy"), RUNS)
def test_tune_is_no_worse_than_greedy_and_proportional(
    trace: str, policy: str, synergy: Path
) -> None:
    tune = run(synergy, trace, policy, "tune")
    for other in ("greedy", "proportional"):
        assert tune.jct <= 1.005 * run(synergy, trace, policy, other).jct
        assert tune.makespan <= 1.005 * run(synergy, trace, policy, other).makespan


@pytest.mark.shared
def test_the_testbed_trace_ends_earlier_than_with_the_artifacts_solver(synergy: Path) -> None:
    tune, solver = run(synergy, STATIC, "FIFO", "tune"), theirs(synergy, STATIC, "FIFO", "opt")
    assert tune.makespan <= 10.4 < solver.makespan
    assert tune.jct <= 4.6 < solver.jct


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("recipe", "cluster"),
    [
        ("rate=9,jobs=300,seed=1", LARGE),
        ("rate=2.5,jobs=150,seed=7,split=60/30/10", SMALL),
        ("rate=6,jobs=200,seed=3,sizes=mix", LARGE),
        ("rate=9,jobs=250,seed=5,sizes=philly,split=33/33/33", LARGE),
        ("rate=2,jobs=150,seed=11,split=50/0/50", SMALL),
    ],
)
def test_tune_is_no_worse_than_proportional_on_jobs_it_has_not_seen(
    recipe: str, cluster: str, policy: str
) -> None:
    trace, how = f"generate:synergy,{recipe}", POLICIES[policy]
    tune, plain = (ours(trace, how, each, cluster) for each in ("tune", "proportional"))
    assert tune.finished == plain.finished
    assert tune.jct <= plain.jct
    assert tune.makespan <= 1.005 * plain.makespan
