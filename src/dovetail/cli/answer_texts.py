"""Answers to why, when and what if, in a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from dovetail.cli.job_tables import moment, plain_table, text
from dovetail.model.live import Estimate, Labels, Range, called
from dovetail.model.shadow import Difference, ShadowReport
from dovetail.model.what_if import Comparison, Shift
from dovetail.model.why import Instead, Why
from dovetail.report.comparing import ROWS, bands, headline
from dovetail.report.words import compact, duration, percent

if TYPE_CHECKING:  # for speed: a command that prints no table does not load rich
    from rich.console import RenderableType

WIDTH = 80
BAR = 36
MOST_SHIFTS = 5
MOST_BLAMED = 10


def why_lines(answer: Why) -> list[str]:
    """A paragraph for the cause, then a line for each thing that matters."""
    head = f"job {answer.label} ({answer.name}) is {answer.state}"
    reason = "" if answer.text in ("", f"it is {answer.state}") else f": {answer.text}"
    lines = textwrap.wrap(f"{head}{reason}.", WIDTH)
    if answer.blame:
        lines.append("In front of it:")
        lines += [
            f"  {each.share:>4.0%}  job {each.label} ({each.name}) of {each.owner or '?'}, "
            f"{each.state}, {each.gpus:g} GPU{'' if each.gpus <= 1 else 's'}"
            for each in answer.blame[:MOST_BLAMED]
        ]
        rest = answer.blame[MOST_BLAMED:]
        if rest:
            lines.append(f"  {sum(each.share for each in rest):>4.0%}  {len(rest)} more")
    if answer.unblock:
        lines += textwrap.wrap(f"What unblocks it: {answer.unblock}.", WIDTH)
    for each in answer.instead:
        lines += textwrap.wrap(
            f"  {_instead(each, answer.labels)}", WIDTH, subsequent_indent="    "
        )
    for more in (answer.loan, answer.stopped, answer.grant):
        if more:
            lines += textwrap.wrap(f"{more[0].upper()}{more[1:]}.", WIDTH)
    return lines


def _instead(each: Instead, labels: Labels) -> str:
    stops = f", stopping {_few(each.stops, labels)}" if each.stops else ""
    if not each.starts_in:
        return f"It would start now with {each.change}{stops}."
    if each.sooner is None:
        return f"It would start in {duration(each.starts_in)} with {each.change}."
    return f"It would start {duration(each.sooner)} sooner with {each.change}."


def when_lines(job: str, found: Estimate, now: float) -> list[str]:
    """A line for the start and one for the end, or why there is none."""
    if found.start.low is None:
        why = f"it starts in too few of {found.runs} possible futures; dovetail why {job} says why"
        return textwrap.wrap(f"When job {job} starts cannot be told: {why}.", WIDTH)
    starts, ends = f"starts {_span(found.start, now)}", _span(found.end, now)
    if found.since is not None:
        since = moment(found.since, short=True)
        starts = f"has been running for {duration(now - found.since)}, since {since}"
    lines = textwrap.wrap(f"job {job} {starts}", WIDTH, subsequent_indent="  ")
    lines += textwrap.wrap(f"and ends {ends}", WIDTH, subsequent_indent="  ")
    chance = f"Each range holds with a probability of {found.chance:.0%}"
    lines.append(f"{chance}: {found.runs} possible futures were tried.")
    past = found.past
    if past is not None and past.held is not None and past.error is not None:
        held = f"{percent(past.held)} of the last {past.estimates} such ranges held"
        lines.append(f"So far {held}; the median error was {duration(past.error)}.")
    return lines


def _span(span: Range, now: float) -> str:
    if span.low is None or span.middle is None:
        return "at a time that cannot be told"
    if span.high == 0:
        return "now"
    high = "or later" if span.high is None else f"to {duration(span.high)}"
    at = moment(now + span.middle, short=True)
    return f"in about {duration(span.middle)} ({duration(span.low)} {high}), at {at}"


def comparison_tables(answer: Comparison) -> list[RenderableType]:
    """Both replays side by side, then who gains and who loses."""
    table = plain_table("", "as it was", "instead")
    for name, show in ROWS.items():
        table.add_row(name, text(show(answer.before)), text(show(answer.after)))
    lead = f"As it was: {answer.before.label}. Instead: {answer.after.label}."
    shown: list[RenderableType] = [
        *map(text, textwrap.wrap(lead, WIDTH)),
        table,
        *map(text, textwrap.wrap(headline(answer), WIDTH)),
    ]
    if answer.sooner or answer.later:
        shown += [text(""), *map(text, _bars(answer))]
    if len(answer.users) > 1:
        shown.append(_shifts("user", answer.users[:15]))
    if len(answer.sizes) > 1:
        shown.append(_shifts("size", answer.sizes))
    if answer.jobs:
        shown.append(_jobs(answer.jobs))
    return [*shown, *(text(f"! {notice}", "yellow") for notice in answer.notices)]


def _bars(answer: Comparison) -> list[str]:
    """How many jobs end how much sooner or later, a bar for each."""
    most, total = max(answer.changes), sum(answer.changes)
    lines = []
    for name, jobs in _between(list(zip(bands(), answer.changes, strict=True))):
        bar = "█" * -(-jobs * BAR // most)
        share = percent(jobs / total)
        lines.append(f" {name:>22} {bar:<{BAR}} {jobs:>7,}  {share:>7}")
    return lines


def _between(counts: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Without the ends in which there is nobody."""
    some = [place for place, (_, jobs) in enumerate(counts) if jobs]
    return counts[some[0] : some[-1] + 1]


