"""Keeps a candidate policy in the shadow of the real one, and tells how they differ.

It hears of every decision and asks the candidate about some of them: one at a time, in another
thread, and never for more than a small share of all time; what happens meanwhile is skipped. It
holds machines as values and no engine, so that there is nothing it could do.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean
from time import perf_counter
from typing import Any

from dovetail.answers.shadow import Found, Look, consider
from dovetail.controller import machines
from dovetail.controller.loop import Controller
from dovetail.controller.parts import Parts, composer
from dovetail.controller.roster import Roster
from dovetail.model.event import Event
from dovetail.model.plan import Plan
from dovetail.model.shadow import Difference, Effect, ShadowReport

log = logging.getLogger(__name__)

SHARE = 0.05
"""Of all time that may be spent on the candidate."""
LEAST = 0.5
"""Seconds between two looks, however quick they are."""
AHEAD = 0.1
"""Seconds a look into the future may take."""
KEPT = 100
"""Differences that are remembered one by one."""
MOST_JOBS = 10_000
"""Jobs that are remembered as favoured or passed."""


class Pace:
    """When the next look may be taken, so that all of them take no more than a share of time.

    Time is saved up first and spent then: a look that takes long is paid for before it is taken.
    """

    def __init__(
        self,
        share: float = SHARE,
        least: float = LEAST,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.share = share
        self._spent, self._costs = 0.0, AHEAD
        self._least, self._clock = least, clock
        self._begun = self._last = clock()

    def ready(self) -> bool:
        """Is it time?"""
        now = self._clock()
        saved = self.share * (now - self._begun) - self._spent
        return saved >= self._costs and now - self._last >= self._least

    def took(self, seconds: float) -> None:
        """So much was spent on a look; the next one is expected to cost the same."""
        self._spent += seconds
        self._costs, self._last = max(seconds, AHEAD), self._clock()

    def taken(self) -> float:
        """The share of all time that was spent."""
        return self._spent / max(self._clock() - self._begun, 1e-9)


@dataclass
class Waits:
    """Means over looks, of what is still to be waited for as things are and with the candidate."""

    looks: int = 0
    present: float = 0.0
    candidate: float = 0.0

    def add(self, waits: Sequence[tuple[float, float]]) -> None:
        """The jobs of one look."""
        self.looks += 1
        first, second = (fmean(each) for each in zip(*waits, strict=True))
        self.present += (first - self.present) / self.looks
        self.candidate += (second - self.candidate) / self.looks


class Tally:
    """What came of all looks."""

    def __init__(self) -> None:
        self.asked = self.acted = self.otherwise = 0
        self.latest: deque[Difference] = deque(maxlen=KEPT)
        self.waits = Waits()
        self._instead: dict[int, str] = {}
        self._passed: dict[int, str] = {}
        self._by_user: dict[str, Waits] = defaultdict(Waits)

    def add(self, found: Found, at: float) -> None:
        """One more."""
        self.asked += 1
        self.acted += found.acted
        _remember(self._instead, found.instead)
        _remember(self._passed, found.passed)
        if found.otherwise:
            self.otherwise += 1
            instead, passed = tuple(found.instead), tuple(found.passed)
            self.latest.appendleft(Difference(at, instead, passed, found.stops, found.spared))
        by_user: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for user, *waits in found.waits:
            by_user[user].append((waits[0], waits[1]))
        for user, each in by_user.items():
            self._by_user[user].add(each)
        if by_user:
            self.waits.add([pair for each in by_user.values() for pair in each])

    def users(self) -> tuple[Effect, ...]:
        """By user, the largest gain first."""
        instead, passed = Counter(self._instead.values()), Counter(self._passed.values())
        found = []
        for name in sorted({*instead, *passed, *self._by_user}):
            waits = self._by_user.get(name, Waits())
            means = (waits.looks, waits.present, waits.candidate)
            found.append(Effect(name, instead[name], passed[name], *means))
        return tuple(sorted(found, key=lambda each: each.candidate - each.present))


def _remember(known: dict[int, str], new: dict[int, str]) -> None:
    known.update(new)
    while len(known) > MOST_JOBS:
        del known[next(iter(known))]


class Shadow:
    """A watcher that asks the candidate; `run` does so beside the controller."""

    def __init__(self, controller: Controller, parts: Parts, present: str, pace: Pace) -> None:
        self._controller = controller
        self._present, self._parts = present, parts
        self._machines = machines.read_machines(machines.written(controller.executor))
        self._candidate = composer(parts, self._machines)
        #: what the real one was made of when this one was
        self._beside = controller.parts
        # What is wrong with the candidate is said at once and not when it is first asked.
        self._candidate()
        self.pace, self.tally = pace, Tally()
        self.decisions = self.failures = 0
        self.failure = ""
        self._since = controller.time.wall()
        #: everything as it was before the decision that will be looked at
        self._image: dict[str, Any] | None = None
        #: seconds that making it took
        self._copying = 0.0
        self._next: Look | None = None
        self._busy = False
        self._bell = asyncio.Event()

    def __call__(self, now: float, events: Sequence[Event], plan: Plan) -> None:
        """A decision was made: look at it if one was wanted, and be ready for the next one."""
        self.decisions += 1
        if self._controller.parts is not self._beside:
            self._follow()
        if self._image is not None:
            self._next, self._image = self._look(now, events, plan), None
            self._bell.set()
        elif not self.thinks and self.pace.ready():
            begun = perf_counter()
            self._image = self._controller.scheduler.image()
            self._copying = perf_counter() - begun

    def _follow(self) -> None:
        """Other tenants share the machines by now: the candidate is to decide for them too."""
        self._beside = self._controller.parts
        self._image = self._next = None
        if self._beside is not None:
            self._parts = replace(self._parts, tenancy=self._beside.tenancy)
            self._candidate = composer(self._parts, self._machines)

    def _look(self, now: float, events: Sequence[Event], plan: Plan) -> Look:
        assert self._image is not None
        roster = self._controller.roster
        told = frozenset(
            live.id
            for live in roster.values()
            if live.progress is not None and live.progress.total and live.progress.rate > 0
        )
        return Look(self._image, now, tuple(events), plan, dict(roster.resting), told)

    async def run(self) -> None:
        """Ask about one decision after the other, until cancelled."""
        while True:
            await self._bell.wait()
            self._bell.clear()
            self._busy = True
            if (look := self._taken()) is not None:
                self._note(*await asyncio.to_thread(self._ask, look))
            self._busy = False

    @property
    def thinks(self) -> bool:
        """Is the candidate being asked, or about to be?"""
        return self._busy or self._next is not None or self._image is not None

    def consider(self) -> None:
        """Ask about the decision that is waiting for it, if one is, at once."""
        if (look := self._taken()) is not None:
            self._note(*self._ask(look))

    def _taken(self) -> Look | None:
        look, self._next = self._next, None
        return look

    def _ask(self, look: Look) -> tuple[Found | Exception, float]:
        """What it says, and how long that took; this is what is done in another thread."""
        begun = perf_counter()
        try:
            found = consider(look, self._controller.make, self._candidate, self.tally.asked, AHEAD)
        except Exception as error:
            # Candidates may be other people's code: what they cannot do is told, and no harm.
            return error, perf_counter() - begun
        return found, perf_counter() - begun

    def _note(self, found: Found | Exception, took: float) -> None:
        self.pace.took(self._copying + took)
        if isinstance(found, Found):
            self.tally.add(found, self._controller.time.wall())
            return
        self.failures, self.failure = self.failures + 1, f"{type(found).__name__}: {found}"
        log.warning("the policy in the shadow could not decide: %s", self.failure)

    @property
    def policy(self) -> str:
        """The candidate, as the admin wrote it."""
        return self._parts.policy

    def report(self) -> ShadowReport:
        """The differences so far."""
        tally = self.tally
        return ShadowReport(
            self._parts.policy,
            self._present,
            self._since,
            self.decisions,
            tally.asked,
            tally.acted,
            tally.otherwise,
            self.pace.taken(),
            self.pace.share,
            tally.waits.present,
            tally.waits.candidate,
            tally.users(),
            tuple(tally.latest),
            self.failures,
            self.failure,
        )


def labelled(report: ShadowReport, roster: Roster) -> ShadowReport:
    """The same with what members of arrays among its jobs are called."""
    jobs = (
        job
        for each in report.differences
        for job in chain(each.instead, each.passed, each.stops, each.spared)
    )
    return replace(report, labels=roster.labels(jobs))
