"""The page is well formed, complete, safe and asks the network for nothing."""

import json
import re
from html.parser import HTMLParser

import pytest
from synthetic_runs import job, random_run, run

from dovetail.model.job import Status
from dovetail.report.html import html_report, write_report

VOID = {"meta", "link", "br", "wbr", "img", "hr", "line", "input"}
LOADS = {"src", "href", "srcset", "data", "poster", "action", "background"}


class Page(HTMLParser):
    """What a page consists of; complains about tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.loads, self.text, self.ids = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.tags.append((tag, named))
        self.loads += [value for key, value in attributes if key in LOADS]
        self.ids += [named["id"]] if "id" in named else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append((self.open[-1] if self.open else "", data))

    def count(self, tag, **attributes):
        wanted = {key.rstrip("_"): value for key, value in attributes.items()}
        return sum(t == tag and wanted.items() <= a.items() for t, a in self.tags)

    def words(self):
        return " ".join(data for tag, data in self.text if tag not in ("script", "style"))


def figures(text):
    return json.loads(re.search(r'id="figures">(.*?)</script>', text).group(1))


@pytest.fixture(scope="module")
def three():
    policies = (("fifo", 6.0), ("srtf:preempt=true", 1.0), ("las:thresholds=3250/7200", 1.5))
    return [(name, random_run(900, seed=1, policy=name, stretch=s)) for name, s in policies]


@pytest.fixture(scope="module")
def text(three):
    return html_report(three, "Three policies")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_the_page_is_well_formed_and_every_id_is_used_once(page):
    assert len(page.ids) == len(set(page.ids))
    assert page.count("html", lang="en") == 1
    assert page.count("h1") == 1
    assert page.count("meta", name="viewport") == 1


def test_the_page_loads_nothing_and_forbids_itself_to(page, text):
    assert page.loads == []
    assert page.count("link") == page.count("img") == page.count("iframe") == 0
    assert "default-src 'none'" in text
    style = text.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_the_plotting_library_is_inside(text):
    assert text.count("plotly.js v") == 1
    assert len(text) > 1_000_000


def test_all_five_plots_are_there_each_described_for_those_who_cannot_see_it(page, text):
    assert list(figures(text)) == ["jct", "queue", "use", "tenants", "sizes"]
    described = [a for t, a in page.tags if t == "div" and a.get("role") == "img"]
    assert [a["id"] for a in described] == [f"plot-{key}" for key in figures(text)]
    assert all(len(a["aria-label"]) > 40 for a in described)
    assert page.count("figure") == page.count("figcaption") == page.count("details") == 5


def test_plots_stay_small_enough_to_open_on_a_phone(text):
    drawn = figures(text)
    assert all(len(trace["x"]) <= 400 for trace in drawn["jct"]["data"])
    for key in ("queue", "use"):
        assert all(len(trace["x"]) <= 1500 for trace in drawn[key]["data"])
    assert all(len(trace["y"]) == 12 for trace in drawn["tenants"]["data"])


def test_plots_have_one_trace_per_policy_in_the_same_colour_throughout(text):
    for figure in figures(text).values():
        assert [trace["meta"] for trace in figure["data"]] == [0, 1, 2]
        colours = [trace["marker"]["color"] for trace in figure["data"]]
        assert colours == ["var(--series-0)", "var(--series-1)", "var(--series-2)"]


def test_every_colour_named_in_a_plot_is_in_the_style_for_light_and_dark(text):
    style = text.split("<style>")[1].split("</style>")[0]
    for number in range(8):
        assert style.count(f"--series-{number}: #") == 2


def test_the_plots_follow_the_theme_and_have_no_background_of_their_own(text):
    assert "prefers-color-scheme: dark" in text
    assert 'paper_bgcolor: "rgba(0,0,0,0)"' in text


def test_tables_mark_rows_columns_and_the_best(page):
    assert page.count("caption") == 3
    assert page.count("th", scope="col") > 15
    assert page.count("td", class_="best") >= 5
    assert page.count("span", class_="mark") == page.count("td", class_="best")


def test_the_page_says_what_was_run_in_words(page):
    said = page.words()
    for phrase in ("hand.csv", "30 s for a restart", "true length", "lowest mean JCT", "consol"):
        assert phrase in said


def test_a_legend_lets_policies_be_hidden_by_keyboard(page):
    assert page.count("button", type="button", **{"aria-pressed": "true"}) == 3


def test_one_run_has_tiles_and_neither_legend_nor_best():
    single = Page(html_report([("fifo", random_run(50, seed=1))], "One"))
    assert single.count("dl", class_="tiles") == 1
    assert single.count("button") == single.count("td", class_="best") == 0


def test_several_seeds_show_intervals_and_say_which_run_is_drawn():
    runs = [(name, random_run(50, seed=s)) for name in ("a", "b") for s in range(3)]
    text = html_report(runs, "Seeds")
    assert "Means over 3 seeds" in text
    assert "first seed" in text
    assert "± " in text
    assert len(figures(text)["jct"]["data"]) == 2


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [job(0, 0, None, status=Status.WAITING)],
        [job(0, 0, None, 0, status=Status.REJECTED, reason="too big")],
        [job(0, 0, 0, 0)],
        [job(0, 5, 5, 5.5, gpus=0)],
    ],
)
def test_runs_with_next_to_nothing_in_them_still_give_a_page(rows):
    Page(html_report([("fifo", run(rows))], "Little"))


def test_without_a_series_the_plots_over_time_are_left_out():
    made = random_run(40, seed=1)
    made.series = None
    assert list(figures(html_report([("fifo", made)], "No series"))) == ["jct", "tenants", "sizes"]


def test_names_from_a_trace_cannot_become_markup():
    hostile = '</script><img src=x onerror="alert(1)">'
    rows = [job(0, 0, 0, 50, tenant=hostile), job(1, 0, 50, 90, tenant="b")]
    made = run(rows, notices=[hostile])
    made.settings.update(trace=hostile, policy=hostile)
    text = html_report([(hostile, made), ("b", random_run(30, seed=1))], hostile)
    page = Page(text)
    assert page.count("img") == 0
    assert "<img" not in json.dumps([t["name"] for t in figures(text)["jct"]["data"]])


def test_deadlines_and_what_the_policy_says_are_shown_where_there_are_any():
    rows = [job(0, 0, 0, 50, deadline=60.0), job(1, 0, 0, 50, deadline=40.0)]
    made = run(rows, policy_report={"admitted": 2})
    said = Page(html_report([("deadline", made)], "Due")).words()
    assert "Deadlines" in said
    assert "missed" in said
    assert "admitted 2" in said


def test_a_report_can_be_written_to_a_file(tmp_path, three):
    write_report(tmp_path / "report.html", three[:1], "One")
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
