"""Tables in a terminal of 80 columns, with and without colour."""

import io

import pytest
from rich.console import Console
from synthetic_runs import job, random_run, run

from dovetail.cli import tables
from dovetail.metrics.summary import summarise
from dovetail.model.job import Status
from dovetail.report.measures import grouped


def shown(parts, colour=False):
    console = Console(width=80, file=io.StringIO(), force_terminal=colour, highlight=False)
    for part in parts:
        console.print(part)
    return console.file.getvalue()


def compared(*waits, seeds=1):
    """Policies p0, p1 … whose one job of 100 s waited so long."""
    named = [(f"p{n}", wait) for n, wait in enumerate(waits)]
    return grouped(
        [
            (name, summarise(run([job(0, 0, w + s, w + s + 100, tenant="a")])))
            for name, w in named
            for s in range(seeds)
        ]
    )


def line(text, beginning):
    return next(each for each in text.splitlines() if each.strip().startswith(beginning))


def test_one_run_reads_like_a_report():
    rows = [
        job(0, 0, 3600, 8040, gpus=4, deadline=9000.0),
        job(1, 0, None, 0, status=Status.REJECTED, reason="asks for 8 GPUs, has 4"),
    ]
    made = run(rows, events=1200, wall_seconds=0.5, peak_memory_mib=81.2, preemptions=1)
    text = shown(tables.result_tables(summarise(made)))
    assert line(text, "completion time").split("  ")[-1].strip() == "2 h 14 min"
    assert "2 submitted: 1 finished, 1 rejected" in text
    assert "1 preemption, 0 moves" in text
    assert "0.5 s (1,200 events, 2,400/s), 81 MiB" in text
    assert "1 job: 1 met" in text
    assert "! 1 job rejected: asks for 8 GPUs, has 4" in text
    assert "30 s for a restart" in text


def test_one_run_without_finished_jobs_shows_dashes():
    text = shown(tables.result_tables(summarise(run([]))))
    assert "0 submitted: none left" in text
    assert "nan" not in text.lower()


def test_the_best_is_marked_with_and_without_colour():
    groups = compared(300, 0)
    plain = shown(tables.comparison_tables(groups))
    assert "1m40s*" in line(plain, "p1")
    assert "*" not in line(plain, "p0")
    coloured = shown(tables.comparison_tables(groups), colour=True)
    assert "\x1b[1;32m1m40s*" in coloured


def test_several_seeds_show_half_widths_and_say_what_they_are():
    text = shown(tables.comparison_tables(compared(300, 0, seeds=3)))
    assert "± 2.48s" in text
    assert "over 3 seeds" in text


def test_tables_fit_eighty_columns():
    policies = (
        "fifo",
        "srtf:preempt=true",
        "las:thresholds=3250/7200,promote=8",
        "gittins",
        "a",
        "b",
    )
    groups = grouped(
        [
            (name, summarise(random_run(200, seed=s, policy=name, stretch=n + 1)))
            for n, name in enumerate(policies)
            for s in range(2)
        ]
    )
    text = shown(tables.comparison_tables(groups))
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text


def test_tenants_have_policies_as_columns_and_the_best_of_a_row_marked():
    def result(wait_a, wait_b):
        rows = [job(0, 0, wait_a, wait_a + 9, tenant="a"), job(1, 0, wait_b, wait_b + 9, tenant="")]
        return summarise(run(rows))

    text = shown(tables.tenant_tables({"fifo": [result(60, 5)], "srtf": [result(30, 50)]}))
    assert line(text, "tenant").split() == ["tenant", "jobs", "fifo", "srtf"]
    assert line(text, "a ").split() == ["a", "1", "1m", "30s*"]
    assert line(text, "(no tenant)").split() == ["(no", "tenant)", "1", "5s*", "50s"]


def test_a_single_tenant_makes_no_table():
    assert tables.tenant_tables(compared(1, 2)) == []


@pytest.mark.parametrize(("policies", "parts"), [(5, 1), (6, 2), (11, 3)])
def test_many_policies_are_split_over_several_tables_of_tenants(policies, parts):
    rows = [job(0, 0, 0, 9, tenant="a"), job(1, 0, 0, 9, tenant="b")]
    groups = {f"p{n}": [summarise(run(rows))] for n in range(policies)}
    assert len(tables.tenant_tables(groups)) == parts


def test_brackets_in_names_are_text_and_not_markup():
    groups = {"[bold]x[/bold]": compared(1)["p0"], "y": compared(9)["p0"]}
    assert "[bold]x[/bold]" in shown(tables.comparison_tables(groups))
