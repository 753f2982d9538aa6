"""Curves keep their meaning when they are made short."""

import numpy as np
import pytest

from dovetail.report import curves


def area(curve):
    return float((curve.y[:-1] * np.diff(curve.x)).sum())


def test_few_steps_are_kept_and_the_last_holds_until_the_end():
    curve = curves.steps([0, 10, 15], [1, 3, 2], end=20)
    assert curve.x.tolist() == [0, 10, 15, 20]
    assert curve.y.tolist() == [1, 3, 2, 2]


def test_many_steps_are_averaged_over_equal_stretches_without_changing_the_area():
    rng = np.random.default_rng(0)
    time = np.sort(rng.uniform(0, 1000, 50_000))
    value = rng.integers(0, 100, 50_000)
    curve = curves.steps(time, value, end=1200)
    exact = float((value * np.diff(np.append(time, 1200))).sum())
    assert len(curve.x) == curves.MOST_POINTS
    assert area(curve) == pytest.approx(exact)
    assert curve.y.max() <= 99


def test_a_bucket_is_the_time_average_not_the_average_of_its_rows():
    busy = np.linspace(0, 1, 2000, endpoint=False)
    curve = curves.steps(np.append(busy, 1.0), np.append(np.full(2000, 100), 0), end=719)
    assert curve.y[0] == pytest.approx(100)
    assert curve.y[1:].max() == 0


def test_rows_of_equal_time_take_no_room():
    curve = curves.steps([0, 5, 5, 5], [1, 9, 7, 2], end=10)
    assert area(curve) == 5 + 10


def test_a_series_without_rows_or_without_length_is_no_problem():
    assert len(curves.steps([], [], end=5).x) == 0
    assert curves.steps([3] * 2000, [1] * 2000, end=3).y[-1] == 1


def test_the_distribution_of_a_few_values_is_exact():
    curve = curves.distribution_function(np.array([30.0, 10.0, 20.0, 40.0]))
    assert curve.x.tolist() == [10, 10, 20, 30, 40]
    assert curve.y.tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_the_distribution_of_many_values_has_few_points_and_both_ends():
    values = np.random.default_rng(0).lognormal(5, 2, 100_000)
    curve = curves.distribution_function(values)
    assert len(curve.x) <= 400
    assert (curve.x[0], curve.x[-1]) == (values.min(), values.max())
    assert (curve.y[0], curve.y[-1]) == (0, 1)
    assert np.all(np.diff(curve.x) >= 0)
    assert np.interp(0.5, curve.y, curve.x) == pytest.approx(np.median(values), rel=0.01)


def test_the_distribution_of_nothing_is_empty():
    assert len(curves.distribution_function(np.array([])).x) == 0


@pytest.mark.parametrize(
    ("milli", "label"),
    [
        (0, "none"),
        (500, "under 1"),
        (1000, "1"),
        (2000, "2"),
        (3000, "3–4"),
        (4000, "3–4"),
        (5000, "5–8"),
        (8000, "5–8"),
        (9000, "9–16"),
        (128_000, "65–128"),
    ],
)
def test_job_sizes_fall_into_classes_of_powers_of_two(milli, label):
    (code,) = curves.size_class(np.array([milli])).tolist()
    assert curves.size_label(code) == label
