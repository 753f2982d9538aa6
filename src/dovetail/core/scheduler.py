"""The scheduler: events of one instant go in, one plan comes out. No I/O, no clock, no chance.

`step` is four moves: note what happened, ask the planners, carry the plan out on our own books
(re-checking capacity), return it. Drivers perform plans and report back through events.

The books show who will own what once everything under way has come to pass: devices of a job that
is stopping are already free for planning, and a start that names them waits, reserved, until the
stop is confirmed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dovetail.core import codec
from dovetail.core.lifecycle import FINAL, move
from dovetail.core.protocols import Planner, Predictor, Speed, Tenancy
from dovetail.model import event as events
from dovetail.model.allocation import NOTHING, Allocation, Part, classify
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.model.errors import OverCommitted
from dovetail.model.event import ORDER, Event
from dovetail.model.job import Job, Status
from dovetail.model.plan import (
    EMPTY,
    Action,
    Change,
    Plan,
    Reason,
    Reject,
    Resume,
    Start,
    Stop,
    Suspend,
)

RUNNING, STOPPING, STARTING = Status.RUNNING, Status.STOPPING, Status.STARTING
SUSPENDED, DONE = Status.SUSPENDED, Status.DONE
"""Looking a member up in its class costs ten times as much, and this is the hot path."""

_TAKING = (Start, Resume, Change)
"""Actions that occupy an allocation."""


class Scheduler:
    """Owns the books of one cluster. One mutating door: `step`."""

    def __init__(
        self,
        cluster: Cluster,
        tenancy: Tenancy,
        make_planner: Callable[[Cluster], Planner],
        predictor: Predictor,
        speed: Speed,
        costs: Costs,
    ) -> None:
        self.cluster = cluster
        self.tenancy = tenancy
        self.predictor = predictor
        self.speed = speed
        self.costs = costs
        self.planners = [make_planner(tenancy.view(d)) for d in range(len(tenancy.domains))]
        #: jobs that have not ended, by id
        self.jobs: dict[int, Job] = {}
        #: jobs that ended in the latest step, with a reason where there is one
        self.ended: list[tuple[Job, str]] = []
        #: capacity that others occupy, by owner
        self.holdings: dict[str, Allocation] = {}
        #: what stopping jobs have not let go of yet
        self.releasing: dict[int, Allocation] = {}
        self.now = 0.0
        #: how many jobs hold devices
        self.running = 0
        #: stops and moves of running jobs so far
        self.preemptions = self.moves = 0
        #: what runs that ended have held: thousandths of GPUs and of cores, MiB, times seconds
        self.served = [0.0, 0.0, 0.0]
        self._wakes: list[float | None] = [None] * len(self.planners)
        #: views are the cluster itself: nothing needs binding
        self._whole = tenancy.whole
        self._instant = all(pool.capabilities.start_latency is None for pool in cluster.pools)
        #: planners to be asked at the end of the step: the only one always, of many the touched
        self._due = {0: self.planners[0]} if tenancy.whole else dict[int, Planner]()
        self._timed = tenancy.whole and self.planners[0].timed
        self._owed: list[Action] = []
        self._note: dict[type, Callable[[Any], None]] = {
            events.Submitted: self._submitted,
            events.Finished: self._finished,
            events.Failed: self._failed,
            events.Cancelled: self._cancelled,
            events.Stopped: self._stopped,
            events.Started: self._started,
            events.Progressed: self._progressed,
            events.NodeDown: self._node_down,
            events.NodeUp: self._node_up,
            events.NodeDraining: self._node_draining,
            events.Held: self._held,
            events.Freed: self._freed,
            events.Wake: self._woken,
        }

    def step(self, now: float, batch: Sequence[Event]) -> Plan:
        """Take in all events of one instant and decide once."""
        self.now = now
        if self.ended:
            self.ended = []
        if len(batch) > 1:
            batch = sorted(batch, key=lambda event: ORDER[type(event)])
        if self._timed:
            self.planners[0].advance(now)
        for event in batch:
            self._note[type(event)](event)
        actions, self._owed = self._owed, []
        for domain, planner in list(self._due.items()):
            wanted, self._wakes[domain] = planner.plan(now)
            if wanted:
                actions += self._carry_out(domain, wanted)
            if planner.waiting:
                planner.settled()
        if self._whole:
            wake = self._wakes[0]
        else:
            self._due = {}
            wake = min((at for at in self._wakes if at is not None), default=None)
        return Plan(tuple(actions), wake) if actions or wake is not None else EMPTY

    def _planner(self, domain: int) -> Planner:
        """A planner brought to the present, and due for a plan at the end of the step."""
        planner = self._due.get(domain)
        if planner is None:
            planner = self._due[domain] = self.planners[domain]
            if planner.timed:
                planner.advance(self.now)
        return planner

    # ---- noting what happened ----------------------------------------------------------------

    def _submitted(self, event: events.Submitted) -> None:
        spec = event.spec
        job = Job(spec, self.predictor.expect(spec))
        home = 0 if self._whole else self.tenancy.domain(spec)
        if isinstance(home, str):
            self._reject(job, home)
            return
        job.home = home
        refusal = self._planner(home).submitted(job, self.now)
        if refusal is None:
            self.jobs[spec.id] = job
        else:
            self._reject(job, refusal)

    def _reject(self, job: Job, reason: str) -> None:
        move(job, Status.REJECTED)
        self._owed.append(Reject(job.spec.id, reason))
        self.ended.append((job, reason))

    def _finished(self, event: events.Finished) -> None:
        job = self.jobs.pop(event.job)
        self._let_go(job, done=True)
        self.predictor.learn(job.spec, job.attained)
        move(job, DONE)
        self.ended.append((job, ""))

    def _failed(self, event: events.Failed) -> None:
        job = self.jobs[event.job]
        self._let_go(job)
        kept = self.costs.kept(job.attained, job.spec.resumable)
        job.attained = kept if event.kept is None else event.kept
        job.failures += 1
        if event.final or job.failures > job.spec.retries:
            self._end(job, Status.FAILED, event.reason)
        else:
            self._wait_again(job)

    def _cancelled(self, event: events.Cancelled) -> None:
        job = self.jobs.get(event.job)
        if job is not None:
            self._let_go(job)
            self._end(job, Status.CANCELLED)

    def _end(self, job: Job, status: Status, reason: str = "") -> None:
        move(job, status)
        del self.jobs[job.spec.id]
        self.ended.append((job, reason))

    def _let_go(self, job: Job, done: bool = False) -> None:
        """Settle a job's counters and free whatever it holds; its status is the caller's."""
        if job.status is STOPPING:
            self._released(job)
            return
        planner = self._planner(job.home)
        held = job.allocation
        if held is not None:
            if job.status is RUNNING:
                self._count(job, held)
            planner.left(job, self.now, done)
            self.cluster.release(held)
            if not self._whole:
                assert job.virtual is not None
                self.tenancy.release(job.home, job.virtual)
            job.allocation = job.virtual = None
            self.running -= 1
        elif job.status is SUSPENDED:
            self._give_back_residual(job)
        else:
            planner.left(job, self.now, done)

    def _count(self, job: Job, held: Allocation) -> None:
        """Add the present run to a job's counters."""
        ran = self.now - job.since
        job.run_time += ran
        if ran > job.overhead:
            job.attained += (ran - job.overhead) * job.rate
            job.overhead = 0.0
        else:
            job.overhead -= ran
        job.since = self.now
        served = self.served
        served[0] += ran * held.milli_gpus
        if self.cluster.limits_cpu or self.cluster.limits_memory:
            served[1] += ran * held.cpu
            served[2] += ran * held.memory

    def _give_back_residual(self, job: Job) -> None:
        if job.residual is not None:
            physical, virtual = job.residual
            self.cluster.release(physical)
            self.tenancy.release(job.home, virtual)
            job.residual = None
        self._planner(job.home).capacity_changed()

    def _wait_again(self, job: Job) -> None:
        move(job, Status.WAITING)
        job.since = job.queued_since = self.now
        job.awaits = frozenset()
        self._planner(job.home).waits(job, self.now)

    def _stopped(self, event: events.Stopped) -> None:
        job = self.jobs[event.job]
        if job.status is not Status.STOPPING:
            return
        self._released(job)
        if job.residual is None:
            self._wait_again(job)
        else:
            move(job, SUSPENDED)

    def _released(self, job: Job) -> None:
        """A stopping job's devices are free in fact: dispatch the starts that waited for them."""
        self.releasing.pop(job.spec.id, None)
        for other in self.jobs.values():
            if job.spec.id in other.awaits:
                other.awaits -= {job.spec.id}
                if not other.awaits and other.allocation is not None:
                    cause = "its devices were released"
                    self._owed.append(Start(other.spec.id, other.allocation, cause))

    def _started(self, event: events.Started) -> None:
        job = self.jobs[event.job]
        if job.status is not Status.STARTING:
            return
        if event.allocation != job.allocation:
            assert job.allocation is not None
            self.cluster.release(job.allocation)
            self.cluster.take(event.allocation)
            job.allocation = event.allocation
        move(job, Status.RUNNING)
        job.since = self.now
        self._planner(job.home).changed(job, self.now)

    def _progressed(self, event: events.Progressed) -> None:
        job = self.jobs[event.job]
        if job.allocation is not None and job.status is RUNNING:
            self._count(job, job.allocation)
        job.attained, job.rate = event.work, event.rate
        self._planner(job.home).changed(job, self.now)

    def _node_down(self, event: events.NodeDown) -> None:
        for job in list(self.jobs.values()):
            if any(part.node == event.node for part in self._parts(job)):
                self._let_go(job)
                job.attained = self.costs.kept(job.attained, job.spec.resumable)
                self._wait_again(job)
        self._close(event.node, "down")

    def _parts(self, job: Job) -> tuple[Part, ...]:
        """Everything a job occupies in fact: held, kept while suspended, or being released."""
        kept = job.residual[0].parts if job.residual else ()
        releasing = self.releasing.get(job.spec.id, NOTHING).parts
        return (job.allocation or NOTHING).parts + kept + releasing

    def _node_draining(self, event: events.NodeDraining) -> None:
        self._close(event.node, "draining")

    def _close(self, node: int, reason: str) -> None:
        self.cluster.close(node, reason)
        self.tenancy.close(node, reason)
        self._touch_all()

    def _node_up(self, event: events.NodeUp) -> None:
        self.cluster.open(event.node)
        self.tenancy.open(event.node)
        self._touch_all()

    def _touch_all(self) -> None:
        for domain in range(len(self.planners)):
            self._planner(domain).capacity_changed()

    def _held(self, event: events.Held) -> None:
        self.cluster.take(event.allocation)
        self.holdings[event.owner] = event.allocation
        self._touch_all()

    def _freed(self, event: events.Freed) -> None:
        self.cluster.release(self.holdings.pop(event.owner))
        self._touch_all()

    def _woken(self, event: events.Wake) -> None:
        for domain, wake in enumerate(self._wakes):
            if wake is not None and wake <= self.now:
                self._planner(domain)

    # ---- carrying plans out on the books -----------------------------------------------------

    def _carry_out(self, domain: int, actions: list[Action]) -> list[Action]:
        """Everything that frees, then everything that takes; physical allocations come back."""
        lifted: dict[int, Allocation] = {}
        for action in actions:
            if isinstance(action, Start):
                continue
            if isinstance(action, Stop):
                self._stop(action)
            elif isinstance(action, Suspend):
                self._suspend(action)
            elif isinstance(action, Change):
                lifted[action.job] = self._lift(action)
        done: list[Action] = []
        for action in actions:
            if isinstance(action, _TAKING):
                done.append(self._take(domain, action, lifted.get(action.job)))
            else:
                done.append(action)
        return done

    def _stop(self, action: Stop) -> None:
        job = self.jobs[action.job]
        self._vacate(job)
        job.preemptions += 1
        self.preemptions += 1

    def _vacate(self, job: Job) -> None:
        """Free a job's devices on the books; it waits again once they are free in fact."""
        called_off = job.status is STARTING and bool(job.awaits)
        held = job.allocation
        self._let_go(job)
        if self._instant or called_off:
            self._wait_again(job)
        else:
            assert held is not None
            move(job, Status.STOPPING)
            self.releasing[job.spec.id] = held

    def _suspend(self, action: Suspend) -> None:
        job = self.jobs[action.job]
        held = job.allocation
        self.preemptions += 1
        self._let_go(job)
        physical = self._bind(job.home, action.residual)
        self.cluster.take(physical)
        job.residual = (physical, action.residual)
        if self._instant:
            move(job, SUSPENDED)
        else:
            assert held is not None
            move(job, Status.STOPPING)
            self.releasing[job.spec.id] = held

    def _lift(self, action: Change) -> Allocation:
        """First half of a change: the old allocation is free, the job keeps running."""
        job = self.jobs[action.job]
        old = job.allocation
        assert old is not None
        self.moves += 1
        self._let_go(job)
        self._planner(job.home).waits(job, self.now)
        return old

    def _bind(self, domain: int, allocation: Allocation) -> Allocation:
        if self._whole:
            return allocation
        bound = self.tenancy.bind(domain, allocation)
        if isinstance(bound, str):
            raise OverCommitted(bound)
        for victim in bound.victims:
            self._vacate(self.jobs[victim])
        return bound.allocation

    def _take(self, domain: int, action: Start | Resume | Change, old: Allocation | None) -> Action:
        """Bind and occupy an allocation, and let the job run there (or be about to)."""
        job = self.jobs[action.job]
        virtual = action.allocation
        allocation = virtual if self._whole else self._bind(domain, virtual)
        self.cluster.take(allocation)
        job.allocation, job.virtual = allocation, virtual
        self.running += 1
        job.rate = self.speed.rate(job.spec, allocation, self.cluster)
        if type(action) is Start:
            job.overhead = self.costs.start(job.spec.model, job.starts)
            self._begin(job)
        elif isinstance(action, Resume):
            self._give_back_residual(job)
            job.overhead = self.costs.resume
            self._begin(job)
        else:
            assert old is not None
            job.overhead = self.costs.change(classify(old, allocation), job.spec.model)
        job.since = self.now
        self._planner(domain).started(job, self.now)
        if job.awaits and type(action) is Start:
            return action._replace(allocation=allocation, awaits=tuple(sorted(job.awaits)))
        return action if self._whole else action._replace(allocation=allocation)

    def _begin(self, job: Job) -> None:
        job.starts += 1
        if job.first_start is None:
            job.first_start = self.now
        if self._instant:
            move(job, RUNNING)
        else:
            move(job, STARTING)
            job.awaits = self._still_held(job)

    def _still_held(self, job: Job) -> frozenset[int]:
        """Stopping jobs that have not let go of something this start needs."""
        assert job.allocation is not None
        wanted = {part.node: part.devices for part in job.allocation.parts}
        limited = self.cluster.limits_cpu or self.cluster.limits_memory
        return frozenset(
            other
            for other, held in self.releasing.items()
            if any(
                part.node in wanted and (limited or part.devices & wanted[part.node])
                for part in held.parts
            )
        )

    # ---- asking ------------------------------------------------------------------------------

    def explain(self, job: int) -> Reason:
        """Why a job is not running: the one binding cause."""
        found = self.jobs.get(job)
        if found is None:
            return Reason("unknown", f"no job {job} is waiting or running")
        if found.status is Status.WAITING:
            return self.planners[found.home].explain(found, self.now)
        if found.awaits:
            names = ", ".join(self.jobs[other].spec.name for other in sorted(found.awaits))
            text = f"its devices are reserved; {names} must let go of them first"
            return Reason("releasing", text, tuple(sorted(found.awaits)))
        return Reason(str(found.status), f"it is {found.status}")

    def validate(self) -> None:
        """Check that the books agree with themselves. Run after every test."""
        self.cluster.validate()
        books = self.cluster.emptied()
        for holding in self.holdings.values():
            books.take(holding)
        for job in self.jobs.values():
            assert job.status not in FINAL, f"{job} ended but is still listed"
            holds = job.status in (Status.RUNNING, Status.STARTING)
            assert (job.allocation is not None) == holds, f"{job} holds {job.allocation}"
            for held in (job.allocation, job.residual and job.residual[0]):
                if held is not None:
                    books.take(held)
        assert books.masks == self.cluster.masks, "devices are lost or counted twice"
        assert books.shared == self.cluster.shared, "device shares do not add up"
        assert not self.cluster.limits_cpu or books.cpu == self.cluster.cpu, "CPU is lost"
        assert not self.cluster.limits_memory or books.memory == self.cluster.memory
        for domain in range(len(self.planners)):
            self.tenancy.view(domain).validate()

    # ---- storing -----------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to continue identically, as plain values."""
        return {
            "now": self.now,
            "wakes": list(self._wakes),
            "served": list(self.served),
            "jobs": [codec.job_to_plain(job) for job in self.jobs.values()],
            "holdings": {owner: codec.to_plain(held) for owner, held in self.holdings.items()},
            "releasing": [[job, codec.to_plain(held)] for job, held in self.releasing.items()],
            "closed": [[node, reason] for node, reason in self.cluster.closed.items()],
            "planners": [planner.snapshot() for planner in self.planners],
            "predictor": self.predictor.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot; the scheduler must be new and made of the same parts."""
        self.now = state["now"]
        self._wakes = list(state["wakes"])
        self.served = list(state["served"])
        self.jobs = {job.spec.id: job for job in map(codec.job_from_plain, state["jobs"])}
        self.releasing = {
            job: codec.from_plain(Allocation, held) for job, held in state["releasing"]
        }
        for owner, held in state["holdings"].items():
            self.holdings[owner] = codec.from_plain(Allocation, held)
            self.cluster.take(self.holdings[owner])
        for job in self.jobs.values():
            self._retake(job)
        for node, reason in state["closed"]:
            self.cluster.close(node, reason)
            self.tenancy.close(node, reason)
        for domain, (planner, stored) in enumerate(
            zip(self.planners, state["planners"], strict=True)
        ):
            planner.restore(stored, [job for job in self.jobs.values() if job.home == domain])
        self.predictor.restore(state["predictor"])

    def _retake(self, job: Job) -> None:
        pairs = [(job.allocation, job.virtual), job.residual or (None, None)]
        for physical, virtual in pairs:
            if physical is not None and virtual is not None:
                self.cluster.take(physical)
                self.tenancy.bind(job.home, virtual)
        self.running += job.allocation is not None
