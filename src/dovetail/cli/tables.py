"""Results in a terminal of 80 columns: one run, policies compared, tenants.

The best of a column is bold, green and followed by `*`, so that it is seen without colour too.
Durations are in words, counts with thousands separators. What is compared, and which way is
better, is decided in `report.measures`; rich is imported when a table is made, not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dovetail.metrics.records import OUTCOMES
from dovetail.report import measures, words
from dovetail.report.measures import Cell, Groups, Measure, Result

if TYPE_CHECKING:  # for speed: a command that prints no table does not load rich
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

POLICIES_WIDE = 5
"""Policies side by side in the table of tenants; more make further tables below."""

DISTRIBUTION = ("mean", "median", "p95", "p99")


def result_tables(result: Result) -> list[RenderableType]:
    """One run: what became of the jobs, how long they took, and under which settings."""
    return [
        _distributions(result),
        *excess_tables({"here": [result]}),
        _pairs("Run", _run_facts(result)),
        "",
        _pairs("Settings", words.settings(result).items()),
        *remarks({"run": [result]}),
    ]


def comparison_tables(groups: Groups) -> list[RenderableType]:
    """Policies as rows; over several seeds, means with the half width of their 95 % interval."""
    shown: list[RenderableType] = [
        _comparison("Times", groups, measures.TIMES),
        _comparison("Use and fairness", groups, measures.USE),
    ]
    tables = [*tenant_tables(groups), *excess_tables(groups)]
    return [*shown, *tables, _legend(groups), *remarks(groups)]


def tenant_tables(groups: Groups, most: int = 12) -> list[RenderableType]:
    """Mean wait by tenant with policies as columns; nothing where there is one tenant only."""
    names = measures.largest_tenants(groups, most)
    if len(names) < 2:
        return []
    return [_tenants(names, groups, part) for part in _parts(list(groups), POLICIES_WIDE)]


def excess_tables(groups: Groups, most: int = 12) -> list[RenderableType]:
    """How much longer tenants waited than in a private cluster, where that was computed."""
    excess = measures.excess_waits(groups)
    if not excess:
        return []
    most_of = {name: max(abs(value or 0.0) for value in row) for name, row in excess.items()}
    moved = sorted(
        (name for name in excess if most_of[name] >= words.NOTICED), key=lambda name: -most_of[name]
    )
    if not moved:
        return [_text("Every tenant waited exactly as long as in a private cluster.\n")]
    shown = {name: excess[name] for name in moved[:most]}
    rest = {
        "waited exactly as long": len(excess) - len(moved),
        "with smaller differences": len(moved) - len(shown),
    }
    said = [f"{words.plural(many, 'more tenant')} {how}." for how, many in rest.items() if many]
    return [
        *(_excess(shown, groups, part) for part in _parts(list(groups), POLICIES_WIDE)),
        *([_text(" ".join(said) + "\n")] if said else []),
    ]


def remarks(groups: Groups) -> list[RenderableType]:
    """Cautions and notices, one line each."""
    said = [*measures.cautions(groups), *measures.notices(groups)]
    return [_text(f"! {remark}", "yellow") for remark in said]


def _parts(labels: list[str], size: int) -> list[list[str]]:
    return [labels[begin : begin + size] for begin in range(0, len(labels), size)]


def _text(content: str, style: str = "") -> Text:
    """Text taken as it is: brackets in a policy or a path are not markup."""
    from rich.text import Text  # noqa: PLC0415

    return Text(content, style)


def _table(title: str, first: str, columns: Iterable[str]) -> Table:
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column(_text(first), overflow="fold")
    for column in columns:
        table.add_column(_text(column), justify="right", overflow="fold")
    return table


def _narrow(measure: Measure) -> Measure:
    """The measure with durations in few letters: six of them must fit into a line."""
    return replace(measure, show=words.compact) if measure.show is words.duration else measure


def _distributions(result: Result) -> Table:
    table = _table("Finished jobs", "", DISTRIBUTION)
    for key, label, show in (
        ("jct", "completion time", words.duration),
        ("wait", "wait", words.duration),
        ("slowdown", "slowdown", words.ratio),
    ):
        figures = result[key]
        table.add_row(label, *(show(figures[name]) for name in DISTRIBUTION))
    return table


def _pairs(title: str, rows: Iterable[tuple[str, str]]) -> Table:
    from rich.table import Table  # noqa: PLC0415

    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        show_header=False,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(_text(name), _text(value))
    return table


def _run_facts(result: Result) -> list[tuple[str, str]]:
    facts = [
        ("Jobs", _outcomes(result["jobs"])),
        ("Makespan", words.duration(result["makespan"])),
        *_use(result),
        ("Interruptions", _interruptions(result)),
        ("Fairness", _fairness(result["fairness"])),
    ]
    if due := result.get("deadlines"):
        facts.append(("Deadlines", _deadlines(due)))
    if report := result["policy_report"]:
        facts.append(("Policy says", words.value(report)))
    return [*facts, ("Simulated in", _cost(result))]


def _outcomes(jobs: Result) -> str:
    parts = [f"{words.count(jobs[name])} {name}" for name in OUTCOMES if jobs[name]]
    return f"{words.count(jobs['submitted'])} submitted: {', '.join(parts) or 'none left'}"


def _use(result: Result) -> list[tuple[str, str]]:
    names = (("gpu", "GPU use"), ("cpu", "CPU use"), ("memory", "Memory use"))
    use = result["utilisation"]
    return [(title, words.percent(use[key])) for key, title in names if use[key] is not None]


def _interruptions(result: Result) -> str:
    preemptions, moves = result["preemptions"], result["moves"]
    return f"{words.plural(preemptions, 'preemption')}, {words.plural(moves, 'move')}"


def _fairness(fairness: Result) -> str:
    ratios = fairness["finish_time"]
    if ratios["worst"] is None:
        return words.NOTHING
    late = f"{words.percent(ratios['unfair'])} of jobs later than with an equal share"
    return (
        f"Jain {words.ratio(fairness['jain'])}; {late}, at worst {words.ratio(ratios['worst'])} x"
    )


def _deadlines(due: Result) -> str:
    parts = [f"{words.count(due[name])} {name}" for name in due if name != "jobs" and due[name]]
    return f"{words.plural(due['jobs'], 'job')}: {', '.join(parts)}"


def _cost(result: Result) -> str:
    seconds = result["wall_seconds"]
    speed = f", {words.count(round(result['events'] / seconds))}/s" if seconds else ""
    memory = f"{words.count(round(result['peak_memory_mib']))} MiB"
    return f"{words.duration(seconds)} ({words.plural(result['events'], 'event')}{speed}), {memory}"


def _comparison(title: str, groups: Groups, columns: Sequence[Measure]) -> Table:
    table = _table(title, "policy", [measure.title for measure in columns])
    by_column = [measures.column(groups, _narrow(measure)) for measure in columns]
    for label, cells in zip(groups, zip(*by_column, strict=True), strict=True):
        table.add_row(_text(label), *map(_cell, cells))
    return table


def _tenants(names: Sequence[str], groups: Groups, labels: Sequence[str]) -> Table:
    """Rows are tenants, and the best policy is marked among all, also those in other tables."""
    table = _table("Mean wait by tenant", "tenant", ("jobs", *labels))
    wait = _narrow(measures.WAIT)
    first = next(iter(groups.values()))[0]["tenants"]
    for name in names:
        cells = measures.cells(measures.tenant_values(groups, name, "mean_wait"), wait)
        shown = [cell for label, cell in zip(groups, cells, strict=True) if label in labels]
        jobs = words.count(first.get(name, {}).get("jobs"))
        table.add_row(_text(words.tenant(name)), jobs, *map(_cell, shown))
    return table


def _excess(
    excess: Mapping[str, Sequence[float | None]], groups: Groups, labels: Sequence[str]
) -> Table:
    """Rows are tenants; a minus says that sharing was better."""
    table = _table("Mean wait beyond that in a private cluster", "tenant", labels)
    for name, row in excess.items():
        shown = [each for label, each in zip(groups, row, strict=True) if label in labels]
        table.add_row(_text(words.tenant(name)), *(_text(words.beyond(each)) for each in shown))
    return table


def _cell(cell: Cell) -> Text:
    # The space keeps the digits of unmarked figures under those of marked ones.
    text = _text("").append(f"{cell.text}*", "bold green") if cell.best else _text(f"{cell.text} ")
    return text.append(f"\n{cell.spread} ", "dim") if cell.spread else text


def _legend(groups: Groups) -> Text:
    """How to read the tables."""
    seeds = max(len(results) for results in groups.values())
    lines = ["FTF: JCT over the time an equal share would have taken; unfair: FTF over 1.05"]
    if len(groups) > 1:
        lines.append("*: best of its column, or of its row in the table of tenants")
    if seeds > 1:
        lines.append(f"±: half width of the 95 % interval of the mean over {seeds} seeds")
    return _text("\n".join(lines), "dim")
