"""The ideal amounts: hand-computed cases, and what must hold on any claims."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from placed_optimum import catalogue_curves, random_instance

from dovetail.allocators.ideal import ideal
from dovetail.allocators.program import Effort
from dovetail.core.claims import Claim, Curve, Point, fixed

LOW, MIDDLE, HIGH = Point(1000, 1024, 1.0), Point(2000, 1024, 1.5), Point(4000, 2048, 1.9)
THREE = Curve((LOW, MIDDLE, HIGH), LOW)


def claims(*gpus: int, curve: Curve = THREE) -> list[Claim]:
    return [Claim(job, each, curve) for job, each in enumerate(gpus)]


@pytest.mark.parametrize(
    ("gpus", "cpu", "memory", "rates"),
    [
        ((1,), 4000, 2048, [1.9]),
        ((1,), 3999, 2048, [1.5]),  # one thousandth of a core is missing
        ((1,), 4000, 2047, [1.5]),  # one MiB is missing
        ((1, 1), 4000, 9999, [1.5, 1.5]),
        ((1, 1), 5000, 9999, [1.5, 1.5]),  # one at the top and one at the bottom are slower
        ((1, 1), 6000, 9999, [1.9, 1.5]),
        ((1, 2), 4000, 9999, [1.5, 1.0]),  # the same step costs the wide job twice as much
        ((), 4000, 2048, []),
    ],
)
def test_the_best_points_by_hand(
    gpus: tuple[int, ...], cpu: int, memory: int, rates: list[float]
) -> None:
    found = ideal(claims(*gpus), cpu, memory)
    assert [point.rate for point in found.points] == rates
    assert found.bound == pytest.approx(found.rate)


def test_whoever_comes_first_gets_the_faster_of_two_points() -> None:
    assert ideal(claims(1, 1, 1), 4000, 9999).points == (MIDDLE, LOW, LOW)


def test_where_even_the_cheapest_do_not_fit_all_get_the_cheapest() -> None:
    found = ideal(claims(1, 1), 1999, 9999)
    assert found.points == (LOW, LOW)
    assert found.bound == pytest.approx(3.8)


def test_a_solver_without_time_leaves_the_cheapest_points() -> None:
    found = ideal(claims(1, 2, 4), 20_000, 99_999, Effort(seconds=0.0))
    assert found.rate >= 3.0
    assert found.bound >= found.rate


def test_a_job_with_one_point_keeps_it() -> None:
    hungry = Claim(9, 1, fixed(9000, 9000))
    found = ideal([hungry, *claims(1)], 10_000, 99_999)
    assert found.points == (hungry.curve.points[0], LOW)


@given(seed=st.integers(0, 10_000), servers=st.integers(1, 6), load=st.sampled_from([0.5, 1.0]))
def test_any_ideal_is_within_the_totals_and_no_slower_than_the_fair_share(
    seed: int, servers: int, load: float
) -> None:
    machines, asked = random_instance(Random(seed), servers, load=load)
    cpu, memory = sum(s.cpu for s in machines), sum(s.memory for s in machines)
    found = ideal(asked, cpu, memory)
    pairs = list(zip(asked, found.points, strict=True))
    assert sum(claim.gpus * point.cpu for claim, point in pairs) <= cpu
    assert sum(claim.gpus * point.memory for claim, point in pairs) <= memory
    assert all(point in claim.curve.points for claim, point in pairs)
    assert all(point.rate >= claim.curve.fair.rate - 1e-9 for claim, point in pairs)
    assert found.rate <= found.bound + 1e-9
    assert found.bound <= found.rate * 1.001
    assert found == ideal(asked, cpu, memory)


def test_more_of_everything_is_never_slower() -> None:
    _, asked = random_instance(Random(3), 4)
    rates = [ideal(asked, k * 24_000, k * 512_000).rate for k in (4, 5, 6, 8)]
    assert all(later >= earlier * 0.9999 for earlier, later in pairwise(rates))


def test_ten_thousand_claims_take_no_time_to_speak_of() -> None:
    rng, models = Random(0), list(catalogue_curves().values())
    asked = [Claim(job, rng.choice((1, 2, 4, 8, 16)), rng.choice(models)) for job in range(10_000)]
    gpus = sum(claim.gpus for claim in asked)
    begin = process_time()
    ideal(asked, gpus * 3000, gpus * 64_000)
    assert process_time() - begin < 5
