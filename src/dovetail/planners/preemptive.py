"""The walk of preemptive orderings: earlier jobs displace running jobs that rank behind them.

Where only the number of devices matters (`ByCount`) the result is exactly that of walking the
whole order with an empty cluster, found by looking at lane ends only. Where the place matters too
(`ByPlace`), jobs from the end of the order are lifted, 1, 2, 4 …, until a place appears; those that
still fit around it stay, and the others may find another place later in the same walk.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterator, Sequence
from heapq import heapify, heappop, heappush

from dovetail.core.draft import Draft, Option
from dovetail.core.lanes import Entry, Lane
from dovetail.model.allocation import Allocation
from dovetail.model.errors import OverCommitted
from dovetail.model.job import Job
from dovetail.model.plan import Action, Change, Reason, Start, Stop
from dovetail.planners.reasons import by_rank
from dovetail.planners.terms import amounts_of, held_by
from dovetail.planners.walk import Head, Walk, following

Tail = tuple[Entry, float, list[Entry], int]
"""A running job; the slope and the list it is in, and its position from the list's end."""

_new = tuple.__new__
"""Makes a named tuple in half the time of calling its class; for the hot path only."""


class Preemptive(Walk):
    """Plans one domain by walking the order of all its jobs, running ones included."""

    def _heads(self) -> list[Head]:
        """Where counts suffice, only heads that fit, or rank before the last running job."""
        if self._unlisted:
            self.list_running()
        if self._seen_lanes < len(self._lanes):
            self._by_count = self._counts_suffice()
        if not self._by_count:
            return super()._heads()
        lanes = self._open if self._everything else self._fresh
        heads: list[Head] = [(0.0, lane.waiting[0], lane, None) for lane in lanes if lane.waiting]
        if not heads:
            return heads
        first, self._tails = min(heads), None
        if self._ends_with(first[2]):
            return [first]
        tails = self._tails = self._ends()
        idle, last = self.view.cluster.idle, tails[-1][0] if tails else None
        return [
            head for head in heads if head[2].size <= idle or (last is not None and head[1] < last)
        ]

    def _ends_with(self, lane: Lane) -> bool:
        """Does a walk end with its first head, because it leaves as few idle devices as there were?

        So it does after most ends. Why nobody else can come in then: see `ByCount.walk`.
        """
        left, newcomers = self.view.cluster.idle - lane.size, self._newcomers
        if newcomers == 1 and lane in self._fresh:
            newcomers = 0
        return 0 <= left <= self._calm and not newcomers and self.quotas is None

    def _ends(self) -> list[Tail]:
        """The last running job of each list, with its rank as of now; the last of all last."""
        now = self.rank_time
        tails: list[Tail] = []
        for slope, running in self.ranked.items():
            if running:
                key, submit, number, job = running[-1]
                if slope:
                    key += slope * now
                tails.append(((key, submit, number, job), slope, running, -1))
        tails.sort()
        return tails

    def walk(self, heads: list[Head]) -> list[Action]:
        """Admit heads in order, displacing what ranks behind."""
        if not self._by_count:
            return ByPlace(self, heads, self._ends()).walk()
        if self._tails is None:
            _, entry, lane, _ = heads[0]
            return [_new(Start, (entry[2], _placed(self._glance, lane), "fits", ()))]
        walk = ByCount(self, heads, self._tails)
        return walk.walk(self._calm, self._newcomers, self._fresh)

    def explain(self, job: Job, now: float) -> Reason:
        """Where whoever has the devices could be displaced, it is the order that decides."""
        return by_rank(self, job, super().explain(job, now))

    def _counts_suffice(self) -> bool:
        """Is the number of idle devices all that decides whether a job fits?"""
        self._seen_lanes, cluster = len(self._lanes), self.view.cluster
        anywhere = self.placement.relaxed and len(cluster.pools) == 1
        return anywhere and all(_plain(lane, cluster.limited) for lane in self._lanes.values())

    _seen_lanes = 0
    _by_count = False
    #: ends of the lists of running jobs, found for the heads of a walk and used up by it; None: the
    #: walk ends with its only head, which fits
    _tails: list[Tail] | None


def _placed(draft: Draft, lane: Lane) -> Allocation:
    """A place for a job that fits by count."""
    found = draft.find(lane.options)
    assert found is not None, "a relaxed placement refused a job that fits by count"
    return found


def _plain(lane: Lane, limited: bool) -> bool:
    """A gang of whole devices that may be split in any way and asks for no more than devices."""
    if len(lane.options) != 1 or not lane.options[0].plain:
        return False
    ask = lane.options[0].asks[0]
    return ask.gpus == 1 and not (limited and (ask.cpu or ask.memory))


