"""What a walk minds besides what is free: quotas, and whom it may displace to make room.

One `Terms` lives as long as one walk and takes the place of a plain search. Heads that were passed
over, for their quota or because nobody could be displaced for them, get another chance whenever
somebody is displaced: that may have freed more than was needed. A displaced job becomes a head
itself and may find another place in the same walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from heapq import heappush
from typing import TYPE_CHECKING, Any

from dovetail.core.draft import Draft, Option
from dovetail.core.lanes import Entry, Lane
from dovetail.core.view import Amounts
from dovetail.model.allocation import Allocation
from dovetail.model.job import WAITING, Job
from dovetail.model.plan import Action, Change, Start, Stop

if TYPE_CHECKING:
    from dovetail.planners.displacing import Room
    from dovetail.planners.quotas import Allowance
    from dovetail.planners.walk import Head, Walk


Accept = Callable[[Allocation], bool]
"""Would that place do?"""


def amounts_of(option: Option) -> Amounts:
    """What a job holds that got this option."""
    cpu = sum(ask.units * ask.cpu for ask in option.asks)
    return option.milli_gpus, cpu, sum(ask.units * ask.memory for ask in option.asks)


def held_by(job: Job) -> Amounts:
    """What a running job holds."""
    held = job.virtual
    assert held is not None
    return held.milli_gpus, held.cpu, held.memory


class Terms:
    """The terms of one walk."""

    def __init__(
        self,
        planner: Walk,
        draft: Draft,
        heads: list[Head],
        allowance: Allowance | None,
        room: Room | None,
    ) -> None:
        self.planner = planner
        self.draft = draft
        self.heads = heads
        self.allowance = allowance
        self.room = room
        #: displaced jobs -> whom they make room for
        self.gone: dict[int, tuple[Job, Job]] = {}
        self.passed: list[Head] = []
        self._looked_at = {head[2] for head in heads}
        #: what of its options the head that is looked at may have
        self.choices: Sequence[Option] = ()
        self._head: Head

    def allows(self, prefix: Any, entry: Entry, lane: Lane, rest: Iterator[Entry] | None) -> bool:
        """May this head have any of its options? If not it is passed over and blocks nobody."""
        self._head = (prefix, entry, lane, rest)
        self.choices = lane.options
        if self.allowance is not None:
            self.choices = self.allowance.choices(lane)
            if not self.choices:
                self.passed.append(self._head)
        return bool(self.choices)

    def find(self, accept: Accept = lambda place: True) -> Allocation | None:
        """A place for that head: where it is free, or an acceptable one that can be made free."""
        _, entry, lane, _ = self._head
        found = None
        if lane.size <= self.draft.cluster.idle:
            found = self.draft.find(self.choices)
        if found is None and self.room is not None:
            found = self._make_room(entry[3], accept)
        if found is None:
            self.passed.append(self._head)
        return found

    def admit(self, found: Allocation) -> None:
        """That head gets this."""
        if self.allowance is not None:
            self.allowance.add(self._head[2], (found.milli_gpus, found.cpu, found.memory))

    def _make_room(self, job: Job, accept: Accept) -> Allocation | None:
        assert self.room is not None
        made = self.room.make(job, self.choices, self.gone, accept)
        if made is None:
            return None
        found, victims = made
        for victim in victims:
            self._displace(victim, job)
        if victims:
            self._look_again()
        return found

    def _displace(self, victim: Job, winner: Job) -> None:
        assert victim.virtual is not None
        self.gone[victim.id] = (victim, winner)
        self.draft.release(victim.virtual)
        if self.allowance is not None:
            self.allowance.add(victim.lane, held_by(victim), -1)
        planner, lane = self.planner, victim.lane
        key = planner._key(_as_waiting(victim, planner.view.now), planner.view)
        entry = (key, victim.spec.submit, victim.id, victim)
        heappush(self.heads, (planner._prefix(entry, lane, {}), entry, lane, iter(())))

    def _look_again(self) -> None:
        """Heads that were passed over, and lanes that seemed not worth a look."""
        planner = self.planner
        for head in self.passed:
            heappush(self.heads, head)
        self.passed = []
        for lane in planner.open_lanes:
            if lane not in self._looked_at:
                self._looked_at.add(lane)
                first = lane.waiting[0]
                heappush(self.heads, (planner._prefix(first, lane, {}), first, lane, None))

    def actions(self, starts: list[Action]) -> list[Action]:
        """Stops, moves of displaced jobs that found another place, and starts."""
        if not self.gone:
            return starts
        places = {start.job: start.allocation for start in starts if isinstance(start, Start)}
        stops: list[Action] = []
        moves: list[Action] = []
        for number, (victim, winner) in self.gone.items():
            if number not in places:
                stops.append(Stop(number, f"displaced by {winner.spec.name}"))
            elif places[number] != victim.virtual:
                cause = f"made room for {winner.spec.name}"
                moves.append(Change(number, places[number], cause))
        return [*stops, *moves, *(start for start in starts if start.job not in self.gone)]


def _as_waiting(job: Job, now: float) -> Job:
    """A running job as it will be once it was stopped."""
    twin = copy(job)
    twin.attained, twin.run_time = job.worked(now), job.held_for(now)
    twin.allocation = twin.virtual = None
    twin.status, twin.since = WAITING, now
    return twin
