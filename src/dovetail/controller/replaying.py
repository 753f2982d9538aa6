"""Decides again what a journal says was decided, and compares.

The only place that re-decides. It needs no engine and changes nothing: it answers whether this
program, with these parts, would have made the same plans, and where not, in words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dovetail.controller.journal import Journal, Recorded
from dovetail.controller.machines import read_machines
from dovetail.controller.parts import composer, read_parts
from dovetail.controller.store import Store
from dovetail.core.scheduler import Scheduler
from dovetail.model.errors import UserError
from dovetail.model.plan import Action, Plan


class Divergence(NamedTuple):
    """The first batch for which another plan is made today."""

    sequence: int
    now: float
    recorded: Plan
    decided: Plan
    #: one sentence
    text: str


class Replayed(NamedTuple):
    """How far a replay came."""

    batches: int
    #: None: every plan was the same
    divergence: Divergence | None


def remembered(store: Store) -> Callable[[], Scheduler]:
    """Makes schedulers of the parts that decided, for the machines it was decided about."""
    parts, machines = store.noted("parts"), store.noted("machines")
    if parts is None or machines is None:
        raise UserError(f"{store.where}: does not say what decided, so nothing can be replayed")
    return composer(read_parts(parts), read_machines(machines))


def replay(journal: Journal, make: Callable[[], Scheduler]) -> Replayed:
    """Decide again from the oldest state that schedulers of these parts left."""
    scheduler, start, batches = make(), max(_oldest(journal), journal.since()), 0
    if start:
        scheduler.restore(journal.snapshots.state(start))
    for each in journal.recorded(start):
        batches += 1
        decided = scheduler.step(each.now, each.events)
        if decided != each.plan:
            return Replayed(batches, _divergence(each, decided))
    return Replayed(batches, None)


def first_difference(journal: Journal, make: Callable[[], Scheduler]) -> Divergence | None:
    """The first plan that would be another one today, or None."""
    return replay(journal, make).divergence


def _oldest(journal: Journal) -> int:
    """The number of the snapshot to begin with; 0: the journal is whole."""
    first = next(journal.recorded(0), None)
    if first is None or first.sequence == 1:
        return 0
    # Batches before a snapshot go a few at a time: some may be left that nothing leads to.
    return min((at for at in journal.snapshots.numbers() if at >= first.sequence - 1), default=0)


def _divergence(each: Recorded, decided: Plan) -> Divergence:
    where = f"batch {each.sequence} (second {each.now:g})"
    text = f"{where}: {_difference(each.plan, decided)}"
    return Divergence(each.sequence, each.now, each.plan, decided, text)


def _difference(recorded: Plan, decided: Plan) -> str:
    for then, today in zip(recorded.actions, decided.actions, strict=False):
        if then != today:
            return f"{_words(then)} was recorded, {_words(today)} is decided now"
    short = len(decided.actions)
    if len(recorded.actions) > short:
        return f"{_words(recorded.actions[short])} was recorded and is not decided now"
    if len(recorded.actions) < short:
        return f"{_words(decided.actions[len(recorded.actions)])} is decided now and was not then"
    return f"it wanted to be asked again at {recorded.wake_at}, and now at {decided.wake_at}"


def _words(action: Action) -> str:
    """`start of job 3 on node 0 (2 GPUs)`."""
    said = f"{type(action).__name__.lower()} of job {action.job}"
    allocation = getattr(action, "allocation", None)
    if allocation is None:
        return f"{said} ({action.cause})" if action.cause else said
    nodes = ", ".join(str(part.node) for part in allocation.parts)
    return f"{said} on node {nodes} ({allocation.gpus} GPUs)"
