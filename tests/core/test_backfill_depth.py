"""How far a backfilling walk looks: without end before a reservation, `depth` jobs behind it."""

from __future__ import annotations

import pytest
from workbench import scheduler, spec

from dovetail.model.event import Submitted

easy_and_conservative = pytest.mark.parametrize("kind", ["easy", "conservative"])


def started(policy: str, cluster: str, *jobs: tuple[int, float]) -> list[int]:
    """Who starts of jobs (GPUs, length) that come together."""
    specs = [spec(number, gpus, length=length) for number, (gpus, length) in enumerate(jobs)]
    plan = scheduler(cluster, policy).step(0.0, [Submitted(job) for job in specs])
    return [action.job for action in plan.actions]


@easy_and_conservative
def test_who_fits_in_order_starts_however_many_there_are(kind: str) -> None:
    policy = f"fifo:backfill={kind},depth=100"
    assert started(policy, "32x8", *[(1, 9.0)] * 150) == list(range(150))


@easy_and_conservative
@pytest.mark.parametrize(("depth", "filled"), [(1, []), (2, [4]), (3, [4, 5]), (9, [4, 5])])
def test_behind_a_reservation_so_many_are_looked_at(
    kind: str, depth: int, filled: list[int]
) -> None:
    jobs = [(2, 9.0), (2, 9.0), (8, 9.0), (3, 99.0), (1, 5.0), (1, 5.0)]
    found = started(f"fifo:backfill={kind},depth={depth}", "1x8", *jobs)
    assert found == [0, 1, *filled]
