"""What is measured over time, on a controller whose time jumps."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from staging import Stage

from dovetail.controller import measuring
from dovetail.controller.explaining import rules
from dovetail.controller.measuring import POINTS, Sampler, Trail
from dovetail.controller.parts import KNOWING, Parts
from dovetail.executors.fake import FakeExecutor
from dovetail.executors.protocol import Usage
from dovetail.model.series import Point
from dovetail.recipes import RECIPES


def sampled(stage: Stage) -> Sampler:
    sampler = Sampler(stage.controller)
    stage.controller.watch = sampler
    return sampler


def test_a_sample_counts_who_runs_who_waits_and_for_how_long(stage):
    sampler = sampled(stage)
    stage.submit(gpus=3, length=100)
    stage.submit(gpus=2, length=100)
    stage.until(20)
    asyncio.run(sampler.sample())
    (sample,) = sampler.samples
    assert (sample.gpus, sample.busy, sample.running, sample.waiting) == (4, 3.0, 1, 1)
    assert (sample.age, sample.wait) == (20.0, 0.0)


def test_the_wait_of_those_who_started_is_told_once(stage):
    sampler = sampled(stage)
    stage.submit(gpus=4, length=10)
    stage.submit(gpus=4, length=10)
    stage.until(5)
    asyncio.run(sampler.sample())
    stage.until(15)
    asyncio.run(sampler.sample())
    asyncio.run(sampler.sample())
    waits = [sample.wait for sample in sampler.samples]
    assert waits[0] == 0.0
    assert 10.0 <= waits[1] <= 12.0
    assert waits[2] is None


def test_what_nobody_measures_is_none_and_not_nothing(stage):
    sampler = sampled(stage)
    stage.submit()
    stage.until(3)
    asyncio.run(sampler.sample())
    assert sampler.samples[0].cpu_used is None
    assert sampler.points(1)[0].memory_used is None


def test_cpu_use_is_cpu_seconds_over_seconds(stage, monkeypatch):
    used = lambda engine, attempt: Usage(0.5 * engine.machine.clock(), 3 * 2**20)  # noqa: E731
    monkeypatch.setattr(FakeExecutor, "usage", used, raising=False)
    sampler = sampled(stage)
    stage.submit(length=100)
    for moment in (5, 15, 25):
        stage.until(moment)
        asyncio.run(sampler.sample())
    assert [point.cpu_used for point in sampler.points(1)] == [None, 500, 500]
    assert sampler.samples[-1].memory_used == 3


def test_what_has_ended_is_remembered_until_others_have(stage, monkeypatch):
    monkeypatch.setattr(measuring, "OVER", 1)
    sampler = sampled(stage)
    stage.submit(length=5)
    stage.until(3)
    asyncio.run(sampler.sample())
    known = list(sampler.points(1))
    assert known
    stage.until(30)
    asyncio.run(sampler.sample())
    assert (list(sampler.points(1)), sampler.latest) == (known, {})
    stage.submit(length=5)
    for moment in (33, 60):
        stage.until(moment)
        asyncio.run(sampler.sample())
    assert sampler.points(2)
    assert sampler.points(1) == ()


def test_a_trail_never_grows_and_spans_the_whole_run():
    trail = Trail()
    for moment in range(100_000):
        trail.add(Point(float(moment), 0, 0, 0, 0, None, None, None, None))
        assert len(trail.points) < POINTS
    times = [point.at for point in trail.points]
    assert times[0] == 0.0
    assert times[-1] > 98_000
    assert len({after - before for before, after in pairwise(times)}) == 1


def test_every_policy_says_what_it_is_and_what_its_parameters_mean():
    for way in rules(Parts()).ways:
        assert way.about
    for name in (*RECIPES, "fifo:skip=true,patience=60"):
        told = rules(Parts(name))
        assert [piece.kind for piece in told.pieces] == [
            "ordering",
            "placement",
            "allocator",
            "predictor",
        ]
        assert all(piece.about for piece in told.pieces)
    knobs = {each.name: each for each in told.pieces[0].parameters}
    assert knobs["patience"].value == "60.0"
    assert "waited" in knobs["patience"].about


def test_quotas_are_told_in_gpus_cores_and_gib():
    told = rules(Parts(quotas="amira=4,group:lab=8/64/512,*=2")).quotas
    assert [(cap.account, cap.gpus, cap.cpu, cap.memory) for cap in told] == [
        ("amira", 4.0, None, None),
        ("group:lab", 8.0, 64.0, 512.0),
        ("*", 2.0, None, None),
    ]


def test_a_policy_that_would_need_the_truth_goes_by_what_can_be_known():
    assert rules(Parts("srtf")).pieces[3].name not in KNOWING
