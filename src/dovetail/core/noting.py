"""What happened, noted on the books: one handler for each kind of event.

Nothing is decided here. What an event makes due by itself (a start whose devices were released, a
rejection) is owed, and comes first in the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dovetail.core import holding
from dovetail.core.books import RUNNING, STARTING, STOPPING, SUSPENDED, WAITING, Books
from dovetail.core.lifecycle import move
from dovetail.model import event as events
from dovetail.model.allocation import NOTHING, Allocation, Difference, allocation_of, classify
from dovetail.model.event import ORDER, Event
from dovetail.model.job import Job, Status
from dovetail.model.plan import Action, Reason, Reject, Stop

DONE = Status.DONE
SAME_DEVICES = (Difference.NONE, Difference.IN_PLACE)
GIVEN_UP = "its owner gave it up"


class Noting(Books):
    """Books that take events in."""

    def _note(self, now: float, batch: Sequence[Event]) -> tuple[Action, ...]:
        """Take in all events of one instant; returns what the books owe because of them."""
        self.now = now
        if self.ended:
            self.ended = []
        if len(batch) > 1:
            batch = sorted(batch, key=lambda event: ORDER[type(event)])
        sole = self._sole
        if sole is not None and sole.timed:
            sole.advance(now)
        for event in batch:
            NOTE[type(event)](self, event)
        if self.contested:
            self._claim_contested()
        if sole is None and self.tenancy.touched:
            self._tell_touched()
        return self._dispatched() if self._owed else ()

    # ---- noting what happened ----------------------------------------------------------------

    def _submitted(self, event: events.Submitted) -> None:
        spec = event[0]
        self.take_in(Job(spec, self._expect(spec)))

    def take_in(self, job: Job) -> None:
        """Let a job wait that holds nothing. Only forks take in one that has a past."""
        planner = self._sole
        if planner is None:
            home = self.tenancy.domain(job.spec)
            if isinstance(home, str):
                self._reject(job, home)
                return
            planner, job.home = self._planner(home), home
        refusal = planner.submitted(job, self.now)
        if refusal is None:
            self.jobs[job.id] = job
        else:
            reason = self.tenancy.explain(job, Reason("impossible", refusal))
            self._reject(job, reason.text)

    def _reject(self, job: Job, reason: str) -> None:
        move(job, Status.REJECTED)
        self._owed.append(Reject(job.spec.id, reason))
        self.ended.append((job, reason))

    def _finished(self, event: events.Finished) -> None:
        number = event[0]
        job = self.jobs.get(number)
        if job is None or (job.allocation is None and job.status in (WAITING, SUSPENDED)):
            return
        if self.leaving and number in self.leaving:
            self._gave_up(job)
            return
        self._let_go(job, True)
        if self._learns:
            self.predictor.learn(job.spec, job.attained)
        move(job, DONE)
        del self.jobs[number]
        if self.reserved:
            self.reserved.pop(number, None)
        self.ended.append((job, ""))

    def _failed(self, event: events.Failed) -> None:
        job = self.jobs.get(event.job)
        if job is None or job.status is WAITING:
            return
        if job.id in self.leaving:
            self._gave_up(job)
            return
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
        if job is None or job.id in self.leaving:
            return
        if self._instant or job.status is WAITING or job.awaits or self._unsent(job):
            self._gave_up(job)
        elif job.status is SUSPENDED:
            self._owed.append(Stop(job.id, GIVEN_UP))
            self._gave_up(job)
        else:
            self._give_up_later(job)

    def _give_up_later(self, job: Job) -> None:
        """A job is over once an executor says that it let go of what it holds in fact."""
        self.leaving.add(job.id)
        held = job.allocation
        if held is not None:
            self._let_go(job)
            self._release_later(job, held)
            self._owed.append(Stop(job.id, GIVEN_UP))
        elif job.residual is not None:
            self._give_back_residual(job)
            self._owed.append(Stop(job.id, GIVEN_UP))

    def _gave_up(self, job: Job) -> None:
        self._let_go(job)
        self._end(job, Status.CANCELLED)

    def _withheld(self, event: events.Withheld) -> None:
        job = self.jobs.get(event.job)
        if job is not None and job.status is WAITING and not job.withheld:
            if not job.stray:
                self._planner(job.home).left(job, self.now, False)
            job.withheld = True

    def _offered(self, event: events.Offered) -> None:
        job = self.jobs.get(event.job)
        if job is not None and job.withheld:
            job.withheld = False
            job.since = self.now
            if not job.stray:
                self._planner(job.home).waits(job, self.now)

    def _stopped(self, event: events.Stopped) -> None:
        job = self.jobs.get(event.job)
        if job is None:
            return
        if job.id in self.leaving:
            self._gave_up(job)
        elif job.status is STOPPING:
            self._released(job)
            if job.residual is None:
                self._wait_again(job)
            else:
                move(job, SUSPENDED)
        elif job.status is SUSPENDED or (job.allocation is not None and not job.awaits):
            self._lose(job)

    def _lose(self, job: Job) -> None:
        """A job lost its devices through no fault or decision of ours: it waits again."""
        self._let_go(job)
        job.attained = self.costs.kept(job.attained, job.spec.resumable)
        self._wait_again(job)

    def _started(self, event: events.Started) -> None:
        job = self.jobs.get(event.job)
        if job is None or job.status is not STARTING:
            return
        assert job.allocation is not None
        if classify(event.allocation, job.allocation) not in SAME_DEVICES:
            # Amounts may have been changed while it was starting: ours are the later ones.
            self._correct(job, event.allocation)
        move(job, RUNNING)
        # What the engine took to start it is a part of what a start costs, and is over.
        job.overhead = max(0.0, job.overhead - (self.now - job.since))
        job.since = job.began = self.now
        self._planner(job.home).changed(job, self.now)

    def _correct(self, job: Job, actual: Allocation) -> None:
        """An executor gave a job other devices than planned."""
        assert job.allocation is not None and job.virtual is not None
        self._planner(job.home).left(job, self.now, False)
        self.cluster.release(job.allocation)
        self.tenancy.release(job.home, job.virtual, job.id)
        self.cluster.take(actual, closed_too=True)
        home, (seat,) = job.home, self.tenancy.adopt([(job.spec, actual)])
        job.allocation = actual
        job.home, job.virtual = seat
        if job.home == home:
            self._planner(home).waits(job, self.now)
        else:
            self._introduce(job)
        self._planner(job.home).started(job, self.now)

    def _progressed(self, event: events.Progressed) -> None:
        job = self.jobs.get(event.job)
        if job is None:
            return
        if job.allocation is not None and job.status is RUNNING:
            self._count(job, job.allocation)
        job.attained, job.rate = event.work, event.rate
        if event.expected is not None:
            job.expected = event.expected
        self._planner(job.home).changed(job, self.now)

    def _checkpointed(self, event: events.Checkpointed) -> None:
        job = self.jobs.get(event.job)
        if job is not None and job.status is RUNNING:
            job.saved = job.worked(self.now)

    def _node_down(self, event: events.NodeDown) -> None:
        for job in list(self.jobs.values()):
            if any(part.node == event.node for part in self.parts(job)):
                if job.id in self.leaving:
                    self._gave_up(job)
                    continue
                self._lose(job)
        self._close(event.node, "down")

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
        now, later = holding.split(self.cluster, event.allocation, self.holdings.values())
        holding.occupy(self.cluster, now)
        self.tenancy.hold(now)
        before = self.holdings.get(event.owner, NOTHING)
        self.holdings[event.owner] = allocation_of(before.parts + now.parts)
        if later.parts:
            before = self.contested.get(event.owner, NOTHING)
            self.contested[event.owner] = allocation_of(before.parts + later.parts)
        self._touch_all()

    def _claim_contested(self) -> None:
        """Others have what our jobs let go of, if they use it anyway."""
        contested, self.contested = self.contested, {}
        for owner, wanted in contested.items():
            self._held(events.Held(owner, wanted))

    def _freed(self, event: events.Freed) -> None:
        self.contested.pop(event.owner, None)
        held = self.holdings.pop(event.owner, None)
        if held is not None:
            self.cluster.release(held)
            self.tenancy.free(held)
            self._touch_all()

    def _woken(self, event: events.Wake) -> None:
        for domain, wake in enumerate(self.wakes):
            if wake is not None and wake <= self.now:
                self._planner(domain)


NOTE: dict[type, Callable[[Noting, Any], None]] = {
    events.Submitted: Noting._submitted,
    events.Finished: Noting._finished,
    events.Failed: Noting._failed,
    events.Cancelled: Noting._cancelled,
    events.Withheld: Noting._withheld,
    events.Offered: Noting._offered,
    events.Stopped: Noting._stopped,
    events.Started: Noting._started,
    events.Progressed: Noting._progressed,
    events.Checkpointed: Noting._checkpointed,
    events.NodeDown: Noting._node_down,
    events.NodeUp: Noting._node_up,
    events.NodeDraining: Noting._node_draining,
    events.Held: Noting._held,
    events.Freed: Noting._freed,
    events.Wake: Noting._woken,
}
"""What each kind of event does to the books."""
