"""Tenants in a terminal of 80 columns: what they own, what is lent, and which GPUs are whose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dovetail.cli.job_tables import plain_table, text
from dovetail.model.live import Labels, called
from dovetail.model.tenants import (
    Change,
    Estate,
    Loan,
    Overview,
    Shift,
    Tenant,
    Tenants,
    Use,
)
from dovetail.report.words import compact, duration

if TYPE_CHECKING:  # for speed: a command that prints no table does not load rich
    from rich.console import RenderableType
    from rich.table import Table

STYLES = {
    Use.USED: "green",
    Use.IDLE: "dim",
    Use.LENT: "yellow",
    Use.RETURNING: "cyan",
    Use.BAD: "red",
}
UNITS = "running, on loan and waiting are jobs; all others are GPUs"
NOBODY = "(nobody)"
NOWHERE = "–"
"""Whose a GPU is that others use, or nobody, where tenants own numbers of them."""


def owners_line(found: Overview | Tenants) -> str:
    """`tenants with cells: vision 4 GPUs, speech 2 GPUs; 2 are nobody's`."""
    estates: Sequence[Estate] = found.estates if isinstance(found, Overview) else found.tenants
    owned = ", ".join(f"{each.name} {_gpus(each.gpus)}" for each in estates)
    left = f"; {_gpus(found.unowned)} nobody's" if found.unowned else ""
    return f"tenants with {found.kind}: {owned}{left}"


def tenants_tables(found: Tenants, now: float) -> list[RenderableType]:
    """What tenants own, what is lent to whom, and whose each GPU is."""
    if not found.kind:
        return [text("There are no tenants here: everybody shares everything.")]
    shown: list[RenderableType] = [_owners(found), text(UNITS, "dim"), _users(found.tenants)]
    if any(tenant.cells for tenant in found.tenants):
        shown.append(_cells(found.tenants))
    if found.loans:
        shown.append(_loans(found, now))
    shown.append(_nodes(found))
    if any(patch.cell and not patch.bound for patch in found.patches):
        shown.append(
            text("~: not tied to these GPUs; they are what its owner would get now", "dim")
        )
    return shown


def change_tables(change: Change) -> list[RenderableType]:
    """Who gains and who loses, and which jobs that concerns."""
    shown: list[RenderableType] = [text(_head(change))]
    if change.tenants:
        shown.append(_shifts(change.tenants))
    elif change.before == change.after:
        shown.append(text("No tenant gains or loses anything."))
    if change.jobs:
        shown.append(_affected(change))
    others = f"{change.running} run" if change.running != 1 else "1 runs"
    shown.append(text(f"No job is stopped: {others}." if change.running else "No job runs."))
    if at_risk := [called(change.labels, each.job) for each in change.jobs if each.at_risk]:
        shown.append(text(_risk(at_risk)))
    if not change.applied:
        shown.append(text("Nothing was changed: this was a dry run."))
    return shown


def _head(change: Change) -> str:
    """`Tenants own cells now.`"""
    who, what = ("Tenants", change.after) if change.after else ("Nobody", "anything")
    verb = "own" if change.after else "owns"
    return f"{who} {verb} {what} now." if change.applied else f"{who} would own {what}."


def _risk(jobs: Sequence[str]) -> str:
    """Whose work is lost if owners want what they own, in one sentence."""
    some = len(jobs) > 1
    return (
        f"{len(jobs)} of them cannot resume and {'are' if some else 'is'} on what others own from "
        f"then on: {'jobs' if some else 'job'} {', '.join(jobs)}. Owners are given other GPUs "
        "first; where there are none, that work is lost."
    )


def _shifts(shifts: Sequence[Shift]) -> Table:
    cells = any(each.cells for each in shifts)
    table = plain_table("tenant", "GPUs before", "after", *["cells"] * cells)
    table.columns[1].justify = table.columns[2].justify = "right"
    for each in shifts:
        amounts = (f"{each.before:g}", f"{each.after:g}")
        table.add_row(text(each.name), *amounts, *[text(", ".join(each.cells))] * cells)
    return table


def _affected(change: Change) -> Table:
    table = plain_table("job", "name", "user", "tenant", "state", "from then on")
    for column in table.columns[:5]:
        column.no_wrap = True
    table.columns[1].max_width, table.columns[2].max_width = 16, 10
    for each in change.jobs:
        row = (
            called(change.labels, each.job),
            each.name,
            each.user,
            each.tenant,
            each.state,
            each.becomes,
        )
        table.add_row(*map(text, row))
    return table


def _owners(found: Tenants) -> Table:
    table = plain_table(
        "tenant", "GPUs", "used", "idle", "lent", "bad", "borrowed", "running", "on loan", "waiting"
    )
    table.columns[0].overflow = "fold"
    for column in table.columns[1:]:
        column.justify, column.no_wrap = "right", True
    for each in found.tenants:
        amounts = (each.gpus, each.used, each.idle, each.lent, each.bad, each.borrowed)
        counts = (each.running, each.borrowing, each.waiting)
        figures = (*(f"{amount:g}" for amount in amounts), *map(str, counts))
        table.add_row(text(each.name), *figures)
    if found.unowned:
        table.add_row(text(NOBODY, "dim"), f"{found.unowned:g}")
    return table


def _users(tenants: Iterable[Tenant]) -> Table:
    table = plain_table("tenant", "whose jobs are its own")
    for tenant in tenants:
        table.add_row(text(tenant.name), text(_people(tenant)))
    return table


def _people(tenant: Tenant) -> str:
    """`ann, group lab`; the group of its name, where nobody is listed."""
    users = ["everybody" if user == "*" else user for user in tenant.users]
    groups = tenant.groups if users or tenant.groups else (tenant.name,)
    return ", ".join([*users, *(f"group {group}" for group in groups)])


def _cells(tenants: Iterable[Tenant]) -> Table:
    table = plain_table("tenant", "cells", "GPUs each", "owned", "used", "idle", "lent", "bad")
    for column in table.columns[2:]:
        column.justify = "right"
    for tenant in tenants:
        for cell in tenant.cells:
            counts = (cell.gpus, cell.owned, cell.used, cell.idle, cell.lent, cell.bad)
            table.add_row(text(tenant.name), text(cell.type), *map(str, counts))
    return table


def _unowned(found: Tenants) -> str:
    return NOWHERE if found.kind == "shares" else NOBODY


def _loans(found: Tenants, now: float) -> Table:
    table = plain_table("lent to", "name", "user", "tenant", "GPUs", "of", "for", "back")
    for column in table.columns[:7]:
        column.no_wrap = True
    for place, width in {1: 12, 2: 10, 3: 10, 5: 12}.items():
        table.columns[place].max_width = width
    for loan in found.loans:
        table.add_row(
            text(f"job {called(found.labels, loan.job)}"),
            text(loan.name),
            text(loan.user),
            text(loan.borrower or NOBODY),
            text(_where(loan.node, loan.devices)),
            text(loan.lender or _unowned(found)),
            text("" if loan.since is None else compact(max(0.0, now - loan.since))),
            text(_back(loan, found.labels)),
        )
    return table


def _back(loan: Loan, labels: Labels) -> str:
    """When its owner has it again."""
    if loan.back_in is None:
        return "when wanted"
    wanted = "" if loan.wanted_by is None else f", for job {called(labels, loan.wanted_by)}"
    return f"in {duration(loan.back_in)}{wanted}"


def _nodes(found: Tenants) -> Table:
    cells, last = any(patch.cell for patch in found.patches), ""
    table = plain_table("node", "GPUs", "of", *["cell"] * cells, "use", "jobs")
    for patch in sorted(found.patches, key=lambda each: (each.node, each.devices)):
        name, last = ("" if patch.node == last else patch.node), patch.node
        table.add_row(
            text(name),
            text(_spans(patch.devices)),
            text(patch.tenant or _unowned(found), "" if patch.tenant else "dim"),
            *[text(patch.cell + ("" if patch.bound or not patch.cell else " ~"))] * cells,
            text(patch.use, STYLES[patch.use]),
            text(called(found.labels, *patch.jobs)),
        )
    return table


def _where(node: str, devices: Sequence[int]) -> str:
    return f"{node}: {_spans(devices)}"


def _spans(devices: Sequence[int]) -> str:
    """`0-3,6`."""
    found: list[list[int]] = []
    for device in devices:
        if found and device == found[-1][-1] + 1:
            found[-1].append(device)
        else:
            found.append([device])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in found)


def _gpus(count: float) -> str:
    return f"{count:g} GPU{'' if count == 1 else 's'}"
