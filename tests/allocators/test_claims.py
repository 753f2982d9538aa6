"""Curves: no dearer and no slower than the proportional share, and nothing on them for nothing."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from placed_optimum import catalogue_curves

from dovetail.allocators.greedy import Greedy
from dovetail.core.claims import Claim, Curve, Curves, Piece, Point, Seating, curve, fixed
from dovetail.model.profile import Surface
from dovetail.model.request import Replica
from dovetail.profiles import published
from dovetail.simulator.spec import parse_cluster


@st.composite
def surfaces(draw: st.DrawFn) -> Surface:
    """Any surface: most rise with more of everything, some do not."""
    cores = sorted(draw(st.sets(st.integers(1, 24), min_size=1, max_size=6)))
    memory = sorted(draw(st.sets(st.integers(5, 300), min_size=1, max_size=4)))
    steps = st.lists(st.sampled_from([0.0, 0.0, 0.1, 0.5]), min_size=24, max_size=24)
    gains = draw(steps)
    rises = draw(st.sampled_from([True, True, True, False]))
    rows: list[list[float]] = []
    for i in range(len(cores)):
        row: list[float] = []
        for j in range(len(memory)):
            below = max(rows[-1][j] if rows else 0.2, row[-1] if row else 0.2)
            row.append((below if rises else 0.3) + gains[i * 4 + j])
        rows.append(row)
    return Surface(tuple(map(float, cores)), tuple(map(float, memory)), tuple(map(tuple, rows)))


shares = st.tuples(st.integers(100, 30_000), st.integers(1024, 400_000))


@given(surface=surfaces(), share=shares)
def test_the_floor_costs_no_more_than_the_fair_share_and_is_no_slower(
    surface: Surface, share: tuple[int, int]
) -> None:
    found = curve(surface, *share)
    floor = found.points[0]
    assert found.fair == Point(*share, surface.at(share[0] / 1000, share[1] / 1024))
    assert floor.cpu <= share[0]
    assert floor.memory <= share[1]
    assert all(point.rate >= found.fair.rate - 1e-9 for point in found.points)


@given(surface=surfaces(), share=shares)
def test_no_point_of_a_curve_beats_another(surface: Surface, share: tuple[int, int]) -> None:
    points = curve(surface, *share).points
    assert len(set(points)) == len(points)
    for one, other in combinations(points, 2):
        for less, more in ((one, other), (other, one)):
            dearer = less.cpu > more.cpu or less.memory > more.memory
            assert dearer or less.rate < more.rate - 1e-9, (less, more)


@given(surface=surfaces(), share=shares)
def test_rates_are_those_of_the_surface_and_the_fastest_is_on_the_curve(
    surface: Surface, share: tuple[int, int]
) -> None:
    found = curve(surface, *share)
    for point in found.points:
        assert point.rate == pytest.approx(surface.at(point.cpu / 1000, point.memory / 1024))
    reachable = max(surface.best, found.fair.rate)
    assert max(point.rate for point in found.points) == pytest.approx(reachable)


@given(surface=surfaces(), share=shares)
def test_points_are_listed_by_what_they_cost(surface: Surface, share: tuple[int, int]) -> None:
    above = curve(surface, *share).points[1:]
    costs = [point.cpu / share[0] + point.memory / share[1] for point in above]
    assert costs == sorted(costs)


def test_models_that_need_little_give_back_what_they_do_not_need() -> None:
    curves = catalogue_curves()
    for model in ("gnmt", "transformer", "lstm"):
        assert curves[model].points == (Point(1000, 21330, 1.0),)
    assert curves["deepspeech"].points == (Point(3000, 64000, 1.0),)


def test_a_demanding_model_has_a_point_for_every_core() -> None:
    points = catalogue_curves()["res18"].points
    assert [point.cpu for point in points] == [1000 * cores for cores in range(3, 10)]
    assert {point.memory for point in points} == {64000}
    assert [round(point.rate, 3) for point in points][:4] == [1.0, 1.3, 1.53, 1.75]


def test_a_fixed_curve_has_one_point() -> None:
    only = Point(500, 2048, 1.0)
    assert fixed(500, 2048) == Curve((only,), only)
    assert fixed(500, 2048, 2.0).fair.rate == 2.0


# ---- the curve of a model on a node --------------------------------------------------------------


def curves_on(cluster: str) -> Curves:
    return Curves(parse_cluster(cluster), published())


@pytest.mark.parametrize(
    ("cluster", "model", "each", "share"),
    [
        ("2x8,cpus=24,mem=500", "alexnet", Replica(), (3000, 64000)),
        ("2x4,cpus=24,mem=500", "alexnet", Replica(), (6000, 128000)),
        ("2x8,cpus=24,mem=500", "nobody's", Replica(), (3000, 64000)),
        ("2x8,cpus=24,mem=500", "", Replica(), (3000, 64000)),
        ("2x8,cpus=24,mem=500", "alexnet", Replica(cpu=2000), (2000, 64000)),
        ("2x8,cpus=24,mem=500", "alexnet", Replica(cpu=3000, memory=9), (3000, 9)),
        ("1x8,cpus=48,mem=500+1x8,cpus=8,mem=900", "alexnet", Replica(), (1000, 64000)),
        ("2x8", "alexnet", Replica(), (0, 0)),
    ],
)
def test_the_fair_share_of_a_replica(
    cluster: str, model: str, each: Replica, share: tuple[int, int]
) -> None:
    found = curves_on(cluster).of(model, 0, each)
    assert found is not None
    assert found.fair[:2] == share
    assert found.fair.rate > 0


@pytest.mark.parametrize(
    "each", [Replica(cpu=3001), Replica(memory=64001), Replica(cpu=9, memory=10**6)]
)
def test_who_insists_on_more_than_the_share_has_no_curve(each: Replica) -> None:
    assert curves_on("2x8,cpus=24,mem=500").of("alexnet", 0, each) is None


def test_equal_nodes_share_one_curve() -> None:
    curves = curves_on("4x8,cpus=24,mem=500")
    assert curves.of("m5", 0, Replica()) is curves.of("m5", 3, Replica())


# ---- who sits where ------------------------------------------------------------------------------


def test_a_seating_adds_up_and_forgets() -> None:
    seating, model = Seating(2), catalogue_curves()["res18"]
    wide = Claim(1, 3, model, (Piece(0, 1, 5000, 64000), Piece(1, 2, 10000, 128000)))
    seating.seat(wide)
    seating.seat(Claim(2, 1, model, (Piece(1, 1, 3000, 64000),)))
    assert (seating.cpu, seating.memory) == ([5000, 13000], [64000, 192000])
    assert (seating.floor_cpu, seating.floor_memory) == ([3000, 9000], [64000, 192000])
    assert seating.nodes == [{1: 1}, {1: 2, 2: 1}]
    assert seating.leave(1) == wide
    assert seating.leave(1) is None
    seating.leave(2)
    assert (seating.cpu, seating.floor_memory, seating.nodes) == ([0, 0], [0, 0], [{}, {}])


# ---- greedy: the fastest point, not the dearest ------------------------------------------------


def test_greedy_asks_for_the_fastest_point_even_if_a_slower_one_costs_more() -> None:
    surface = Surface((3.0, 6.0, 12.0), (62.5, 250.0), ((1.0, 1.1), (2.0, 2.2), (3.0, 3.0)))
    which = curve(surface, 3000, 64_000)
    assert which.points[-1].rate < max(point.rate for point in which.points)
    cluster = parse_cluster("1x8,cpus=24,mem=500")
    assert Greedy().grant(cluster, 0, Replica(), 1, which) == (12_000, 64_000)
    assert Greedy().grant(cluster, 0, Replica(), 4, which) == (6000, 64_000)
