"""What a job is told that runs on loan: whose it is, and what becomes of it when they want it back.

The tenancy says that it is lent, and which GPUs are whose; how a job leaves is in its submission.
"""

from __future__ import annotations

from collections import Counter

from dovetail.controller.intake import seconds
from dovetail.controller.loop import Controller
from dovetail.controller.submission import Submission
from dovetail.controller.tenants import lent_to
from dovetail.model.plan import BORROWED
from dovetail.model.request import WHOLE
from dovetail.model.tenants import Overview
from dovetail.tenancy.kinds import CELLS


def loan(controller: Controller, number: int) -> str:
    """From whom a job that runs has what it runs on, and what then; empty: from nobody."""
    scheduler, live = controller.scheduler, controller.roster.get(number)
    if live is None or scheduler.explain(number).cause != BORROWED:
        return ""
    found = scheduler.tenancy.overview()
    whose = _places(controller, number) if found.kind == CELLS else _numbers(found)
    return f"{whose}; {_then(live.submission, found.kind)}"


def _places(controller: Controller, number: int) -> str:
    """Whose each GPU is, where tenants own cells."""
    gpus: Counter[str] = Counter()
    for each in lent_to(controller, number):
        gpus[each.lender] += round(each.gpus * WHOLE)
    if set(gpus) <= {""}:
        return "what it runs on is nobody's"
    if len(gpus) == 1:
        return f"what it runs on is {next(iter(gpus))}'s"
    owners = sorted(gpus.items(), key=lambda each: (not each[0], each[0]))
    return f"of its GPUs {_listed([_some(name, number / WHOLE) for name, number in owners])}"


def _some(name: str, gpus: float) -> str:
    """`2 are vision's`."""
    return f"{gpus:g} {'is' if gpus <= 1 else 'are'} {name or 'nobody'}'s"


def _numbers(found: Overview) -> str:
    """Who lends, where tenants own numbers: one GPU is as good as another."""
    lenders = [f"{each.name} ({each.lent:g})" for each in found.estates if each.lent]
    return f"GPUs are lent by {_listed(lenders)}" if lenders else "its GPUs are nobody's"


def _then(asked: Submission, kind: str) -> str:
    """What becomes of it once an owner is back."""
    time = seconds(asked.grace)
    saves = f"be asked to save its work, have {time} for that, and wait again with what it saved"
    ends = f"be asked to end, have {time} for that, and lose its work"
    if kind == CELLS:
        last = f"would {saves}" if asked.resumable else f"cannot resume, so it would {ends}"
        return f"if an owner wants these and no others will do, the job {last}"
    first = "the last to borrow" if asked.resumable else "those who can resume"
    last = f"would {saves}" if asked.resumable else f"cannot, and would {ends}"
    return f"if an owner wants some back, {first} go first; this job {last}"


def _listed(words: list[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
