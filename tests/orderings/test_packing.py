"""Tetris against its definition: scores by hand."""

from __future__ import annotations

import pytest
from ordering_support import view, waiting

from dovetail.model.job import Job
from dovetail.model.request import gang
from dovetail.orderings.packing import Tetris


def packing(srtf: float, *jobs: Job, free: tuple[int, int, int] = (8000, 10_000, 0)) -> list[float]:
    """Scores on eight GPUs with ten cores of jobs that were submitted together."""
    tetris, seen = Tetris(srtf=srtf), view("1x8,cpus=10")
    seen.free = free
    for job in jobs:
        tetris.admit(job, seen)
    return [tetris.score(job, seen, (0, 0, 0)) for job in jobs]


def cores(gpus: int, cpu: int | None, length: float = 1.0, number: int = 0) -> Job:
    return waiting(number, request=gang(gpus, cpu=cpu), length=length)


def test_alignment_is_the_product_of_what_is_asked_and_what_is_free_over_its_mean() -> None:
    # of GPUs and cores: (1/2, 1/5) and (1/8, 2/5) asked, (1/4, 1/2) free
    scores = packing(0.0, cores(4, 2000), cores(1, 4000), free=(2000, 5000, 0))
    one, other = 1 / 8 + 1 / 10, 1 / 32 + 1 / 5
    mean = (one + other) / 2
    assert scores == pytest.approx([-one / mean, -other / mean])


def test_remaining_work_is_resources_times_time_over_its_mean() -> None:
    jobs = (cores(4, 2000, length=100.0), cores(1, 4000, length=10.0))
    works = [0.7 * 100, 0.525 * 10]
    mean = sum(works) / 2
    aligned = packing(0.0, *jobs)
    assert packing(2.0, *jobs) == pytest.approx(
        [2 * work / mean + score for work, score in zip(works, aligned, strict=True)]
    )


def test_what_is_left_to_the_allocator_counts_as_the_share_of_the_gpus() -> None:
    stated, left = packing(1.0, cores(4, 5000), cores(4, None))
    assert stated == pytest.approx(left)


def test_a_full_cluster_leaves_only_remaining_work() -> None:
    long, short = packing(1.0, cores(1, 1000, 9.0), cores(1, 1000, 1.0), free=(0, 0, 0))
    assert (long, short) == pytest.approx((9 / 5, 1 / 5))


def test_alignment_only_falls_while_a_plan_gives_away() -> None:
    tetris, seen, job = Tetris(), view("1x8,cpus=10"), cores(4, 2000)
    tetris.admit(job, seen)
    seen.look_what_is_free()
    scores = [tetris.score(job, seen, (gpus, 100 * gpus // 80, 0)) for gpus in (0, 1000, 4000)]
    assert scores == sorted(scores)


def test_nodes_that_take_no_work_have_nothing_free() -> None:
    seen = view("2x4,cpus=10,mem=1")
    seen.cluster.close(0, "down")
    seen.look_what_is_free()
    assert seen.free == (4000, 10_000, 1024)
    assert seen.capacity == (8000, 20_000, 2048)