class Displacing:
    """What both ways share: who ranks behind whom, and what to do about the displaced."""

    def __init__(self, planner: Walk, heads: list[Head], tails: list[Tail]) -> None:
        self.planner = planner
        self.heads = heads
        #: displaced jobs -> whom they make room for
        self.gone: dict[int, tuple[Job, Job]] = {}
        #: what quotas leave; and heads that others who go may make room for
        self.allowance = planner.allowance()
        self.passed: list[Head] = []
        self._guarded = bool(planner.view.cluster.closed) or planner.guards
        self._rank_time = planner.rank_time
        #: running jobs, last first, as far as anybody asked; and where to continue in each list
        self._last_first: list[Entry] = []
        self._tails = tails  # sorted

    def displace(self, last: Entry, winner: Job) -> None:
        """Take a running job off; it becomes a head itself and may be admitted again."""
        self.gone[last[2]] = (last[3], winner)
        heappush(self.heads, (0.0, last, last[3].lane, iter(())))
        if self.allowance is not None:
            self.allowance.add(last[3].lane, held_by(last[3]), -1)
        for head in self.passed:
            heappush(self.heads, head)
        self.passed = []

    def _look_everywhere(self, looked_at: list[Head]) -> None:
        """A victim may leave more than its winner takes: every lane is worth a look again."""
        lanes = {head[2] for head in looked_at}
        for lane in self.planner.open_lanes:
            if lane not in lanes:
                heappush(self.heads, (0.0, lane.waiting[0], lane, None))

    def behind(self, entry: Entry) -> Iterator[Entry]:
        """Running jobs that rank behind an entry, last first, with ranks as of now."""
        last_first, position = self._last_first, 0
        while position < len(last_first) or self._extend():
            last = last_first[position]
            if last <= entry:
                return
            position += 1
            if last[2] not in self.gone and self.planner.displaceable(last[3]):
                yield last

    def _extend(self) -> bool:
        """Find one more of the running jobs, from the end of the order upwards."""
        tails = self._tails
        if not tails:
            return False
        last, slope, running, index = tails.pop()
        self._last_first.append(last)
        if len(running) > -index:
            index -= 1
            entry = running[index]
            if slope:
                entry = (entry[0] + slope * self._rank_time, entry[1], entry[2], entry[3])
            insort(tails, (entry, slope, running, index))
        return True

    def stops(self, back: set[int]) -> list[Action]:
        """The displaced jobs that were not admitted again."""
        return [
            _new(Stop, (number, f"displaced by {winner.spec[1]}"))
            for number, (_, winner) in self.gone.items()
            if number not in back
        ]


class ByCount(Displacing):
    """Decide who runs by number of devices alone; place the newcomers afterwards."""

    _reached = 0

    def walk(  # noqa: PLR0912 (the hot loop)
        self, calm: int, newcomers: int, fresh: Collection[Lane]
    ) -> list[Action]:
        """Settle the set of running jobs, then give those who come in their devices.

        `calm` is how many devices were idle when the order was last settled, ranks being as they
        were; -1: they are not. Nobody who was refused then can come in with as few idle devices
        now: whoever was admitted since ranks before, so no more devices are behind. Hence the walk
        is over there, once the one newcomer in a `fresh` lane has been looked at.
        """
        idle, heads = self.planner.view.cluster.idle, self.heads
        heapify(heads)
        looked_at: list[Head] | None = heads[:]
        if newcomers > 1:
            calm = -1
        failed, gone = 1 << 62, self.gone
        admitted: list[tuple[int, Lane]] = []
        back: set[int] = set()
        while heads:
            _, entry, lane, rest = head = heappop(heads)
            if newcomers and lane in fresh:
                newcomers = 0
            if self.allowance is not None and not self.allowance.choices(lane):
                self.passed.append(head)
                continue
            size = lane.size
            if size > idle:
                if size >= failed:
                    continue
                victims = self._overflowing(entry, size - idle)
                if victims is None:
                    # Later heads have no more behind them than this one: as large ones fail too.
                    failed = idle + self._reached + 1
                    if failed == 1:
                        break
                    continue
                for victim in victims:
                    self.displace(victim, entry[3])
                    idle += victim[3].lane.size
                if self.allowance is not None:
                    # Some that were passed over rank before this one: more is behind them.
                    failed = 1 << 62
            idle -= size
            if self.allowance is not None:
                self.allowance.add(lane, amounts_of(lane.options[0]))
            again = gone and entry[2] in gone
            if again:
                back.add(entry[2])
            else:
                admitted.append((entry[2], lane))
            if idle <= calm and not newcomers:
                break
            if gone and looked_at is not None:
                self._look_everywhere(looked_at)
                looked_at = None
            if not again:
                after = following(lane, rest)
                if after is not None:
                    heappush(heads, (0.0, *after))
        return [*self.stops(back), *self._place(admitted, back)]

    def _place(self, admitted: list[tuple[int, Lane]], back: set[int]) -> list[Action]:
        planner = self.planner
        cluster = planner.view.cluster
        left = [job for number, (job, _) in self.gone.items() if number not in back]
        if len(left) == len(admitted) == 1 and not cluster.idle:
            (job,), ((number, lane),) = left, admitted
            if job.lane is lane and len(_held(job).parts) == 1:
                # One leaves and its like comes: nothing else is free, so there is but one place.
                return [_new(Start, (number, _held(job), "fits", ()))]
        draft = Draft(cluster, planner.placement)
        for job in left:
            draft.release(_held(job))
        starts: list[Action] = []
        for number, lane in admitted:
            found = _placed(draft, lane)
            starts.append(_new(Start, (number, found, "fits", ())))
            if len(starts) < len(admitted):
                draft.take(found)
        return starts

    def _overflowing(self, entry: Entry, deficit: int) -> list[Entry] | None:
        """The jobs a walk of the whole order would not reach once `entry` has its devices.

        That is, again and again, the first job in order with fewer than `deficit` devices
        running behind it. None: there are not that many, but only `_reached`.
        """
        last_first, gone, guarded = self._last_first, self.gone, self._guarded
        may_go = self.planner.displaceable
        position, known, reached = 0, len(last_first), 0
        while reached < deficit:
            if position == known:
                if not self._extend():
                    self._reached = reached
                    return None
                known += 1
            last = last_first[position]
            if last <= entry:
                self._reached = reached
                return None
            position += 1
            if (gone and last[2] in gone) or (guarded and not may_go(last[3])):
                continue
            reached += last[3].lane.size
        if position == 1:
            return [last]
        behind = [
            last
            for last in last_first[:position]
            if last[2] not in gone and not (guarded and not may_go(last[3]))
        ]
        sizes: list[int] = [last[3].lane.size for last in behind]
        victims = [behind.pop()]
        deficit -= sizes.pop()
        while deficit > 0:
            index, reached = -1, 0
            while reached < deficit:
                index += 1
                reached += sizes[index]
            victims.append(behind[index])
            deficit -= sizes[index]
            del behind[index:], sizes[index:]
        return victims


