"""Which jobs somebody means: filters for lists, references in words, arrays as one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, select

from dovetail.controller import schema
from dovetail.controller.loop import Controller
from dovetail.controller.roster import ALIVE, HELD, Live
from dovetail.model.errors import Missing, UserError
from dovetail.model.job import Status

DIGITS = 18
"""More make no number a data base could hold."""
STATES = (*map(str, Status), HELD)


@dataclass(frozen=True)
class Filter:
    """Which jobs are wanted; what is left out does not matter."""

    owner: str | None = None
    state: str | None = None
    #: a part of the name
    name: str | None = None
    #: wall time: not submitted, or for those that have ended not ended, before this
    since: float | None = None
    array: int | None = None

    def __post_init__(self) -> None:
        if self.state is not None and self.state not in STATES:
            raise UserError(f"no job is ever {self.state!r}; write one of {', '.join(STATES)}")

    def passes(self, live: Live, state: str) -> bool:
        """Is this one wanted?"""
        return (
            self.owner in (None, live.owner)
            and self.state in (None, state)
            and (self.name is None or self.name in live.name)
            and (self.since is None or live.submitted >= self.since)
            and (
                self.array is None or (live.member is not None and live.member.array == self.array)
            )
        )

    def narrow(self, wanted: Select[Any]) -> Select[Any]:
        """The same for jobs that have ended, as the data base is asked."""
        jobs = schema.jobs.c
        for column, value in ((jobs.owner, self.owner), (jobs.state, self.state)):
            wanted = wanted if value is None else wanted.where(column == value)
        if self.name is not None:
            wanted = wanted.where(jobs.name.contains(self.name, autoescape=True))
        if self.since is not None:
            wanted = wanted.where(jobs.ended >= self.since)
        return wanted if self.array is None else wanted.where(jobs.array == self.array)


ALL = Filter()


def resolve(controller: Controller, text: str, *, alive: bool = False) -> list[int]:
    """The jobs somebody means: `12` is a job or all of an array, `12.3` a member of an array.

    Of an array only those that are `alive`, where that is asked for.
    """
    first, dot, second = text.strip().partition(".")
    if not _number(first) or (dot and not _number(second)):
        raise UserError(f"{text!r} is no job: {_meant(controller, text.strip())}")
    number, jobs = int(first), schema.jobs.c
    if not dot and number in controller.roster:
        return [number]
    wanted = select(jobs.id).where(jobs.array == number).order_by(jobs.id)
    if dot:
        # One that was submitted again has the same place: the latest is meant.
        latest = wanted.where(jobs.index == int(second)).order_by(None).order_by(jobs.id.desc())
        return _numbers(controller, latest.limit(1)) or _missing(f"{number}.{int(second)}")
    if single := _numbers(controller, select(jobs.id).where(jobs.id == number)):
        return single
    if not _numbers(controller, wanted.limit(1)):
        return _missing(str(number))
    return _numbers(controller, wanted.where(ALIVE) if alive else wanted)


def _meant(controller: Controller, name: str) -> str:
    """What to write instead: somebody may have given the name of a job."""
    called = [live for live in controller.roster.values() if live.name == name]
    if called:
        member, number = called[-1].member, called[-1].id
        return f"{number if member is None else member.array} is called so; write that"
    return "write 12, or 12.3 for a member of array 12"


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= DIGITS


def _numbers(controller: Controller, wanted: Select[Any]) -> list[int]:
    return [int(row["id"]) for row in controller.journal.store.rows(wanted)]


def _missing(text: str) -> list[int]:
    raise Missing(f"there is no job {text}")
