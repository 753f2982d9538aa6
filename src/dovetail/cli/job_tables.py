"""Jobs and machines in a terminal of 80 columns."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from dovetail.cli.output import printable
from dovetail.model.live import (
    Description,
    Detail,
    Forecast,
    Labels,
    Machine,
    Place,
    Run,
    Token,
    Usage,
    called,
    said_cores,
)
from dovetail.report.words import compact, duration

if TYPE_CHECKING:  # for speed: a command that prints no table does not load rich
    from rich.console import RenderableType
    from rich.table import Table

STYLES = {
    "running": "green",
    "starting": "green",
    "waiting": "yellow",
    "held": "magenta",
    "stopping": "cyan",
    "suspended": "cyan",
    "done": "green",
    "failed": "red",
    "rejected": "red",
    "cancelled": "dim",
}


def queue_table(jobs: Sequence[Description], now: float) -> Table:
    """One line for each job or array."""
    table = plain_table("job", "name", "user", "state", "GPUs", "for", "where, or why not")
    table.columns[4].justify = table.columns[5].justify = "right"
    for column in table.columns[:6]:
        column.no_wrap = True
    table.columns[1].max_width, table.columns[2].max_width = 16, 10
    for members in _gathered(jobs):
        table.add_row(*_queue_row(members, now))
    return table


def _gathered(jobs: Sequence[Description]) -> Iterable[list[Description]]:
    """Members of an array that are in the same state are one line."""
    lines: dict[object, list[Description]] = {}
    for job in jobs:
        alike = (job.array, job.state) if job.array is not None else job.id
        lines.setdefault(alike, []).append(job)
    return lines.values()


def _queue_row(members: list[Description], now: float) -> list[RenderableType]:
    job = members[0]
    since = job.submitted if job.started is None or job.state == "waiting" else job.started
    gpus = sum(each.gpus for each in members)
    return [
        text(array_name(members)),
        text(job.name),
        text(job.owner),
        _state(job.state),
        text(f"{gpus:g}"),
        text(compact(max(0.0, now - since))),
        text(_where(members) or job.reason),
    ]


def _where(members: Sequence[Description]) -> str:
    """What a job has; of several, on which nodes they are; empty: they have nothing."""
    if len(members) == 1:
        return places_text(members[0].places)
    nodes = dict.fromkeys(place.node for each in members for place in each.places)
    return f"{', '.join(nodes)}: {len(members)} jobs" if nodes else ""


def array_name(members: Sequence[Description]) -> str:
    """`7`, `12.3`, or `12 (×8)`."""
    job = members[0]
    return job.label if len(members) == 1 else f"{job.array} (×{len(members)})"


def history_table(jobs: Sequence[Description]) -> Table:
    """One line for each job that has ended."""
    table = plain_table("job", "name", "user", "state", "GPUs", "waited", "ran", "ended", "how")
    for column in table.columns[:8]:
        column.no_wrap = True
    table.columns[1].max_width, table.columns[2].max_width = 14, 8
    for job in jobs:
        began = job.started if job.started is not None else job.ended
        waited = None if began is None else began - job.submitted
        ran = None if job.started is None or job.ended is None else job.ended - job.started
        table.add_row(
            text(array_name([job])),
            text(job.name),
            text(job.owner),
            _state(job.state),
            text(f"{job.gpus:g}"),
            text(compact(waited)),
            text(compact(ran)),
            text(moment(job.ended, short=True)),
            text(outcome(job)),
        )
    return table


def outcome(job: Description) -> str:
    """How it ended."""
    if job.reason:
        return job.reason
    if job.signal is not None:
        return f"signal {job.signal}"
    return f"exit code {job.code}" if job.code else ""


def detail_tables(detail: Detail, now: float) -> list[RenderableType]:
    """All that is known of one job."""
    shown: list[RenderableType] = [_pairs(_facts(detail, now))]
    if detail.runs:
        shown += [text(""), _runs_table(detail.runs)]
    return shown


def _facts(detail: Detail, now: float) -> list[tuple[str, str]]:
    job = detail.job
    asked = [f"{job.gpus:g} GPU{'' if job.gpus == 1 else 's'}"]
    asked += [said_cores(job.cpu)] if job.cpu else []
    asked += [f"{job.memory / 1024:.3g} GiB"] if job.memory else []
    facts = [
        ("job", array_name([job])),
        ("name", job.name),
        ("user", job.owner),
        ("state", job.state),
        ("reason", job.reason),
        ("in its way", called(detail.labels, *job.blockers)),
        ("unblocked by", job.unblock),
        ("asked for", ", ".join(asked)),
        ("holds", places_text(job.places)),
        ("tenant", job.tenant),
        ("priority", f"{job.priority:g}" if job.priority else ""),
        ("after", called(detail.labels, *job.after)),
        ("time limit", duration(job.time_limit) if job.time_limit else ""),
        ("progress", progress_text(job)),
        ("submitted", f"{moment(job.submitted)} ({duration(now - job.submitted)} ago)"),
        ("started", moment(job.started)),
        ("ended", moment(job.ended)),
        ("exit code", "" if job.code is None or job.ended is None else str(job.code)),
        ("command", shlex.join(job.command)),
        ("directory", detail.directory),
        ("secrets", ", ".join(detail.hidden)),
    ]
    return [(name, text) for name, text in facts if text]


def _runs_table(runs: Sequence[Run]) -> Table:
    table = plain_table("attempt", "started", "ran", "on", "outcome")
    for run in runs:
        ran = None if run.ended is None else run.ended - run.started
        table.add_row(
            str(run.number),
            moment(run.started),
            compact(ran),
            text(places_text(run.places)),
            text(run.outcome),
        )
    return table


def progress_text(job: Description) -> str:
    """`1,200 of 5,000 steps, 12.5 a second, 5 min left`."""
    told = job.progress
    if told is None:
        return ""
    text = f"{told.steps:,.0f} steps"
    if told.total:
        text = f"{told.steps:,.0f} of {told.total:,.0f} steps"
    if told.rate > 0:
        text += f", {told.rate:.3g} a second"
        if told.total and job.ended is None:
            text += f", {duration(max(0.0, told.total - told.steps) / told.rate)} left"
    return text


def nodes_table(nodes: Sequence[Machine]) -> Table:
    """One line for each machine."""
    table = plain_table("node", "type", "state", "free GPUs", "free cores", "free memory", "jobs")
    for node in nodes:
        others = f" ({len(node.foreign)} used by others)" if node.foreign else ""
        table.add_row(
            text(node.name),
            text("virtual GPUs" if node.virtual else node.type),
            text(node.state),
            text(f"{node.free} of {node.gpus}{others}"),
            text(_part(node.cpu_free, node.cpu, 1000.0, "")),
            text(_part(node.memory_free, node.memory, 1024.0, " GiB")),
            text(_few(node.jobs, node.labels)),
        )
    return table


def _part(free: int | None, all_: int | None, unit: float, name: str) -> str:
    if free is None or all_ is None:
        return ""
    return f"{max(0.0, round(free / unit, 1)):g} of {round(all_ / unit, 1):g}{name}"


def _few(jobs: Sequence[int], labels: Labels) -> str:
    more = f" and {len(jobs) - 8} more" if len(jobs) > 8 else ""
    return called(labels, *jobs[:8]) + more


def usage_table(users: Sequence[Usage]) -> Table:
    """One line for each user, the heaviest first."""
    table = plain_table(
        "user", "GPU hours", "CPU hours", "jobs", "done", "failed", "running", "waiting"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for each in sorted(users, key=lambda user: (-user.gpu_hours, user.owner)):
        hours = (f"{each.gpu_hours:,.2f}", f"{each.cpu_hours:,.2f}")
        counts = (each.jobs, each.done, each.failed, each.running, each.waiting)
        table.add_row(text(each.owner), *hours, *(f"{count:,}" for count in counts))
    return table


def tokens_table(tokens: Sequence[Token]) -> Table:
    """One line for each token."""
    table = plain_table("token", "user", "role", "expires", "state", "note")
    for each in tokens:
        state = "revoked" if each.revoked else ""
        row = (each.id, each.owner, each.role, moment(each.expires), state, each.note)
        table.add_row(*map(text, row))
    return table


def forecast_text(found: Forecast) -> str:
    """What a dry run says."""
    if not found.possible:
        return f"It can never run here: it {found.reason}."
    many = f" (the first of {found.jobs} jobs)" if found.jobs > 1 else ""
    if found.starts_in is None:
        return f"It would wait{many}: {found.reason}. When it would start cannot be told."
    where = places_text(found.places)
    if found.starts_in == 0 and found.reason:
        return f"It would have{many} {where} at once, and start when they are free: {found.reason}."
    if found.starts_in == 0:
        return f"It would start now{many} on {where}."
    believed = " if jobs take as long as believed" if found.believed else ""
    when = duration(found.starts_in)
    return f"It would wait{many}: {found.reason}. It would start in {when} on {where}{believed}."


def places_text(places: Sequence[Place]) -> str:
    """`box: GPU 0,1, 4 cores, 8 GiB`."""
    return " + ".join(map(str, places))


def moment(at: float | None, short: bool = False) -> str:
    """Wall time where the reader is."""
    if at is None:
        return ""
    when = datetime.fromtimestamp(at).astimezone()
    return when.strftime("%m-%d %H:%M" if short else "%Y-%m-%d %H:%M:%S")


def _state(state: str) -> RenderableType:
    return text(state, STYLES.get(state, ""))


def _pairs(rows: Iterable[tuple[str, str]]) -> Table:
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(text(name), text(value))
    return table


def plain_table(*columns: str) -> Table:
    """Columns without frames."""
    from rich import box  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column, overflow="ellipsis")
    table.columns[-1].overflow = "fold"
    return table


def text(content: str, style: str = "") -> RenderableType:
    """Taken as it is: brackets in a name are not markup, and control characters do nothing."""
    from rich.text import Text  # noqa: PLC0415

    return Text(printable(content), style)
