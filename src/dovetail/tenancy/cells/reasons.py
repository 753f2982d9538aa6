"""Why a job waits, in the words of who owns what.

A planner sees a private cluster and explains what it sees there. Here it is said whose cluster that
is, and what lies behind it: owners who use theirs, or hardware that is bad.
"""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.model.allocation import Allocation
from dovetail.model.plan import BORROWED, Reason
from dovetail.model.request import WHOLE

NO_HARDWARE = "hardware for it is bad, in use by others, or kept for other tenants"
SHORT = frozenset({"devices", "rank", "fragmentation", "cpu or memory", "impossible"})
"""Causes that count what is in a view."""


def of_owner(reason: Reason, tenant: str, bad: Iterable[str]) -> Reason:
    """A reason inside what a tenant owns."""
    nodes = ", ".join(sorted(bad))
    if reason.cause == "next":
        # It fits in the view and still does not start: there was no hardware to bind.
        unblock = f"{nodes} back in service" if nodes else "others using less"
        return Reason("hardware", f"it fits in what {tenant} owns, but {NO_HARDWARE}", (), unblock)
    if reason.cause == "closed nodes":
        text = f"{reason.text}, of what {tenant} owns"
        return reason._replace(text=text, unblock=f"{nodes} back in service")
    if reason.cause in SHORT:
        return reason._replace(text=f"{reason.text} (counting what {tenant} owns)")
    return reason


def of_borrower(reason: Reason, owners: Iterable[int], used: int, gpus: int) -> Reason:
    """A reason inside what owners leave idle; `owners` are jobs that hold `used` of all GPUs."""
    asked = reason.text.partition(";")[0]
    jobs = tuple(owners)
    if reason.cause == "others" and jobs:
        # It would not fit even if all who borrow were gone.
        text = f"{asked}; owners use {used} of {gpus} GPUs themselves, so they are not lent"
        return Reason("owners", text, jobs, "owners leaving more GPUs idle")
    if reason.cause in SHORT:
        return reason._replace(text=f"{reason.text} (counting what owners leave idle)")
    return reason


def of_running(reason: Reason, held: Allocation) -> Reason:
    """A job that runs on what is lent to it."""
    gpus = held.milli_gpus / WHOLE
    if not gpus:
        return reason._replace(cause=BORROWED, text="its CPU and memory are lent to it")
    mine = "its GPU is" if gpus == 1 else f"its {gpus:g} GPUs are"
    return reason._replace(cause=BORROWED, text=f"{mine} lent to it")
