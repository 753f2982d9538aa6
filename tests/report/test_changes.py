"""The page of a what-if: true to the comparison, safe, and readable without its plots."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from dovetail.model.what_if import STEPS, Comparison, Outcome, Shift
from dovetail.report.axes import signed, signed_axis
from dovetail.report.changes import plots
from dovetail.report.comparing import bands, headline
from dovetail.report.what_if import html_what_if

HOUR = 3600.0
RISING = tuple(HOUR * step for step in range(STEPS))
WAS = Outcome(
    "fifo on 8 GPUs", 8, 4, HOUR, 2 * HOUR, 0.5, 0, 9e4, RISING, RISING, (4.0,) * 9, (1.0,) * 9
)
INSTEAD = replace(WAS, label="srtf on 8 GPUs", mean_jct=HOUR, preemptions=3, waits=(0.0,) * STEPS)
TOLD = Comparison(
    WAS,
    INSTEAD,
    0.0,
    1e4,
    2,
    1,
    1,
    (Shift("<b>ann</b>", 3, 9e3, 3e3, 8e3, 2e3), Shift("bob", 1, 9e3, 1e4, 0.0, 1e3)),
    (Shift("up to 1 GPU", 2, 9e3, 3e3, 8e3, 2e3), Shift("2 GPUs", 2, 9e3, 3e3, 8e3, 2e3)),
    (Shift("7 train", 1, 9e4, 3e3, 8e4, 0.0), Shift("8 tune", 1, 9e3, 1e4, 0.0, 1e3)),
    (0, 1, 1, 1, 1, 0, 0),
    tuple(float(step - 70) * 100 for step in range(STEPS)),
    ((9e4, 3e3), (9e3, 1e4), (50.0, 50.0), (0.2, 0.1)),
    ("2 jobs have not ended: they are taken to run as believed",),
)


def test_the_sentence_says_how_much_and_how_many() -> None:
    assert headline(TOLD) == (
        "On average jobs would take 50.0 % less time: 2 jobs would end sooner, 1 later, "
        "1 at the same time within a minute."
    )
    assert "nothing changes" in headline(replace(TOLD, after=WAS))
    worse = replace(TOLD, before=INSTEAD, after=WAS)
    assert "100.0 % more time" in headline(worse)


def test_the_counts_have_names_in_their_order() -> None:
    names = bands()
    assert len(names) == len(TOLD.changes)
    assert names[0] == "over 1 d sooner" and names[3] == "the same within 1 min"
    assert names[4:] == ["1 min to 1 h later", "1 h to 1 d later", "over 1 d later"]


def test_every_plot_has_its_figures_as_a_table_and_in_words() -> None:
    made = {plot.key: plot for plot in plots(TOLD)}
    assert list(made) == ["delays", "pairs", "jct", "waits", "users", "sizes", "use", "queue"]
    for plot in made.values():
        assert plot.alt and plot.rows
        assert all(len(row) == len(plot.header) for row in plot.rows)
    marks = {row[0]: row[1] for row in made["pairs"].rows}
    assert marks == {"sooner": "1", "later": "1", "the same": "2"}
    assert made["users"].rows[1][-1] == "16 min 40 s later"
    json.dumps([plot.figure for plot in made.values()], allow_nan=False)


def test_gains_go_down_and_losses_up_and_the_axis_holds_both() -> None:
    (bars,) = plots(TOLD)[0].figure["data"]
    assert bars["y"][0] < 0 < bars["y"][-1] and bars["y"] == sorted(bars["y"])
    assert bars["marker"]["color"][0] != bars["marker"]["color"][-1]
    drawn = signed_axis("", -90 * 86400.0, 5.0)
    assert drawn["range"][0] < signed(-90 * 86400.0) < 0 < signed(600.0) < drawn["range"][1]
    assert "no change" in drawn["ticktext"] and "7 d sooner" in drawn["ticktext"]
    assert signed(-600.0) == -signed(600.0)


@pytest.fixture(scope="module")
def page() -> str:
    return html_what_if(TOLD)


def test_the_page_asks_the_network_for_nothing_and_names_are_text(page: str) -> None:
    body = page.split("</style>")[1].split("<script", maxsplit=1)[0]
    assert "&lt;b&gt;ann" in body and "<b>ann" not in page
    assert not re.search(r"(src|href)=", body)
    assert "they are taken to run as believed" in body
    assert "fifo on 8 GPUs" in body and "srtf on 8 GPUs" in body


def test_a_comparison_without_a_job_that_ends_still_has_a_page() -> None:
    bare = replace(WAS, waits=(), jcts=(), busy=(), queue=())
    empty = Comparison(bare, bare, 0.0, 1.0, 0, 0, 0, changes=(0,) * 7)
    assert not plots(empty)
    assert "nothing changes" in html_what_if(empty)
