"""Our own books: who holds what, once everything under way has come to pass.

Plans are carried out here and nowhere else, and every allocation is re-checked against capacity.
Devices of a job that is stopping are already free on the books; a start that names them waits,
reserved, until the stop is confirmed. The books know planners only as listeners: they are told
who started, who left and who waits again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dovetail.core import checking, holding, releasing
from dovetail.core.accounts import Accounts
from dovetail.core.lifecycle import move
from dovetail.core.protocols import Bound
from dovetail.model.allocation import Allocation, Difference, classify
from dovetail.model.job import NOBODY, Job, Status
from dovetail.model.plan import Action, Change, Resume, Start, Stop, Suspend

RUNNING, STOPPING, STARTING = Status.RUNNING, Status.STOPPING, Status.STARTING
SUSPENDED, WAITING = Status.SUSPENDED, Status.WAITING
"""Looking a member up in its class costs ten times as much, and this is the hot path."""


RECLAIMED = "its devices went back to their owner"
"""Why a job was stopped that nobody in its own domain wanted to stop."""


class Refused(Exception):
    """A plan's allocation cannot be made physical just now."""


class Books(Accounts):
    """The state of one cluster's jobs and capacity, and how plans change it."""

    # ---- letting go --------------------------------------------------------------------------

    def _let_go(self, job: Job, done: bool = False) -> None:
        """Settle a job's counters and free whatever it holds; its status is the caller's."""
        held = job.allocation
        if held is not None:
            if job.status is RUNNING:
                self._count(job, held)
            planner = self._sole or self._planner(job.home)
            planner.left(job, self.now, done)
            self.cluster.release(held)
            if not self._whole:
                assert job.virtual is not None
                self.tenancy.release(job.home, job.virtual, job.id)
                if self.tenancy.touched:
                    self._tell_touched()
            job.allocation = job.virtual = None
            self.running -= 1
        elif job.status is STOPPING:
            self._released(job)
            if job.residual is not None:
                self._give_back_residual(job)
        elif job.status is SUSPENDED:
            self._give_back_residual(job)
        elif not job.withheld and not job.stray:
            self._planner(job.home).left(job, self.now, done)

    def _give_back_residual(self, job: Job) -> None:
        if job.residual is not None:
            physical, virtual = job.residual
            self.cluster.release(physical)
            self.tenancy.release(job.home, virtual, job.id)
            job.residual = None
        self._planner(job.home).capacity_changed()

    def _wait_again(self, job: Job) -> None:
        move(job, WAITING)
        job.since = self.now
        if not self._instant:
            job.awaits = NOBODY
            self.reserved.pop(job.id, None)
        if self._sole is not None:
            self._sole.waits(job, self.now)
        else:
            self._wait_at_home(job)

    def _wait_at_home(self, job: Job) -> None:
        """Wait in the domain a job belongs to; it may have run in another one, as if lent."""
        home = self.tenancy.domain(job.spec)
        if home == job.home:
            self._planner(home).waits(job, self.now)
        elif isinstance(home, str):
            job.stray = home
        else:
            job.home = home
            self._introduce(job)
            # Who stopped it was another domain: this one may have been asked, or not at all.
            self._again[home] = None

    def _introduce(self, job: Job) -> None:
        """Tell a planner of a waiting job that another one planned until now."""
        planner = self._planner(job.home)
        job.lane = job.entry = job.mark = None
        job.impatient = False
        if planner.submitted(job, self.now) is not None:
            # It would be refused today, but was promised to run: it waits, and says why.
            planner.waits(job, self.now)

    def _released(self, job: Job) -> None:
        """A stopping job's devices are free in fact: dispatch the starts that waited for them."""
        if self.releasing.pop(job.spec.id, None) is not None:
            # Those beside it may have been promised what it has let go of.
            self._planner(job.home).capacity_changed()
        for other in [self.jobs[number] for number in sorted(self.reserved)]:
            if job.spec.id in other.awaits:
                other.awaits -= {job.spec.id}
                if not other.awaits and other.allocation is not None:
                    # Its start begins now, not when it was decided.
                    other.since = self.now
                    kind = self.reserved.pop(other.spec.id)
                    cause = "its devices were released"
                    self._owed.append(kind(other.spec.id, other.allocation, cause))
                    self._planner(other.home).changed(other, self.now)

    def _end(self, job: Job, status: Status, reason: str = "") -> None:
        move(job, status)
        del self.jobs[job.spec.id]
        self.leaving.discard(job.id)
        self.reserved.pop(job.id, None)
        self.ended.append((job, reason))

    def _unsent(self, job: Job) -> bool:
        """Was its start made possible by this very batch? Then no executor has heard of it."""
        return any(isinstance(action, Start) and action.job == job.id for action in self._owed)

    def _dispatched(self) -> tuple[Action, ...]:
        """Starts whose devices were released in this batch, and rejections."""
        owed, self._owed = self._owed, []
        return tuple(action for action in owed if self._still_due(action))

    def _still_due(self, action: Action) -> bool:
        """Has the job of a dispatched start not let go again within the same batch?"""
        if not isinstance(action, Start | Resume):
            return True
        job = self.jobs.get(action.job)
        return job is not None and job.allocation is action.allocation

    # ---- carrying plans out on the books -----------------------------------------------------

    def _carry_out(self, domain: int, actions: Sequence[Action]) -> tuple[Action, ...]:
        """Everything that frees, then everything that takes; physical allocations come back."""
        if len(actions) == 1 and type(actions[0]) is Start:
            started = self._start(domain, actions[0])
            return () if started is None else (started,)
        if not self._instant:
            confirmable = partial(releasing.confirmable, self.cluster)
            actions = [each for a in actions for each in confirmable(self.jobs.get(a.job), a)]
        lifted = self._make_room(actions)
        done: list[Action] = []
        for action in actions:
            if type(action) is Start:
                started = self._start(domain, action)
                if started is not None:
                    done.append(started)
            elif type(action) is Change and action.job not in lifted:
                done.append(self._resize(domain, action))
            elif type(action) is Resume and self.jobs[action.job].status is not SUSPENDED:
                # What it kept went to who is owed it, for another start of this plan: it waits.
                continue
            elif isinstance(action, (Resume, Change)):
                done.append(self._take(domain, action, lifted.get(action.job)))
            else:
                done.append(action)
        return tuple(done)

    def _make_room(self, actions: Sequence[Action]) -> dict[int, Allocation]:
        """Carry out what frees; returns what jobs that change devices had before."""
        lifted: dict[int, Allocation] = {}
        for action in actions:
            if type(action) is Stop:
                self._stop(action)
            elif type(action) is Start:
                continue
            elif isinstance(action, Suspend):
                self._suspend(action)
            elif isinstance(action, Change):
                if self._in_place(action):
                    self._loosen(self.jobs[action.job])
                else:
                    lifted[action.job] = self._lift(action)
        return lifted

    def _stop(self, action: Stop) -> None:
        job = self.jobs[action[0]]
        if job.status is STARTING and job.awaits:
            self._call_off(job)
            return
        if job.status is STOPPING:
            # It is being suspended: once it has let go, it waits.
            self._give_back_residual(job)
            return
        self._vacate(job)
        job.preemptions += 1
        self.preemptions += 1

    def _call_off(self, job: Job) -> None:
        """A start that still waits for devices never was."""
        self._let_go(job)
        job.starts -= 1
        if not job.starts:
            job.first_start = None
        self._wait_again(job)

    def _vacate(self, job: Job) -> None:
        """Free what a job holds on the books; it waits again once that is free in fact."""
        held = job.residual[0] if job.residual is not None else job.allocation
        self._let_go(job)
        if self._instant:
            self._wait_again(job)
        else:
            self._release_later(job, held)

    def _release_later(self, job: Job, held: Allocation | None) -> None:
        """A job is stopping: in fact it holds its devices until an executor says otherwise."""
        assert held is not None
        move(job, STOPPING)
        self.releasing[job.spec.id] = held

    def _suspend(self, action: Suspend) -> None:
        job = self.jobs[action.job]
        held, beside = job.allocation, releasing.beside(job, action.residual)
        self.preemptions += 1
        self._let_go(job)
        physical = self._bind(job, action.residual, beside).allocation
        self.cluster.take(physical, closed_too=True)
        job.residual = (physical, action.residual)
        if self._instant:
            move(job, SUSPENDED)
        else:
            self._release_later(job, held)

    def _in_place(self, action: Change) -> bool:
        """Does a change leave the devices as they are?"""
        held = self.jobs[action.job].virtual
        return held is not None and classify(held, action.allocation) is Difference.IN_PLACE

    def _loosen(self, job: Job) -> None:
        """First half of a resize: amounts are free, the job goes on where it is."""
        assert job.allocation is not None and job.virtual is not None
        if job.status is RUNNING:
            self._count(job, job.allocation)
        self.cluster.release(job.allocation)
        if not self._whole:
            self.tenancy.loosen(job.home, job.virtual, job.id)

    def _resize(self, domain: int, action: Change) -> Action:
        """Second half: the job has its new amounts and another rate."""
        job, virtual = self.jobs[action.job], action.allocation
        if self.releasing:
            virtual = releasing.without_growth(job, virtual, self.releasing)
        assert job.allocation is not None and job.virtual is not None
        if not self._whole:
            self._make_way(self.tenancy.resize(domain, virtual, job.id))
        allocation = releasing.in_place(job, virtual)
        holding.retake(self.cluster, job.allocation, allocation)
        job.allocation, job.virtual = allocation, virtual
        job.rate = self.speed.rate(job.spec, allocation, self.cluster)
        self._due[domain].resized(job, self.now)
        return action._replace(allocation=allocation)

    def _lift(self, action: Change) -> Allocation:
        """First half of a change: the old allocation is free, the job keeps running."""
        job = self.jobs[action.job]
        old = job.allocation
        assert old is not None
        self._let_go(job)
        self._planner(job.home).waits(job, self.now)
        return old

    def _bind(self, job: Job, allocation: Allocation, at: Allocation | None = None) -> Bound:
        """The physical form of an allocation of the job's view; others make room for it."""
        if self._whole:
            return Bound(allocation)
        bound = self.tenancy.bind(job.home, allocation, job.spec, at or self._places.get(job.id))
        if isinstance(bound, str):
            self._tell_touched()
            raise Refused(bound)
        self._make_way(bound.victims)
        if self.tenancy.touched:
            self._tell_touched()
        return bound

    def _make_way(self, victims: Sequence[int]) -> None:
        """Stop jobs of other domains, whose devices or amounts go back to their owners."""
        for victim in victims:
            stop = Stop(victim, RECLAIMED)
            self._stop(stop)
            self._evicted.append(stop)
            self._again[self.jobs[victim].home] = None

    def _start(self, domain: int, action: Start) -> Action | None:
        """Let a waiting job run on its devices (or be about to); None: they cannot be bound now."""
        job, now = self.jobs[action[0]], self.now
        try:
            self._occupy(job, action[1], False)
        except Refused:
            return None
        starts = job.starts
        if starts:
            job.overhead = self.costs.start(job.spec.model, starts)
        else:
            job.overhead = self._first_start
            job.first_start = now
        job.starts = starts + 1
        job.since = job.began = now
        job.saved = job.attained
        if self._instant:
            move(job, RUNNING)
        else:
            self._begin(job)
        self._due[domain].started(job, now)
        return action if self._direct else self._bound(job, action)

    def _take(self, domain: int, action: Resume | Change, old: Allocation | None) -> Action:
        """Let a suspended job go on, or a running one on other devices."""
        job = self.jobs[action.job]
        if isinstance(action, Resume):
            self._give_back_residual(job)
        try:
            self._occupy(job, action.allocation, old is not None)
        except Refused as refusal:
            return self._stay_away(job, str(refusal))
        if isinstance(action, Resume):
            job.overhead = self.costs.resume
            job.starts += 1
            job.began, job.saved = self.now, job.attained
            self._begin(job)
        else:
            assert old is not None and job.allocation is not None
            difference = classify(old, job.allocation)
            # What is left of a start that the change interrupts is still to be paid.
            cost = self.costs.change(difference, job.spec.model)
            job.overhead = max(job.overhead, cost)
            self.moves += difference is Difference.MOVE
        job.since = self.now
        self._due[domain].started(job, self.now)
        return self._bound(job, action)

    def _stay_away(self, job: Job, reason: str) -> Action:
        """A job that was lifted has nowhere to go: it waits, as its planner was told."""
        move(job, WAITING)
        job.preemptions += 1
        self.preemptions += 1
        return Stop(job.id, reason)

    def _occupy(self, job: Job, virtual: Allocation, closed_too: bool) -> None:
        """Bind an allocation of the job's view and take it, or complain."""
        allocation = virtual
        if not self._whole:
            bound = self._bind(job, virtual)
            allocation, virtual = bound.allocation, bound.virtual or virtual
        self.cluster.take(allocation, closed_too)
        job.virtual, job.allocation = virtual, allocation
        self.running += 1
        if self._even and not allocation[2] and allocation[1] == job.spec[3].gpus:
            job.rate = 1.0
        else:
            job.rate = self.speed.rate(job.spec, allocation, self.cluster)

    def _bound(self, job: Job, action: Start | Resume | Change) -> Action:
        """An action as it is carried out: on physical devices, once others let go of them."""
        assert job.allocation is not None
        if job.awaits and not isinstance(action, Change):
            self.reserved[job.id] = type(action)
            return action._replace(allocation=job.allocation, awaits=tuple(sorted(job.awaits)))
        return action if self._whole else action._replace(allocation=job.allocation)

    def _begin(self, job: Job) -> None:
        """Let a job run, or be about to once an executor says so."""
        if self._instant:
            move(job, RUNNING)
        else:
            move(job, STARTING)
            job.awaits = releasing.still_held(job, self.releasing, self.cluster.limited)

    def validate(self) -> None:
        """Check that the books agree with themselves. Run after every test."""
        checking.validate(self)
