"""Confidence intervals against the tables every statistics book prints."""

import math

import pytest

from dovetail.metrics.intervals import Interval, interval, t_quantile


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [
        (1, 12.7062),
        (2, 4.3027),
        (3, 3.1824),
        (4, 2.7764),
        (9, 2.2622),
        (10, 2.2281),
        (29, 2.0452),
        (30, 2.0423),
        (120, 1.9799),
        (100_000, 1.9600),
    ],
)
def test_the_t_quantile_is_the_one_in_the_tables(freedom, quantile):
    assert t_quantile(freedom) == pytest.approx(quantile, abs=6e-5)


def test_other_confidences_work_too():
    assert t_quantile(10, 0.99) == pytest.approx(3.1693, abs=6e-5)
    assert t_quantile(5, 0.90) == pytest.approx(2.0150, abs=6e-5)


def test_the_interval_of_three_values_is_the_one_worked_out_by_hand():
    found = interval([1, 2, 3])
    assert found.mean == 2
    assert found.half == pytest.approx(4.302653 / math.sqrt(3))
    assert found.size == 3


def test_equal_values_leave_no_doubt():
    assert interval([5.0, 5.0, 5.0]) == Interval(5.0, 0.0, 3)


def test_one_value_has_no_interval_and_none_have_no_mean():
    assert interval([7.0]) == Interval(7.0, None, 1)
    assert interval([]) is None
