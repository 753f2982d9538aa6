"""Comparing results: means, intervals, and which is best."""

import pytest
from synthetic_runs import job, run

from dovetail.metrics.summary import summarise
from dovetail.model.job import Status
from dovetail.report import measures, words
from dovetail.report.measures import Measure

LESS = Measure("time", ("makespan",), words.duration, -1, "")
MORE = Measure("share", ("makespan",), words.percent, 1, "")
EITHER = Measure("count", ("makespan",), words.count, 0, "")


def result(wait, tenant="a", **fields):
    """One job of 100 s that waited."""
    return summarise(run([job(0, 0, wait, wait + 100, tenant=tenant)], **fields))


def marks(values, measure):
    return [cell.best for cell in measures.cells([[value] for value in values], measure)]


def test_less_is_better_for_times_and_more_for_shares():
    assert marks([30, 20, 25], LESS) == [False, True, False]
    assert marks([0.3, 0.2, 0.25], MORE) == [True, False, False]


def test_nothing_is_marked_where_no_direction_is_better():
    assert marks([1, 2], EITHER) == [False, False]


def test_nothing_is_marked_where_all_are_equal_or_alone():
    assert marks([20, 20], LESS) == [False, False]
    assert marks([20], LESS) == [False]
    assert marks([20, None], LESS) == [False, False]


def test_figures_that_read_the_same_as_the_best_are_marked_with_it():
    assert marks([8040, 8041, 9000], LESS) == [True, True, False]


def test_a_figure_that_does_not_exist_is_a_dash_and_never_best():
    cells = measures.cells([[None], [5.0], [6.0]], LESS)
    assert cells[0] == ("–", "", False)
    assert cells[1].best


def test_several_seeds_become_a_mean_with_its_interval():
    (cell,) = measures.cells([[10.0, 20.0, 30.0]], LESS)
    assert (cell.text, cell.spread) == ("20 s", "± 25 s")


def test_a_single_seed_has_no_interval():
    assert measures.cells([[10.0]], LESS)[0].spread == ""


def test_results_are_grouped_by_label_in_order_of_appearance():
    groups = measures.grouped([("b", {"n": 1}), ("a", {"n": 2}), ("b", {"n": 3})])
    assert list(groups) == ["b", "a"]
    assert [each["n"] for each in groups["b"]] == [1, 3]


def test_every_measure_finds_its_figure_in_a_result():
    found = result(5)
    for measure in (*measures.TIMES, *measures.USE):
        assert measure.of(found) is not None
        assert measures.column({"fifo": [found]}, measure)[0].text != "–"


def test_the_headline_names_the_winner_and_the_loser():
    groups = {"fifo": [result(100)], "srtf": [result(0)], "las": [result(50)]}
    assert measures.headline(groups) == (
        "srtf has the lowest mean JCT, 1 min 40 s: 50.0 % below fifo."
    )


def test_the_headline_is_silent_with_nothing_to_compare():
    assert measures.headline({"fifo": [result(1)]}) == ""
    assert "same" in measures.headline({"fifo": [result(1)], "srtf": [result(1)]})


def test_tenants_are_listed_by_size_then_name():
    rows = [job(i, 0, 0, 10, tenant=tenant) for i, tenant in enumerate("bbca")]
    groups = {"fifo": [summarise(run(rows))]}
    assert measures.largest_tenants(groups, 3) == ["b", "a", "c"]
    assert measures.tenant_values(groups, "b", "mean_jct") == [[10.0]]
    assert measures.tenant_values(groups, "nobody", "mean_jct") == [[None]]


def test_a_comparison_over_different_numbers_of_jobs_is_cautioned():
    rejected = job(1, 0, None, 0, status=Status.REJECTED, reason="too big")
    fewer = summarise(run([job(0, 0, 0, 1), rejected]))
    more = summarise(run([job(0, 0, 0, 1), job(1, 0, 0, 2)]))
    (caution,) = measures.cautions({"a": [fewer], "b": [more]})
    assert "different numbers of finished jobs: a 1, b 2" in caution
    assert measures.cautions({"b": [more]}) == []


def test_seeds_that_make_no_difference_are_pointed_out():
    (caution,) = measures.cautions({"a": [result(5), result(5)]})
    assert "nothing in these runs depends on the seed" in caution


def test_a_notice_of_all_is_told_once_and_of_some_with_their_names():
    one, other = result(5), result(6)
    one["notices"] = ["everybody", "only one"]
    other["notices"] = ["everybody"]
    assert measures.notices({"a": [one], "b": [other]}) == ["everybody", "a: only one"]


@pytest.mark.parametrize("reasons", [1, 3, 5])
def test_rejections_are_told_with_at_most_three_reasons(reasons):
    found = result(5)
    found["rejections"] = {f"reason {n}": 1 for n in range(reasons)}
    said = measures.notices({"a": [found]})
    assert said[0] == "1 job rejected: reason 0"
    assert len(said) == min(reasons, 4)
