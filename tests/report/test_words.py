"""Figures as people say them."""

from dataclasses import fields

import pytest

from dovetail.model.costs import Costs
from dovetail.report import words


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0, "0 s"),
        (0.25, "0.25 s"),
        (9.94, "9.94 s"),
        (42.4, "42 s"),
        (59.6, "1 min"),
        (60, "1 min"),
        (754, "12 min 34 s"),
        (3599.7, "1 h"),
        (7199, "2 h"),
        (8040, "2 h 14 min"),
        (86400, "1 d"),
        (86399, "1 d"),
        (90000, "1 d 1 h"),
        (86400 * 99.5, "99 d 12 h"),
        (86400 * 400, "400 d"),
        (-90, "-1 min 30 s"),
    ],
)
def test_a_duration_is_told_in_at_most_two_units(seconds, text):
    assert words.duration(seconds) == text


def test_a_narrow_table_gets_the_same_duration_in_fewer_letters():
    assert words.compact(8040) == "2h14m"
    assert words.compact(754) == "12m34s"


@pytest.mark.parametrize(
    ("number", "text"),
    [(None, "–"), (0, "0"), (10650, "10,650"), (2.5, "2.5"), (1234.5, "1,234")],
)
def test_counts_have_thousands_separators(number, text):
    assert words.count(number) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "–"),
        (1, "1.00"),
        (0.9482, "0.948"),
        (13.58, "13.6"),
        (1809.4, "1,809"),
        (8e-5, "0.000"),
    ],
)
def test_ratios_have_about_three_digits_and_no_exponent(number, text):
    assert words.ratio(number) == text


def test_shares_are_percentages():
    assert words.percent(0.8824) == "88.2 %"
    assert words.percent(None) == "–"


def test_costs_are_told_in_words():
    said = words.costs({"restart": 30.0, "stop": 0.0, "move": None, "by_model": {}, "new_thing": 2})
    assert said == (
        "30 s for a restart, stopping takes no time, a move costs what a restart costs, new thing 2"
    )


def test_every_cost_has_words_of_its_own_and_a_unit():
    assert {field.name for field in fields(Costs)} <= words.COSTS.keys()
    assert words.costs({"checkpoint_every": 1800.0}) == "a checkpoint every 30 min"


def test_free_costs_are_said_to_be_free():
    assert words.costs({"restart": 0.0, "move": 0.0}) == "restarts are free, moves are free"
    assert words.costs(None) == "–"


def test_the_oracle_is_called_what_it_is():
    assert "true length" in words.predictor("oracle")
    assert words.predictor("history:window=9") == "history:window=9"


def test_the_measured_window_is_told_with_the_jobs_it_left():
    window = {"from": 4000, "to": 5000, "jobs": 1000, "finished": 998}
    assert words.measured(window) == (
        "jobs 4,000 to 4,999 in submit order: 998 finished jobs of 1,000"
    )
    everything = {"from": None, "to": None, "jobs": 1, "finished": 1}
    assert words.measured(everything) == "all of the trace: 1 finished job of 1"


def test_every_setting_has_a_sentence():
    result = dict.fromkeys(("trace", "cluster", "policy", "placement", "allocator", "predictor"))
    measure = {"from": None, "to": None, "jobs": 2, "finished": 2}
    options = {"partition_by": "vc=a.csv", "skip_bad": True, "levels": [1, 2.0]}
    said = words.settings(
        {**result, "costs": {}, "seed": 3, "measure": measure, "options": options}
    )
    assert said["Seed"] == "3"
    assert said["Trace"] == "–"
    assert said["Partition by"] == "vc=a.csv"
    assert (said["Skip bad"], said["Levels"]) == ("yes", "1, 2")