class ByPlace(Displacing):
    """Decide who runs and where together, one head after the other."""

    def __init__(self, planner: Walk, heads: list[Head], tails: list[Tail]) -> None:
        super().__init__(planner, heads, tails)
        self.draft = Draft(planner.view.cluster, planner.placement)

    def walk(self) -> list[Action]:
        """Admit heads where they fit, on free devices or by lifting others."""
        heapify(self.heads)
        looked_at: list[Head] | None = self.heads[:]
        starts: dict[int, Allocation] = {}
        while self.heads:
            _, entry, lane, rest = head = heappop(self.heads)
            choices: Sequence[Option] = lane.options
            if self.allowance is not None:
                choices = self.allowance.choices(lane)
                if not choices:
                    self.passed.append(head)
                    continue
            fits = lane.size <= self.draft.cluster.idle
            found = self.draft.find(choices) if fits else None
            if found is None and lane.size:
                found = self._lift(entry, lane, choices)
            elif found is None:  # without devices it displaces nobody, but may fit beside who does
                self.passed.append(head)
            if found is None:
                continue
            if self.allowance is not None:
                self.allowance.add(lane, (found.milli_gpus, found.cpu, found.memory))
            if self.gone and looked_at is not None:
                self._look_everywhere(looked_at)
                looked_at = None
            self.draft.take(found)
            starts[entry[2]] = found
            after = following(lane, rest)
            if after is not None:
                heappush(self.heads, (0.0, *after))
        return self._actions(starts)

    def _lift(self, entry: Entry, lane: Lane, choices: Sequence[Option]) -> Allocation | None:
        """Lift more and more jobs from the end of the order until the job finds a place."""
        behind = list(self.behind(entry))
        lifted, done, count = self.draft.fork(), 0, 1
        while done < len(behind):
            for last in behind[done:count]:
                lifted.release(_held(last[3]))
            done = min(count, len(behind))
            found = lifted.find(choices) if lane.size <= lifted.cluster.idle else None
            if found is not None:
                self._settle(entry, found, behind[:done], lifted)
                return found
            count *= 2
        return None

    def _settle(self, entry: Entry, found: Allocation, lifted: list[Entry], draft: Draft) -> None:
        """Put back, best first, the lifted jobs that fit around the place that was found."""
        draft.take(found)
        for last in reversed(lifted):
            try:
                draft.take(_held(last[3]))
            except OverCommitted:
                self.displace(last, entry[3])
                self.draft.release(_held(last[3]))

    def _actions(self, starts: dict[int, Allocation]) -> list[Action]:
        """Stops, then moves of displaced jobs that found another place, then starts."""
        back = self.gone.keys() & starts.keys()
        moves: list[Action] = [
            Change(number, starts[number], f"made room for {winner.spec.name}")
            for number, (victim, winner) in self.gone.items()
            if number in back and starts[number] != victim.virtual
        ]
        fresh = [Start(job, found) for job, found in starts.items() if job not in back]
        return [*self.stops(set(back)), *moves, *fresh]


def _held(job: Job) -> Allocation:
    allocation = job.virtual
    assert allocation is not None
    return allocation
