"""What the scheduler decided: a diff of actions against what runs, as a value."""

from __future__ import annotations

from typing import NamedTuple

from dovetail.model.allocation import Allocation


class Start(NamedTuple):
    """Start a waiting job here. It is dispatched once every job in `awaits` let go."""

    job: int
    allocation: Allocation
    cause: str = "fits"
    awaits: tuple[int, ...] = ()


class Stop(NamedTuple):
    """Checkpoint and stop a running job, or call off a start that still waits for devices."""

    job: int
    cause: str = ""


class Suspend(NamedTuple):
    """Free the devices and keep `residual` (host memory on its node)."""

    job: int
    residual: Allocation
    cause: str = ""


class Resume(NamedTuple):
    """Continue a suspended job here, once every job in `awaits` let go."""

    job: int
    allocation: Allocation
    cause: str = ""
    awaits: tuple[int, ...] = ()


class Change(NamedTuple):
    """Change what a running job holds; `model.allocation.classify` says what kind it is."""

    job: int
    allocation: Allocation
    cause: str = ""


class Reject(NamedTuple):
    """The job can never run here; the reason is a sentence for its owner."""

    job: int
    cause: str


Action = Start | Stop | Suspend | Resume | Change | Reject


class Asked(NamedTuple):
    """One of several domains was asked: what it wanted, on the nodes of its own view."""

    domain: int
    wanted: tuple[Action, ...] = ()
    #: how many actions of the plan came of it
    came: int = 0


class Plan(NamedTuple):
    """One decision: actions in the order they must be carried out, and when to ask again."""

    actions: tuple[Action, ...] = ()
    wake_at: float | None = None
    #: how it came about where several domains plan, in order; what they owed before comes first
    asked: tuple[Asked, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.actions)


EMPTY = Plan()


BORROWED = "borrowed"
"""The cause of a job that runs on what others own, until they want it."""


class Reason(NamedTuple):
    """Why a job waits: the one binding cause, in words, and what would unblock it."""

    cause: str
    text: str
    #: jobs in the way, the most important first
    blockers: tuple[int, ...] = ()
    #: what would let it start, if known
    unblock: str = ""