def _shifts(what: str, shifts: tuple[Shift, ...]) -> RenderableType:
    table = plain_table(what, "jobs", "mean completion", "instead", "mean wait", "instead")
    for each in shifts:
        times = (each.before, each.after, each.wait_before, each.wait_after)
        table.add_row(text(each.name), f"{each.jobs:,}", *(compact(time) for time in times))
    return table


def _jobs(shifts: tuple[Shift, ...]) -> RenderableType:
    """The few that gain most, then the few that lose most."""
    gain = [each for each in shifts if each.after < each.before]
    lose = [each for each in shifts if each.after > each.before]
    table = plain_table("jobs that change most", "completion", "instead", "wait", "instead")
    for each in [*gain[:MOST_SHIFTS], *lose[-MOST_SHIFTS:]]:
        times = (each.before, each.after, each.wait_before, each.wait_after)
        table.add_row(text(each.name), *(compact(time) for time in times))
    return table


def shadow_tables(told: ShadowReport) -> list[RenderableType]:
    """How often it would have decided otherwise, for whom, and the latest examples."""
    head = f"{told.policy} looks on while {told.present} decides, since {moment(told.since)}"
    asked = (
        f"It was asked about {told.asked:,} of {told.decisions:,} decisions, {told.acted:,} of "
        f"them about something: it would have decided {told.otherwise:,} otherwise."
    )
    waits = (
        f"Mean wait still to come: {duration(told.wait_present)}, "
        f"with {told.policy} {duration(told.wait_candidate)}."
    )
    lines = [line for said in (head + ".", asked, waits) for line in textwrap.wrap(said, WIDTH)]
    shown: list[RenderableType] = [text(line) for line in lines]
    if told.users:
        table = plain_table("user", "started instead", "passed over", "mean wait", "instead")
        for each in told.users[:15]:
            times = (compact(each.present), compact(each.candidate))
            table.add_row(text(each.user), f"{each.instead:,}", f"{each.passed:,}", *times)
        shown += [text(""), table]
    shown += [
        text(line) for each in told.differences[:5] for line in _difference(each, told.labels)
    ]
    if told.failures:
        said = f"! {told.failures:,} times it could not decide; the last time: {told.failure}"
        shown.append(text(said, "yellow"))
    cost = f"It took {percent(told.share)} of the time; {percent(told.budget)} is its limit."
    return [*shown, text(cost, "dim")]


def _difference(each: Difference, labels: Labels) -> list[str]:
    """`21:04:10  it would have started 7, 9; not started 3`."""
    words = {
        "started": each.instead,
        "not started": each.passed,
        "stopped": each.stops,
        "not stopped": each.spared,
    }
    said = "; ".join(f"{verb} {_few(jobs, labels)}" for verb, jobs in words.items() if jobs)
    lead = f"{moment(each.at)}  "
    return textwrap.wrap(f"{lead}it would have {said}", WIDTH, subsequent_indent=" " * len(lead))


def _few(jobs: tuple[int, ...], labels: Labels) -> str:
    more = f" and {len(jobs) - 5} more" if len(jobs) > 5 else ""
    return f"job{'s' * (len(jobs) > 1)} {called(labels, *jobs[:5])}{more}"
