"""A waiting job may displace running ones of lower priority, at the least loss of work.

For orders that do not preempt by themselves (`displace=lower`). Higher priorities come first, the
order decides among equals, and equals never displace each other. Only jobs that can resume are
displaced, and none that has lost its patience before. Of the sets of jobs that would make room, the
one that loses the least work is taken: GPU-seconds since the last checkpoint, or since the run
began, and the price of a restart. The least loss is exact where counting devices suffices, on one
node or over all of them; where CPU, memory or topology decide as well, it is the best of the sets
that were tried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dovetail.core.draft import Draft, Option
from dovetail.core.lanes import Entry, Lane
from dovetail.core.view import Amounts, View
from dovetail.model.allocation import Allocation
from dovetail.model.errors import OverCommitted
from dovetail.model.job import RUNNING, Job
from dovetail.planners.patience import FIRST
from dovetail.planners.terms import Accept
from dovetail.planners.walk import Walk

_new = tuple.__new__
"""Makes a named tuple in half the time of calling its class; for the hot path only."""

NODES = 16
"""So many nodes are tried one by one, those with the least to lose first."""


class Yielding(NamedTuple):
    """A running job that may be displaced, and the work that would be lost."""

    loss: float
    id: int
    job: Job


class Lower(Walk):
    """A walk in which higher priorities displace lower ones; a mixin for the other kinds."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        #: running jobs that can resume, by priority
        self._below: dict[float, dict[int, Job]] = {}
        self._rank, self._key = self._key, self._priority_and_rank

    def _priority_and_rank(self, job: Job, view: View) -> tuple[Any, ...]:
        rank = self._rank(job, view)
        return (_class(job), *rank) if isinstance(rank, tuple) else (_class(job), rank)

    def _prefix(self, entry: Entry, lane: Lane, given: dict[str, Amounts]) -> Any:
        """Priority comes before tenants and scores; elsewhere it is in the keys."""
        prefix = super()._prefix(entry, lane, given)
        return (_class(entry[3]), prefix) if self._ranked else prefix

    def room(self, draft: Draft) -> Room | None:
        """Who may be displaced for others."""
        return Room(self, draft) if self._below else None

    def started(self, job: Job, now: float) -> None:
        """The job may be displaced by higher priorities from now on."""
        super().started(job, now)
        self._may_yield(job)

    def left(self, job: Job, now: float, done: bool) -> None:
        """It runs no more."""
        peers = self._below.get(job.spec.priority)
        if peers is not None and peers.pop(job.id, None) is not None and not peers:
            del self._below[job.spec.priority]
        super().left(job, now, done)

    def restore(self, state: dict[str, Any], jobs: Sequence[Job]) -> None:
        """Rebuild the index, and who runs with which priority."""
        super().restore(state, jobs)
        for job in self.view.running.values():
            self._may_yield(job)

    def _may_yield(self, job: Job) -> None:
        if job.spec.resumable:
            self._below.setdefault(job.spec.priority, {})[job.id] = job

    def yielding(self, priority: float) -> list[Yielding]:
        """Running jobs of lower priority that may be displaced now, the least loss first."""
        found: list[Yielding] = []
        for below, jobs in self._below.items():
            if below < priority:
                able = [job for job in jobs.values() if _may_go(job) and self.displaceable(job)]
                found += [_new(Yielding, (self._loss(job), job.id, job)) for job in able]
        found.sort()
        return found

    def _loss(self, job: Job) -> float:
        """GPU-seconds that displacing a job costs; a start that waits for devices has done none."""
        if job.status is not RUNNING:
            return 0.0
        # As `Job.unsaved`, without the calls: this is asked of every job that might be displaced.
        lost, ran = job.attained - job.saved, self.view.now - job.since - job.overhead
        lost += ran * job.rate if ran > 0.0 else 0.0
        restart = self.view.costs.start(job.spec[6], job.starts)
        return ((lost if lost > 0.0 else 0.0) + restart) * _held(job)[3] / 1000


def _class(job: Job) -> float:
    """Higher priorities first; but those who lost their patience before all."""
    return FIRST if job.impatient else -job.spec.priority


def _may_go(job: Job) -> bool:
    """It runs, or its start still waits for devices; and it has not lost its patience before."""
    return not job.impatient and (job.status is RUNNING or bool(job.awaits))


