"""What would help a job that waits: each idea is tried on a fork, and told only if it is true.

What is told is true in both ways in which it can be tried: as if the job had been so from the
beginning, at its place in the queue and with the work that is behind it; and for a job that is
cancelled and submitted again, behind those that have come meanwhile. Where only the first is true,
it is said so. `answers.ideas` has the ideas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, nextafter
from time import monotonic

from dovetail.answers import ideas
from dovetail.answers.foresight import LAG, Foresight, Lengths, Present
from dovetail.answers.ideas import Idea, Ladder
from dovetail.core.scheduler import Scheduler
from dovetail.model.event import Cancelled, Submitted, Wake
from dovetail.model.job import JobSpec
from dovetail.model.plan import Stop
from dovetail.model.why import Instead

NOTICEABLE = 60.0
"""Seconds sooner that are worth telling."""
AT_ITS_PLACE = ", at its place in the queue"
"""Said of what would not help a job that is submitted again."""
AS_GOOD = 0.9
"""A milder idea with this part of the gain is told instead."""

Try = Callable[[Idea], tuple[int, ...] | None]
"""Jobs that are stopped if an idea lets it start now; None: it does not."""


@dataclass(frozen=True)
class Trials:
    """Everything needed to try ideas, apart from the scheduler itself."""

    present: Present
    now: float
    lengths: Lengths
    #: its tenant by itself, where others make no difference: what does not help there helps nowhere
    alone: Present | None = None
    #: types of GPUs that there are
    types: tuple[str, ...] = ()
    #: is no GPU wholly free?
    packed: bool = False
    #: seconds; no further idea is tried after them
    budget: float = 0.5
    #: may jobs of low priority run on what owners leave idle?
    lends: bool = False
    #: does the order keep places free for some, so that others must end in time?
    reserves: bool = False
    #: the same scheduler without quotas; None: there are none
    unlimited: Callable[[], Scheduler] | None = None

    def instead(self, number: int) -> tuple[Instead, ...]:
        """What would help, of each kind of idea the one that changes least."""
        until = monotonic() + self.budget
        trial = Trial(self, number)
        if trial.at_its_place(trial.as_it_is) is not None:
            # It is about to start, or moves up for having been looked at: nothing need change.
            return ()
        found: list[Instead] = []
        later: list[Ladder] = []
        for group in self._groups(trial.spec):
            for ladder in group:
                now = trial.mildest(ladder, until)
                if now is not None:
                    found.append(now)
                    break
            else:
                later += [ladder for ladder in group if ladder.ideas][-1:]
        if trial.without_quotas():
            found.append(Instead("a larger quota", 0.0))
        return (*found, *trial.sooner(later, until))

    def _groups(self, spec: JobSpec) -> Iterator[Sequence[Ladder]]:
        """Kinds of ideas, what costs the owner least first."""
        yield from ideas.smaller(spec)
        yield [ideas.shares(spec, packed=self.packed)]
        yield [ideas.other_types(spec, self.types)]
        if self.reserves:
            yield [ideas.shorter(spec)]
        yield [ideas.urgency(spec)]
        if self.lends:
            yield [ideas.borrowing(spec)]


class Trial:
    """One job, tried in many ways."""

    def __init__(self, trials: Trials, number: int) -> None:
        self._given = trials
        self._number = number
        jobs = trials.present.image["jobs"]
        self.spec = next(each.spec for each in jobs if each.id == number)
        #: the number it would have if it were submitted again
        self._next = max(each.id for each in jobs) + 1
        # The job that a fork forgets may still lie in its queue, where no two entries may be alike.
        self._unchanged = Idea("", self.spec)
        self.as_it_is = Idea("", self.spec._replace(submit=nextafter(self.spec.submit, inf)))
        #: what came of those that were tried at its place
        self._known: dict[JobSpec, tuple[int, ...] | None] = {}

    def mildest(self, ladder: Ladder, until: float) -> Instead | None:
        """The idea that changes least of those that let it start now, or else at its place."""
        found = self._mildest(ladder, self.starts_now, until)
        if found is None:
            found = self._mildest(ladder, self.at_its_place, until)
            return found and replace(found, change=f"{found.change}{AT_ITS_PLACE}")
        return found

    def _mildest(self, ladder: Ladder, starts: Try, until: float) -> Instead | None:
        rungs, best = ladder.ideas, None
        if not ladder.steady:
            tried = ((idea, starts(idea)) for idea in rungs if monotonic() < until)
            return next((_now(idea, stops) for idea, stops in tried if stops is not None), None)
        fails, helps = -1, len(rungs)
        look = helps - 1
        while helps - fails > 1 and monotonic() < until:
            stops = starts(rungs[look])
            if stops is not None:
                helps, best = look, _now(rungs[look], stops)
            elif helps == len(rungs):
                return None
            else:
                fails = look
            look = (fails + helps) // 2
        return best

    def starts_now(self, idea: Idea) -> tuple[int, ...] | None:
        """The jobs that are stopped for it if it starts now, however tried; None: it does not."""
        stops = self.at_its_place(idea)
        return None if stops is None or not self._starts_again(idea) else stops

    def at_its_place(self, idea: Idea) -> tuple[int, ...] | None:
        """The same, had it been so from the beginning."""
        if idea.spec not in self._known:
            hopeless = any(self._there(idea, each) is None for each in self._alone(idea))
            self._known[idea.spec] = None if hopeless else self._there(idea, self._given.present)
        return self._known[idea.spec]

    def without_quotas(self) -> bool:
        """Does it start now, stopping nobody, if nobody has a quota?"""
        unlimited = self._given.unlimited
        if unlimited is None:
            return False
        return self._there(self.as_it_is, replace(self._given.present, make=unlimited)) == ()

    def _alone(self, idea: Idea) -> list[Present]:
        """Where an idea is tried first because that is cheap: nowhere, or its tenant by itself."""
        alone = self._given.alone
        return [] if alone is None or not alone.takes(idea.spec) else [alone]

    def _there(self, idea: Idea, present: Present) -> tuple[int, ...] | None:
        jobs = {each.id: each for each in present.image["jobs"]}
        job = jobs.pop(self._number).twin()
        scheduler = present.fork(jobs=list(jobs.values()))
        job.spec, job.stray = idea.spec, ""
        if idea.spec.estimate != self.spec.estimate:
            job.expected = scheduler.predictor.expect(idea.spec)
        scheduler.take_in(job)
        plan = scheduler.step(self._given.now, [Wake()])
        if job.allocation is None:
            return None
        return tuple(action.job for action in plan.actions if isinstance(action, Stop))

    def _starts_again(self, idea: Idea) -> bool:
        """Does it start if it is submitted again?"""
        return all(self._started(idea, each) for each in (*self._alone(idea), self._given.present))

    def _started(self, idea: Idea, present: Present) -> bool:
        scheduler = present.fork()
        for event in (Cancelled(self._number), Submitted(self._anew(idea))):
            scheduler.step(self._given.now, [event])
        job = scheduler.jobs.get(self._next)
        return job is not None and job.allocation is not None

    def _anew(self, idea: Idea) -> JobSpec:
        return idea.spec._replace(id=self._next, submit=self._given.now)

    def sooner(self, ladders: Sequence[Ladder], until: float) -> list[Instead]:
        """Ideas that do not let it start now, but sooner than it will."""
        if not ladders or monotonic() > until:
            return []
        stays, again = self._start(self.as_it_is, until), self._start(self._unchanged, until)
        # What submitting it again would do by itself is no idea's merit.
        present = min((each for each in (stays, again) if each is not None), default=None)
        found = [self._sooner(ladder, present, until) for ladder in ladders]
        return [each for each in found if each is not None]

    def _sooner(self, ladder: Ladder, present: float | None, until: float) -> Instead | None:
        idea, start = ladder.ideas[-1], self._start(ladder.ideas[-1], until)
        if start is None or monotonic() > until:
            return None
        # It does not start at once: what ends any moment has not ended yet.
        start = max(start, LAG)
        if present is None:
            return Instead(idea.change, start)
        if present - start < max(NOTICEABLE, 0.1 * present):
            return None
        for part in (4, 2):
            milder = ladder.ideas[len(ladder.ideas) // part - 1 : len(ladder.ideas) - 1][:1]
            then = self._start(milder[0], until) if milder and ladder.steady else None
            if then is not None and present - then >= AS_GOOD * (present - start):
                idea, start = milder[0], max(then, LAG)
                break
        return Instead(idea.change, start, present - start)

    def _start(self, idea: Idea, until: float) -> float | None:
        """Seconds until it starts, as lengths are believed; None: cannot be told."""
        given, number = self._given, self._number
        present = next(iter(self._alone(idea)), given.present)
        ahead = Foresight(present.fork(), given.now, given.lengths, present.wake_at)
        if idea is not self.as_it_is:
            number = self._next
            for event in (Cancelled(self._number), Submitted(self._anew(idea))):
                ahead.step([event])
        while number not in ahead.started:
            if monotonic() > until or not ahead.advance():
                return None
        return ahead.started[number] - given.now


def _now(idea: Idea, stops: tuple[int, ...]) -> Instead:
    return Instead(idea.change, 0.0, None, stops)
