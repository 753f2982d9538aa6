"""The scheduler: events of one instant go in, one plan comes out. No I/O, no clock, no chance.

`step` is four moves: note what happened, ask the planners, carry the plan out on our own books
(which re-check capacity), return it. Drivers perform plans and report back through events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from dovetail.core import awaiting, holding, storing
from dovetail.core.books import RUNNING, STARTING, STOPPING, SUSPENDED, WAITING, Books
from dovetail.core.lifecycle import move
from dovetail.core.protocols import Planner
from dovetail.model import event as events
from dovetail.model.allocation import NOTHING, Allocation, Difference, allocation_of, classify
from dovetail.model.event import ORDER, Event
from dovetail.model.job import Job, Status
from dovetail.model.plan import (
    EMPTY,
    Action,
    Asked,
    Change,
    Plan,
    Reason,
    Reject,
    Resume,
    Start,
    Stop,
)

DONE = Status.DONE
SAME_DEVICES = (Difference.NONE, Difference.IN_PLACE)
AGAIN = 4
"""How often, on average, domains are asked once more in one step because others touched them."""
GIVEN_UP = "its owner gave it up"

_new = tuple.__new__
"""Makes a named tuple in half the time of calling its class; for the hot path only."""


class Unlike(Exception):
    """A recorded plan does not belong to these books: another journal, or other parts."""


class Scheduler(Books):
    """Turns events into plans. One mutating door, `step`; `apply` goes through it once more."""

    def step(self, now: float, batch: Sequence[Event]) -> Plan:
        """Take in all events of one instant and decide once."""
        actions, wake = self._note(now, batch), None
        asked: tuple[Asked, ...] = ()
        sole = self._sole
        if sole is None:
            asked, done = self._ask_all(now)
            actions += done
            wake = min((at for at in self.wakes if at is not None), default=None)
        else:
            wanted = sole.plan(now)
            if wanted:
                actions += self._carry_out(0, wanted)
            if sole.waiting:
                sole.settled()
            wake = self.wakes[0] = sole.wake_at() if sole.timed else None
        if actions or asked or wake is not None:
            return _new(Plan, (actions, wake, asked))
        return EMPTY

    def _ask_all(self, now: float) -> tuple[tuple[Asked, ...], tuple[Action, ...]]:
        """Have all domains plan in which something happened, and those that this touches again."""
        asked: list[Asked] = []
        actions: list[Action] = []
        self._again.clear()
        turns = deque(self.tenancy.turns(list(self._due), now))
        patience = len(turns) + AGAIN * len(self.planners)
        while (turns or self._again) and patience:
            patience -= 1
            domain = turns.popleft() if turns else self._again.popitem()[0]
            planner = self._planner(domain)
            wanted = planner.plan(now)
            done = self._settle(domain, planner, wanted)
            asked.append(Asked(domain, tuple(wanted), len(done)))
            actions += done
        self._due = {}
        return tuple(asked), tuple(actions)

    def _settle(self, domain: int, planner: Planner, wanted: Sequence[Action]) -> list[Action]:
        """Carry out what one of several domains wants; stops of others that this takes go first."""
        done = list(self._carry_out(domain, wanted)) if wanted else []
        if self._evicted:
            done, self._evicted = self._evicted + done, []
        if planner.waiting:
            planner.settled()
            if domain in self._again:
                # What it did itself changed its view: it has not seen that yet.
                planner.capacity_changed()
        self.wakes[domain] = planner.wake_at() if planner.timed else None
        return done

    def apply(self, now: float, batch: Sequence[Event], plan: Plan) -> None:
        """Take in events and a plan that was made for them before: nothing is decided again.

        Planners are told what they would have been told by `step`, so that both end alike.
        """
        owed = self._note(now, batch)
        if plan.actions[: len(owed)] != owed:
            raise Unlike(f"at {now} the books owe {owed}, but {plan.actions} was recorded")
        recorded = plan.actions[len(owed) :]
        if self._sole is None:
            self._follow_all(now, recorded, plan.asked)
            return
        unknown = [action for action in recorded if action.job not in self.jobs]
        if unknown:
            raise Unlike(f"at {now} nobody was asked about {unknown[0]}")
        wanted = [_wanted(action) for action in recorded]
        self._sole.follow(now, wanted)
        self._settle(0, self._sole, wanted)

    def _follow_all(
        self, now: float, recorded: tuple[Action, ...], asked: tuple[Asked, ...]
    ) -> None:
        """Ask nobody, and carry out what each domain wanted then where it was carried out then."""
        self._again.clear()
        self.tenancy.turns(list(self._due), now)
        for domain, wanted, came in asked:
            expected, recorded = list(recorded[:came]), recorded[came:]
            self._places = {
                action.job: action.allocation
                for action in expected
                if isinstance(action, Start | Resume | Change)
            }
            planner = self._planner(domain)
            planner.follow(now, wanted)
            done = self._settle(domain, planner, wanted)
            if done != expected:
                raise Unlike(f"at {now} {wanted} comes to {done}, but {expected} was recorded")
        if recorded:
            raise Unlike(f"at {now} nobody was asked about {recorded[0]}")
        self._due, self._places = {}, {}

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
        job = Job(spec, self._expect(spec))
        planner = self._sole
        if planner is None:
            home = self.tenancy.domain(spec)
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
        self.reserved.pop(job.id, None)
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
        elif job.allocation is not None and not job.awaits:
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

    # ---- asking ------------------------------------------------------------------------------

    def explain(self, job: int) -> Reason:
        """Why a job is not running: the one binding cause."""
        found = self.jobs.get(job)
        if found is None:
            return Reason("unknown", f"no job {job} is waiting or running")
        if found.stray:
            return Reason("tenant", found.stray, (), "tenants among whom it has a place")
        if found.withheld:
            text = "it is withheld: its owner holds it back, or it rests after a failure"
            return Reason("withheld", text, (), "its release")
        if found.status is WAITING:
            reason = self.planners[found.home].explain(found, self.now)
            return self.tenancy.explain(found, reason)
        if found.awaits:
            return awaiting.explain(self, found)
        return Reason(str(found.status), f"it is {found.status}")

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to continue identically, as plain values."""
        return storing.snapshot(self)

    def image(self) -> dict[str, Any]:
        """The same for forks in this process, made quickly; `restore` takes it as well."""
        return storing.image(self)

    def restore(self, state: dict[str, Any], anew: bool = False) -> None:
        """Continue from a snapshot; the scheduler must be new.

        It must be made of the same parts, unless `anew`: then its planners begin with the jobs as
        they are and know nothing of how they came to be so.
        """
        storing.restore(self, state, anew)

    def take_over(self, other: Scheduler) -> None:
        """Continue for a scheduler of other parts, with its jobs where they are."""
        self.restore(other.image(), anew=True)
        if type(self.predictor) is type(other.predictor):
            self.predictor.restore(other.predictor.snapshot())


def _wanted(action: Action) -> Action:
    """A recorded action as it was wanted: whom it had to wait for is found again."""
    return action._replace(awaits=()) if isinstance(action, Start | Resume) else action


NOTE: dict[type, Callable[[Scheduler, Any], None]] = {
    events.Submitted: Scheduler._submitted,
    events.Finished: Scheduler._finished,
    events.Failed: Scheduler._failed,
    events.Cancelled: Scheduler._cancelled,
    events.Withheld: Scheduler._withheld,
    events.Offered: Scheduler._offered,
    events.Stopped: Scheduler._stopped,
    events.Started: Scheduler._started,
    events.Progressed: Scheduler._progressed,
    events.Checkpointed: Scheduler._checkpointed,
    events.NodeDown: Scheduler._node_down,
    events.NodeUp: Scheduler._node_up,
    events.NodeDraining: Scheduler._node_draining,
    events.Held: Scheduler._held,
    events.Freed: Scheduler._freed,
    events.Wake: Scheduler._woken,
}
"""What each kind of event does to the books."""
