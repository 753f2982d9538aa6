"""The scheduler: events of one instant go in, one plan comes out. No I/O, no clock, no chance.

`step` is four moves: note what happened, ask the planners, carry the plan out on our own books
(which re-check capacity), return it. Drivers perform plans and report back through events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from dovetail.core import awaiting, storing
from dovetail.core.books import WAITING
from dovetail.core.noting import Noting
from dovetail.core.protocols import Planner
from dovetail.model.event import Event
from dovetail.model.plan import EMPTY, Action, Asked, Change, Plan, Reason, Resume, Start, Suspend

AGAIN = 4
"""How often, on average, domains are asked once more in one step because others touched them."""

_new = tuple.__new__
"""Makes a named tuple in half the time of calling its class; for the hot path only."""


class Unlike(Exception):
    """A recorded plan does not belong to these books: another journal, or other parts."""


class Scheduler(Noting):
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
            self.tenancy.view(domain)
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
            gone = {each.job for each in self._evicted}
            # Who was suspended and had to give up what it kept was only stopped.
            kept = [a for a in done if not (type(a) is Suspend and a.job in gone)]
            done, self._evicted = self._evicted + kept, []
        if planner.waiting:
            self.tenancy.view(domain)
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
            self.tenancy.view(domain)
            planner.follow(now, wanted)
            done = self._settle(domain, planner, wanted)
            if done != expected:
                raise Unlike(f"at {now} {wanted} comes to {done}, but {expected} was recorded")
        if recorded:
            raise Unlike(f"at {now} nobody was asked about {recorded[0]}")
        self._due, self._places = {}, {}

    # ---- asking ------------------------------------------------------------------------------

    def explain(self, job: int) -> Reason:
        """Why a job is not running, the one binding cause; or on whose devices it does."""
        found = self.jobs.get(job)
        if found is None:
            return Reason("unknown", f"no job {job} is waiting or running")
        if found.stray:
            return Reason("tenant", found.stray, (), "tenants among whom it has a place")
        if found.withheld:
            text = "it is withheld: its owner holds it back, or it rests after a failure"
            return Reason("withheld", text, (), "its release")
        if found.status is WAITING:
            self.tenancy.view(found.home)
            reason = self.planners[found.home].explain(found, self.now)
            return self.tenancy.explain(found, reason)
        if found.awaits:
            return awaiting.explain(self, found)
        reason = Reason(str(found.status), f"it is {found.status}")
        return self.tenancy.explain(found, reason) if found.allocation is not None else reason

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to continue identically, as plain values."""
        return storing.snapshot(self)

    def image(self) -> dict[str, Any]:
        """The same for forks in this process, made quickly; `restore` takes it as well."""
        return storing.image(self)

    def images_of(self, domains: Iterable[int]) -> dict[int, dict[str, Any]]:
        """Of single domains, each for a scheduler that has its view as the cluster."""
        return storing.images_of(self, domains)

    def restore(self, state: dict[str, Any], anew: bool = False) -> None:
        """Continue from a snapshot; the scheduler must be new.

        It must be made of the same parts, unless `anew`: then its planners begin with the jobs as
        they are and know nothing of how they came to be so.
        """
        storing.restore(self, state, anew)

    def dissolve(self) -> None:
        """A fork that is of no more use: searching for its garbage would keep everybody waiting.

        Most of it is gone at once, also where somebody still has the fork.
        """
        for job in self.jobs.values():
            job.lane = job.entry = None
        self.tenancy.dissolve()
        del self.tenancy

    def take_over(self, other: Scheduler) -> None:
        """Continue for a scheduler of other parts, with its jobs where they are."""
        self.restore(other.image(), anew=True)
        if type(self.predictor) is type(other.predictor):
            self.predictor.restore(other.predictor.snapshot())


def _wanted(action: Action) -> Action:
    """A recorded action as it was wanted: whom it had to wait for is found again."""
    return action._replace(awaits=()) if isinstance(action, Start | Resume) else action
