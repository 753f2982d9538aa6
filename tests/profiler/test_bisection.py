"""Which points are asked for."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.model.errors import UserError
from dovetail.profiler.bisection import Bisection, bisect
from dovetail.profiler.curve import between, drop, expected_error, left_out, monotone

ASKED = [
    ("a flat curve is settled by its ends", lambda c: 1.0, 24, [24, 1]),
    ("one core is one point", lambda c: 1.0, 1, [1]),
    ("two cores are two points", float, 2, [2, 1]),
    ("a step of less than a tenth is not split", lambda c: 10 + c / 24, 24, [24, 1]),
    ("a plateau is not split", lambda c: min(c, 4.0), 24, [24, 1, 12, 6, 3, 2, 4]),
    (
        "the steepest is split first",
        lambda c: 100.0 if c > 20 else 1.0,
        24,
        [24, 1, 12, 18, 21, 19, 20],
    ),
    ("neighbours are not split", float, 4, [4, 1, 2, 3]),
]


@pytest.mark.parametrize(("why", "speed", "most", "asked"), ASKED, ids=[row[0] for row in ASKED])
def test_points_asked_for(
    why: str, speed: Callable[[int], float], most: int, asked: list[int]
) -> None:
    seen: list[int] = []
    bisect(lambda cores: seen.append(cores) or speed(cores), 1, most)  # type: ignore[func-returns-value]
    assert seen == asked, why


curves = st.lists(st.floats(0.1, 100), min_size=1, max_size=64)


@given(curves, st.integers(2, 12), st.floats(0.01, 0.5))
def test_a_search_stays_in_bounds_measures_nothing_twice_and_ends(
    curve: list[float], points: int, threshold: float
) -> None:
    search = Bisection(1, len(curve), threshold, points)
    seen: list[int] = []
    while (cores := search.wanted()) is not None:
        assert 1 <= cores <= len(curve)
        seen.append(cores)
        search.add(cores, curve[cores - 1])
    assert len(seen) == len(set(seen)) <= points
    assert len(seen) == points or not search.open_intervals()


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=20))
def test_smoothing_never_falls_keeps_the_mean_and_leaves_rising_curves_alone(
    speeds: list[float],
) -> None:
    smooth = monotone(speeds)
    assert all(right >= left - 1e-9 for left, right in pairwise(smooth))
    assert sum(smooth) == pytest.approx(sum(speeds))
    assert monotone(sorted(speeds)) == pytest.approx(sorted(speeds))


@pytest.mark.parametrize(("low", "high", "points"), [(0, 4, 8), (4, 2, 8), (1, 4, 1)])
def test_a_search_that_makes_no_sense_is_refused(low: int, high: int, points: int) -> None:
    with pytest.raises(UserError):
        Bisection(low, high, points=points)


def test_a_curve_is_read_on_the_lines_between_its_points() -> None:
    points = {1: 1.0, 3: 2.0, 8: 2.0}
    assert [between(points, c) for c in (0.5, 1, 2, 3, 5, 9)] == [1, 1, 1.5, 2, 2, 2]


def test_leaving_a_point_out_shows_the_bend() -> None:
    assert left_out({1: 1.0, 2: 2.0, 3: 3.0}) == [0.0]
    assert left_out({1: 1.0, 2: 2.0, 3: 2.0}) == [0.25]
    assert left_out({1: 1.0, 2: 2.0}) == []


def test_the_expected_error_joins_bend_and_noise() -> None:
    assert expected_error({1: 1.0, 2: 2.0}, 0.02) == pytest.approx(0.02)
    assert expected_error({1: 1.0, 2: 2.0, 3: 2.0}, 0.0) == pytest.approx(0.25 / 4)


@pytest.mark.parametrize(
    ("points", "deepest"),
    [({1: 1.0, 2: 2.0}, 0.0), ({1: 2.0, 2: 1.0}, 0.5), ({1: 1.0, 2: 4.0, 4: 3.0, 8: 2.0}, 0.5)],
)
def test_how_far_a_curve_falls(points: dict[int, float], deepest: float) -> None:
    assert drop(points) == deepest
