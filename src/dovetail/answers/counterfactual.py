"""What would help a job that waits: each idea is tried on a fork, and told only if it is true.

A fork forgets the job and is handed it again as it might have been: submitted when it was, but
asking for less, or more urgent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf, nextafter
from time import monotonic
from typing import Any

from dovetail.answers.foresight import Foresight, Lengths, fork
from dovetail.core.scheduler import Scheduler
from dovetail.model.event import Submitted
from dovetail.model.job import JobSpec
from dovetail.model.plan import Stop
from dovetail.model.request import Alternative, Group, Request
from dovetail.model.why import Instead

PARTS = (0.75, 0.5, 0.25, 0.125)
"""Of what was asked for, that are tried."""

NORMAL, URGENT, BORROWING = 0.0, 1.0, -1.0
NOTICEABLE = 60.0
"""Seconds sooner that are worth telling."""


@dataclass(frozen=True)
class Idea:
    """A job as it might have been."""

    change: str
    spec: JobSpec


@dataclass(frozen=True)
class Trials:
    """Everything needed to try ideas, apart from the scheduler itself."""

    image: dict[str, Any]
    make: Callable[[], Scheduler]
    now: float
    lengths: Lengths
    wake_at: float | None = None
    #: seconds; no further idea is tried after them
    budget: float = 0.5
    #: may jobs of low priority run on what owners leave idle?
    lends: bool = False

    def instead(self, spec: JobSpec) -> tuple[Instead, ...]:
        """What would help, of each kind of idea the one that changes least."""
        until = monotonic() + self.budget
        # The job that a fork forgets may still lie in its queue, where no two entries may be alike.
        spec = spec._replace(submit=nextafter(spec.submit, inf))
        found: list[Instead] = []
        later: list[Idea] = []
        for ideas in (_amounts(spec), _widths(spec), _urgency(spec), self._borrowing(spec)):
            tried = []
            for idea in ideas:
                if monotonic() > until:
                    break
                stops = self._starts_now(idea)
                if stops is not None:
                    found.append(Instead(idea.change, 0.0, None, stops))
                    break
                tried.append(idea)
            else:
                later += tried[-1:]
        if later and monotonic() < until:
            found += self._sooner(spec, later, until)
        return tuple(found)

    def _borrowing(self, spec: JobSpec) -> Iterator[Idea]:
        """On what others own and do not use."""
        if self.lends and spec.resumable and spec.priority >= NORMAL:
            yield Idea("--borrow, on what others leave idle", spec._replace(priority=BORROWING))

    def _starts_now(self, idea: Idea) -> tuple[int, ...] | None:
        """The jobs that are stopped for it if it starts now; None: it does not."""
        number = idea.spec.id
        scheduler = fork(self.make, self._without(number))
        plan = scheduler.step(self.now, [Submitted(idea.spec)])
        job = scheduler.jobs.get(number)
        if job is None or job.allocation is None:
            return None
        return tuple(action.job for action in plan.actions if isinstance(action, Stop))

    def _without(self, number: int) -> dict[str, Any]:
        """The state as if the job had not been submitted."""
        return {**self.image, "jobs": [job for job in self.image["jobs"] if job.id != number]}

    def _sooner(self, spec: JobSpec, ideas: list[Idea], until: float) -> list[Instead]:
        """Ideas that do not let it start now, but sooner than it will."""
        present = self._start(Idea("", spec), until)
        found = []
        for idea in ideas:
            start = self._start(idea, until)
            if start is None or monotonic() > until:
                continue
            if present is None:
                found.append(Instead(idea.change, start))
            elif present - start >= max(NOTICEABLE, 0.1 * present):
                found.append(Instead(idea.change, start, present - start))
        return found

    def _start(self, idea: Idea, until: float) -> float | None:
        """Seconds until it starts, as lengths are believed; None: cannot be told."""
        number = idea.spec.id
        forked = fork(self.make, self._without(number))
        ahead = Foresight(forked, self.now, self.lengths, self.wake_at)
        ahead.step([Submitted(idea.spec)])
        while number not in ahead.started:
            if monotonic() > until or not ahead.advance():
                return None
        return ahead.started[number] - self.now


def _amounts(spec: JobSpec) -> Iterator[Idea]:
    """Fewer cores, then less memory."""
    for name, unit, word in (("cpu", 1000, "cores"), ("memory", 1024, "GiB")):
        asked = _total(spec.request, name)
        for part in PARTS if asked else ():
            fewer = max(1, round(asked * part / unit)) * unit
            if fewer < asked:
                request = _scaled(spec.request, name, fewer / asked)
                one = word.removesuffix("s") if fewer == unit else word
                change = f"{fewer / unit:g} {one} instead of {asked / unit:g}"
                yield Idea(change, spec._replace(request=request))


def _widths(spec: JobSpec) -> Iterator[Idea]:
    """Fewer GPUs, where the job is one group of equal parts."""
    alternative = spec.request.alternatives[0]
    if len(alternative.groups) != 1:
        return
    group = alternative.groups[0]
    tried: set[int] = set()
    for width in (group.most - 1, *(round(group.most * part) for part in PARTS)):
        if 0 < width < group.most and width not in tried and group.each.gpus:
            tried.add(width)
            gpus = width * group.each.gpus
            change = f"{gpus} GPU{'s' * (gpus > 1)} instead of {group.gpus}"
            narrow = replace(alternative, groups=(Group(width, group.each, width),))
            yield Idea(change, spec._replace(request=_request(spec.request, narrow)))


def _urgency(spec: JobSpec) -> Iterator[Idea]:
    if spec.priority < NORMAL:
        yield Idea("normal priority", spec._replace(priority=NORMAL))
    if spec.priority < URGENT:
        yield Idea("high priority", spec._replace(priority=URGENT))


def _total(request: Request, name: str) -> int:
    groups = request.alternatives[0].groups
    return sum(group.most * (getattr(group.each, name) or 0) for group in groups)


def _scaled(request: Request, name: str, factor: float) -> Request:
    alternative = request.alternatives[0]
    groups = tuple(
        replace(group, each=replace(group.each, **{name: round(amount * factor)}))
        if (amount := getattr(group.each, name))
        else group
        for group in alternative.groups
    )
    return _request(request, replace(alternative, groups=groups))


def _request(request: Request, alternative: Alternative) -> Request:
    return Request((alternative,), request.modes, request.labels, request.datasets)
