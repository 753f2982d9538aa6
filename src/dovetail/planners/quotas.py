"""Nobody holds more than their quota: a job over it is passed over and blocks nobody.

Jobs of accounts with limits have lanes of their own, and what their accounts hold is counted as
jobs come and go. A walk asks an `Allowance` which of a lane's options its accounts may still have;
if none, the lane is left out for now, in strict orders too. What runs is never stopped for a quota.
Planners without quotas are other classes and pay nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail.core.draft import Option
from dovetail.core.lanes import Lane
from dovetail.core.naming import names_of
from dovetail.core.view import Amounts
from dovetail.model.job import Job, JobSpec
from dovetail.model.plan import Action, Reason
from dovetail.model.quota import GROUP, Limit
from dovetail.model.request import Request
from dovetail.planners.reasons import describe, next_to_end
from dovetail.planners.terms import amounts_of, held_by
from dovetail.planners.walk import Walk

NONE: Amounts = (0, 0, 0)
SHORT = frozenset({"devices", "fragmentation", "cpu or memory", "rank"})
"""Causes that say what is missing."""


def _added(held: Amounts, more: Amounts, sign: int = 1) -> Amounts:
    return held[0] + sign * more[0], held[1] + sign * more[1], held[2] + sign * more[2]


def _within(held: Amounts, more: Amounts, limit: Limit) -> bool:
    sums = zip(_added(held, more), limit, strict=True)
    return all(most is None or amount <= most for amount, most in sums)


class Allowance:
    """What accounts may still have while one plan is made."""

    def __init__(self, held: dict[str, Amounts]) -> None:
        self._held = dict(held)

    def choices(self, lane: Lane) -> Sequence[Option]:
        """The options of a lane that none of its accounts forbids."""
        if not lane.accounts:
            return lane.options
        return [each for each in lane.options if self.binding(lane, amounts_of(each)) is None]

    def binding(self, lane: Lane, more: Amounts) -> tuple[str, Limit] | None:
        """The first account whose limit forbids a job of the lane that much."""
        for name, limit in lane.accounts:
            if not _within(self._held.get(name, NONE), more, limit):
                return name, limit
        return None

    def add(self, lane: Lane, more: Amounts, sign: int = 1) -> None:
        """A job of the lane gets that much in this plan, or gives it back."""
        for name, _ in lane.accounts:
            self._held[name] = _added(self._held.get(name, NONE), more, sign)


class Limited(Walk):
    """A walk that minds quotas; a mixin for the other kinds of walk."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        assert self.quotas is not None
        self._apart = True
        # Who was refused for a quota may come in when nothing but the quota changed.
        self._steady = False
        #: what each account with a limit holds, and what of it is each job's
        self._used: dict[str, Amounts] = {}
        self._used_by: dict[int, Amounts] = {}

    def accounts(self, spec: JobSpec) -> tuple[tuple[str, Limit], ...]:
        """The accounts of a job that have limits."""
        assert self.quotas is not None
        return self.quotas.accounts(spec)

    def allowance(self) -> Allowance:
        """What accounts may have in the plan that is about to be made."""
        return Allowance(self._used)

    def _refusal(self, lane: Lane, request: Request) -> str | None:
        """Also a job that exceeds a quota all alone can never run."""
        refusal = super()._refusal(lane, request)
        alone = Allowance({})
        if refusal is not None or alone.choices(lane):
            return refusal
        name, limit = alone.binding(lane, _least(lane)) or ("", Limit())
        return f"asks for {describe(request)}; {_whose(name)} is {_words(limit)} at one time"

    def plan(self, now: float) -> list[Action]:
        """A newcomer that finds nobody waiting takes the short way only if all may be its."""
        lone = self._lone
        if lone is not None and self.allowance().choices(lone.lane) != list(lone.lane.options):
            self.view.now = now
            self._seat()
        return super().plan(now)

    def started(self, job: Job, now: float) -> None:
        """Count what the job holds."""
        super().started(job, now)
        self._charge(job)

    def left(self, job: Job, now: float, done: bool) -> None:
        """What the job held is its accounts' again."""
        self._refund(job)
        super().left(job, now, done)

    def resized(self, job: Job, now: float) -> None:
        """It holds other amounts."""
        super().resized(job, now)
        self._refund(job)
        self._charge(job)

    def restore(self, state: dict[str, Any], jobs: Sequence[Job]) -> None:
        """Rebuild the index, and who holds what."""
        super().restore(state, jobs)
        for job in self.view.running.values():
            self._charge(job)

    def _charge(self, job: Job) -> None:
        self._used_by[job.id] = held_by(job)
        self._book(job, 1)

    def _refund(self, job: Job) -> None:
        if job.id in self._used_by:
            self._book(job, -1)
            del self._used_by[job.id]

    def _book(self, job: Job, sign: int) -> None:
        lane: Lane = job.lane
        for name, _ in lane.accounts:
            amounts = _added(self._used.get(name, NONE), self._used_by[job.id], sign)
            self._used[name] = amounts
            if amounts == NONE:
                del self._used[name]

    def explain(self, job: Job, now: float) -> Reason:
        """A quota is the binding cause wherever it alone would keep the job waiting."""
        self.view.now = now
        self._seat()
        lane = self.lane(job)
        allowance = self.allowance()
        if not lane.options or allowance.choices(lane):
            return super().explain(job, now)
        asked = _least(lane)
        name, limit = allowance.binding(lane, asked) or ("", Limit())
        used = self._used.get(name, NONE)
        text = (
            f"needs {describe(job.spec.request)}; {_whose(name)} is {_words(limit)} at one time "
            f"and {_words(Limit(*used), limit)} are in use"
        )
        blockers = self._to_end(name, limit, asked)
        unblock = (
            f"the end of {names_of(self.view.jobs, blockers)}" if blockers else "a larger quota"
        )
        short = super().explain(job, now)
        if short.cause in SHORT:
            # Two things are missing: without the quota it would wait as well.
            text = f"{text}; besides, {short.text.partition('; ')[2]}"
            blockers = tuple(dict.fromkeys((*blockers, *short.blockers)))
        return Reason("quota", text, blockers, unblock)

    def _to_end(self, name: str, limit: Limit, asked: Amounts) -> tuple[int, ...]:
        """The account's jobs, those believed to end first, whose end would be enough."""
        used, blockers = self._used.get(name, NONE), []
        for other in next_to_end(self):
            if _within(used, asked, limit):
                break
            if any(account == name for account, _ in other.lane.accounts):
                used = _added(used, self._used_by[other.id], -1)
                blockers.append(other.id)
        return tuple(blockers) if _within(used, asked, limit) else ()


def _least(lane: Lane) -> Amounts:
    return min(amounts_of(option) for option in lane.options)


def _whose(name: str) -> str:
    if name.startswith(GROUP):
        return f"the quota of group {name.removeprefix(GROUP)}"
    return f"the quota of {name or 'users without a name'}"


def _words(amounts: Limit, like: Limit | None = None) -> str:
    """Amounts in words; `like`: only of what that one limits."""
    units = zip(amounts, like or amounts, (1000, 1000, 1024), ("GPUs", "cores", "GiB"), strict=True)
    said = [
        f"{amount / unit:g} {word}"
        for amount, limit, unit, word in units
        if amount is not None and limit is not None
    ]
    return " and ".join(said)