class Room:
    """Looks for jobs to displace, on the draft of one walk."""

    def __init__(self, planner: Lower, draft: Draft) -> None:
        self._planner = planner
        self._draft = draft
        self._accept: Accept
        #: who may be displaced by whom, by priority: the same for the whole walk
        self._yielding: dict[float, list[Yielding]] = {}

    def make(
        self, job: Job, choices: Sequence[Option], gone: Collection[int], accept: Accept
    ) -> tuple[Allocation, list[Job]] | None:
        """A place for a job, and whom that displaces; None: nobody's going would be enough."""
        self._accept = accept
        able = self._below(job.spec.priority, gone)
        if not able:
            return None
        best: tuple[float, Allocation, list[Job]] | None = None
        least: float | None = None
        for guess in self._guesses(able, min(option.whole_gpus for option in choices)):
            # The first guess frees as few devices as possible: no other can lose less.
            least = sum(each.loss for each in guess) if least is None else least
            tried = self._try(guess, choices)
            if tried is not None and (best is None or tried[0] < best[0]):
                best = tried
                if best[0] <= least:
                    break
        if best is None:
            best = self._more_and_more(able, choices)
        return None if best is None else best[1:]

    def _below(self, priority: float, gone: Collection[int]) -> list[Yielding]:
        """Running jobs of lower priority that this walk has not displaced yet."""
        able = self._yielding.get(priority)
        if able is None:
            able = self._yielding[priority] = self._planner.yielding(priority)
        return [each for each in able if each.id not in gone] if gone else able

    def _guesses(self, able: list[Yielding], size: int) -> Iterator[list[Yielding]]:
        """Sets that free enough devices at the least loss: over all nodes, and on one each."""
        cluster = self._draft.cluster
        everywhere = ((each, _held(each.job).gpus) for each in able)
        yield from _cheapest(everywhere, max(size - cluster.idle, 1))
        on: dict[int, list[tuple[Yielding, int]]] = {}
        for each in able:
            for part in _held(each.job).parts:
                on.setdefault(part.node, []).append((each, part.devices.bit_count()))
        found = [
            (sum(each.loss for each in chosen), node, chosen)
            for node, items in on.items()
            for chosen in _cheapest(items, max(size - cluster.free[node], 1))
        ]
        yield from (chosen for _, _, chosen in sorted(found, key=lambda each: each[:2])[:NODES])

    def _more_and_more(
        self, able: list[Yielding], choices: Sequence[Option]
    ) -> tuple[float, Allocation, list[Job]] | None:
        """1, 2, 4 … jobs, the least loss first, until a place appears."""
        count = 1
        while able:
            tried = self._try(able[:count], choices)
            if tried is not None or count >= len(able):
                return tried
            count *= 2
        return None

    def _try(
        self, guess: list[Yielding], choices: Sequence[Option]
    ) -> tuple[float, Allocation, list[Job]] | None:
        """A place if these jobs were gone; those that still fit around it stay."""
        lifted = self._draft.fork()
        for each in guess:
            lifted.release(_held(each.job))
        found = lifted.find(choices)
        if found is None or not self._accept(found):
            return None
        lifted.take(found)
        loss, victims = 0.0, []
        for each in reversed(guess):
            try:
                lifted.take(_held(each.job))
            except OverCommitted:
                loss += each.loss
                victims.append(each.job)
        return loss, found, victims


def _cheapest(items: Iterable[tuple[Yielding, int]], need: int) -> Iterator[list[Yielding]]:
    """The set that frees `need` devices at the least loss, if there is one.

    Items come with the least loss first, so of those with as many devices only the first can be
    in it that together are enough.
    """
    Chain = tuple[float, Any]
    used: dict[int, int] = {}
    best: dict[int, Chain] = {0: (0.0, None)}
    for each, devices in items:
        if need in best and each.loss >= best[need][0]:
            break
        if not devices or used.get(devices, 0) * devices >= need:
            continue
        used[devices] = used.get(devices, 0) + 1
        for freed, (loss, chain) in sorted(best.items(), reverse=True):
            more = min(need, freed + devices)
            if more > freed and (more not in best or loss + each.loss < best[more][0]):
                best[more] = (loss + each.loss, (each, chain))
    if need in best:
        chosen, chain = [], best[need][1]
        while chain is not None:
            chosen.append(chain[0])
            chain = chain[1]
        yield chosen[::-1]


def _held(job: Job) -> Allocation:
    allocation = job.virtual
    assert allocation is not None
    return allocation
