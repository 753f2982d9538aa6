"""Who waits and who runs in one domain, kept in lanes and in order.

The index is told what happens and keeps keys current: it asks the ordering when a job's state
changes, when a key jumps by itself (`turn`), and every `pause` seconds for those that drift. Two
kinds of jobs are spared the bookkeeping, because most jobs need none: a newcomer that finds nobody
waiting stands alone until it is clear that it cannot start at once, and a running job is listed
among those that may be displaced only when somebody asks. The index decides nothing.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Sequence
from heapq import heappop, heappush
from typing import Any

from dovetail.core.claims import Curves
from dovetail.core.draft import Draft, granting, options
from dovetail.core.lanes import Entry, Lane
from dovetail.core.ordering import Ordering
from dovetail.core.protocols import Allocator, Placement
from dovetail.core.view import View
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.model.job import RUNNING, Job, JobSpec
from dovetail.model.plan import Action
from dovetail.model.quota import Limit, Quotas
from dovetail.model.request import Request
from dovetail.planners import storing, turning
from dovetail.planners.reasons import why_impossible


class Index:
    """The jobs of one domain."""

    # With this many attributes, methods are found quickly only where attributes have slots.
    __slots__ = (
        *("curves", "ordering", "placement", "allocator", "view", "waiting", "timed", "ranked"),
        *("_glance", "_key", "_pause", "_selective", "_drifts", "_preempts", "_charges"),
        *("_watches", "_admits", "_by_tenant", "_by_model", "_ranked", "_lists_late", "_unlisted"),
        *("_grid", "_lone", "_lanes", "_known", "_open", "_everything", "_fresh", "_newcomers"),
        *("_calm", "_steady", "_turns", "_apart", "quotas"),
    )

    def __init__(
        self,
        cluster: Cluster,
        ordering: Ordering,
        placement: Placement,
        allocator: Allocator,
        costs: Costs,
        curves: Curves | None = None,
        quotas: Quotas | None = None,
    ) -> None:
        self.curves = curves
        self.quotas = quotas
        self.ordering = ordering
        self.placement = placement
        self.allocator = allocator
        self.view = View(cluster, costs)
        #: for looking only: nothing is ever taken on it
        self._glance = Draft(cluster, placement)
        self.waiting = 0
        # Hooks an ordering does not have are not called: this is the hot path.
        kind = type(ordering)
        self._key: Callable[[Job, View], Any] = ordering.key
        self._pause = ordering.pause
        self._selective = (ordering.skip or ordering.preempt) and ordering.backfill == "none"
        #: does the order change with time alone?
        self._drifts = self._pause is not None or kind.turn is not Ordering.turn
        #: and does it matter now? Keys that are asked for when needed can wait for somebody to wait
        self.timed = self._drifts and ordering.rekeys != "none"
        self._preempts = ordering.preempt
        self._charges = kind.left is not Ordering.left
        self._watches = kind.turn is not Ordering.turn
        self._admits = kind.admit is not Ordering.admit
        self._by_tenant = ordering.by_tenant
        self._by_model = allocator.by_model
        #: does more than its request decide a job's lane?
        self._apart = self._by_tenant or self._by_model
        #: is something compared before keys?
        self._ranked = ordering.by_tenant or ordering.by_free
        # Keys that depend on the job and time alone can be asked for when they are needed.
        self._lists_late = ordering.rekeys == "none"
        self._unlisted: dict[int, Job] = {}
        self._grid = 0
        #: a newcomer that nobody waits beside
        self._lone: Job | None = None
        self._lanes: dict[Request | tuple[Any, ...], Lane] = {}
        # By identity of the request, which its lane keeps alive: most requests are interned.
        self._known: dict[int, Lane] = {}
        #: running jobs that may be displaced, by the slope of their keys
        self.ranked: dict[float, list[Entry]] = {}
        #: lanes with waiting jobs
        self._open: dict[Lane, None] = {}
        #: what the next walk must look at: everything, or only lanes with new heads
        self._everything = False
        self._fresh: dict[Lane, None] = {}
        #: jobs that began to wait since the order was last settled
        self._newcomers = 0
        #: devices that were idle then; -1: since then ranks or capacity changed by themselves
        self._calm = -1
        #: does a job rank no worse for being started and no better for being stopped?
        self._steady = ordering.steady
        self._turns: list[tuple[float, int, Entry]] = []

    # ---- keeping the index current -----------------------------------------------------------

    def submitted(self, job: Job, now: float) -> str | None:
        """Let a new job wait in its lane, or say why it can never run."""
        lane = job.lane = self._known.get(id(job.spec[3])) or self.lane(job)
        refusal = lane.refusal
        if refusal is None and self._admits:
            self.view.now = now
            refusal = self.ordering.admit(job, self.view)
        if refusal is not None:
            return refusal
        if self.waiting:
            self.waits(job, now)
        else:
            # Most newcomers find nobody waiting and start at once: they need no seat.
            self._lone = job
            self.waiting = 1
            view = self.view
            view.now = now
            view.jobs[job.id] = job
        return None

    def follow(self, now: float, actions: Sequence[Action]) -> None:
        """Complete the index as `plan` does; a newcomer that starts at once needs no seat."""
        self.view.now = now
        lone = self._lone
        if lone is not None and not (len(actions) == 1 and actions[0].job == lone.id):
            self._seat()
        if self._preempts and self.waiting:
            self.list_running()

    def _seat(self) -> None:
        """Give the newcomer that stands alone its seat in the queue."""
        job, self._lone = self._lone, None
        if job is not None:
            self.waiting -= 1
            self.waits(job, self.view.now)

    def waits(self, job: Job, now: float) -> None:
        """Let a job wait in its lane."""
        if self._lone is not None:
            self._seat()
        spec, lane, view, number = job.spec, job.lane, self.view, job.id
        view.now = now
        view.jobs[number] = job
        if self._drifts and not self.timed:
            self.timed = True
            self.advance(now)
        self.waiting += 1
        self._newcomers += 1
        entry = job.entry = (self._standing(job), spec[2], number, job)
        heappush(lane.waiting, entry)
        self._open[lane] = self._fresh[lane] = None
        if self._watches:
            self._watch(job)

    def started(self, job: Job, now: float) -> None:
        """Move a job from the waiting to the running end of its lane."""
        self.view.now = now
        if job is self._lone:
            self._lone = None
            self.waiting -= 1
        else:
            self._unqueue(job)
        if self._by_tenant:
            self.view.hold(job, 1)
        if self._preempts:
            if self._lists_late and job.status is RUNNING:
                if job.spec[11]:
                    self._unlisted[job.id] = job
            else:
                self._may_be_displaced(job, now)

    def _may_be_displaced(self, job: Job, now: float) -> None:
        """A job that runs or still waits for its devices can make room; one that starts cannot.

        Nor can one that waits where ranks get worse with running: it does not run, but would drift.
        """
        called_off = job.status is not RUNNING and job.awaits and job.lane.slope <= 0
        if not job.spec.resumable or not (job.status is RUNNING or called_off):
            return
        if self._lists_late:
            self._unlisted[job.id] = job
        else:
            self._list(job, now)

    def _list(self, job: Job, now: float) -> None:
        """List a running job among those that may be displaced, by its key at that time."""
        lane, view = job.lane, self.view
        view.now = now
        key, slope = self._key(job, view), lane.slope
        drift = key - slope * now if slope else key
        entry = job.entry = (drift, job.spec[2], job.id, job)
        insort(lane.running, entry)
        if job.rate != 1.0:
            # What it loses by running at another rate may cost it its rank.
            self._steady = False
            self._calm = -1
        if self._watches:
            self._watch(job)

    def list_running(self) -> None:
        """List the running jobs that nobody needed to see until now: most end before that.

        The order is as if each had been listed when it started, or keys that jump as of now.
        """
        if not self._unlisted:
            return
        now = self.view.now
        unlisted, self._unlisted = self._unlisted, {}
        for job in unlisted.values():
            self._list(job, job.since if job.lane.slope else now)
        self.view.now = now

    def rank_running(self, now: float) -> None:
        """List all running jobs by their keys as of now: rates of their own let ranks drift."""
        if not self._preempts or not self.waiting:
            return
        self.view.now = now
        if any(self.ranked):
            # Whether anybody needed to see them before must not matter.
            self.list_running()
        for slope, running in self.ranked.items():
            if slope:
                jobs = [entry[3] for entry in running]
                running.clear()
                for job in jobs:
                    self._list(job, now)

    def left(self, job: Job, now: float, done: bool) -> None:
        """Forget a job; what it held is free again."""
        view = self.view
        view.now = now
        del view.jobs[job.id]
        self._everything = True
        if job.virtual is None:
            self._unqueue(job)
            return
        if self._charges:
            self.ordering.left(job, view, done)
        if self._by_tenant:
            view.hold(job, -1)
        if job.entry is not None:
            job.lane.drop(job)
        elif self._preempts:
            self._unlisted.pop(job.id, None)

    def changed(self, job: Job, now: float) -> None:
        """Ask for the key of one job again."""
        self.capacity_changed()
        self.view.now = now
        if job.virtual is not None:
            if job.entry is not None:
                job.lane.drop(job)
            if self._preempts:
                self._unlisted.pop(job.id, None)
                self._may_be_displaced(job, now)
        elif job.entry is not None:
            job.lane.pull(job)
            job.lane.push(job, self._standing(job))
            if self._watches:
                self._watch(job)

    def _standing(self, job: Job) -> Any:
        """The key of a waiting job, rounded as it would be read if the job was started now.

        Else equals could differ by a last digit, each time for the one who waits, and change
        places for ever.
        """
        key, slope = self._key(job, self.view), job.lane.slope
        if slope and self._preempts:
            drift = slope * self.view.now
            key = key - drift + drift
        return key

    def resized(self, job: Job, now: float) -> None:
        """A running job has another rate: list it by its key as of now."""
        if job.entry is not None and job.lane.slope:
            job.lane.drop(job)
            self._may_be_displaced(job, now)
        if self._by_tenant:
            self.view.hold(job, -1)
            self.view.hold(job, 1)

    def capacity_changed(self) -> None:
        """Look at every lane in the next walk, however little is free."""
        self._everything = True
        self._calm = -1

    def advance(self, now: float) -> None:
        """Bring keys that change with time up to date."""
        turning.advance(self, now)

    @property
    def rank_time(self) -> float:
        """Ranks of running jobs are read as of this moment: now, or the last re-ranking."""
        return self.view.now if self._pause is None else self._grid * self._pause

    def settled(self) -> None:
        """The plan was carried out: nothing needs looking at until something changes."""
        if self._lone is not None:
            # It was to start and could not be bound: it waits like everybody.
            self._seat()
        self._everything = False
        self._newcomers = 0
        if self._steady:
            self._calm = self.view.cluster.idle
        if self._fresh:
            self._fresh = {}

    def _unqueue(self, job: Job) -> None:
        """Take a waiting job out of the queue."""
        if self._lone is not None:
            self._seat()
        lane = job.lane
        self.waiting -= 1
        if lane.waiting[0] is job.entry and not lane.dead:
            heappop(lane.waiting)
            job.entry = None
        else:
            lane.pull(job)
        if not lane.waiting:
            del self._open[lane]
            if self._lists_late and not self.waiting:
                self.timed = False

    def _watch(self, job: Job) -> None:
        at = self.ordering.turn(job, self.view)
        if at is not None:
            heappush(self._turns, (at, job.spec.id, job.entry))

    def lane(self, job: Job) -> Lane:
        """The lane of a job, made on first sight of its request."""
        spec, request = job.spec, job.spec.request
        tenant = self.ordering.account(spec) if self._by_tenant else ""
        model, accounts = spec.model if self._by_model else "", self.accounts(spec)
        key = (request, tenant, model, accounts) if self._apart else request
        lane = self._lanes.get(key)
        if lane is None:
            cluster = self.view.cluster
            grant = granting(cluster, self.allocator, self.curves, spec.model)
            choices = options(request, cluster, grant)
            lane = Lane(choices, self.ordering.slope(request.gpus), tenant)
            lane.accounts = accounts
            lane.refusal = self._refusal(lane, request)
            lane.running = self.ranked.setdefault(lane.slope, lane.running)
            self._lanes[key] = lane
            if not self._apart:
                lane.request = request
                self._known[id(request)] = lane
        job.lane = lane
        return lane

    def accounts(self, spec: JobSpec) -> tuple[tuple[str, Limit], ...]:
        """What a job counts for that has a limit; nothing here knows of any."""
        return ()

    # ---- what other planners and explanations read -----------------------------------------

    @property
    def open_lanes(self) -> Sequence[Lane]:
        """Lanes in which jobs wait."""
        return [lane for lane in self._open if lane.waiting]

    @property
    def lanes(self) -> Collection[Lane]:
        """All lanes, in the order their requests were first seen."""
        return self._lanes.values()

    def _refusal(self, lane: Lane, request: Request) -> str | None:
        """Why a request can never be met on this cluster, or None."""
        empty = self.view.cluster.emptied()
        if Draft(empty, self.placement).find(lane.options) is not None:
            return None
        return why_impossible(request, empty)

    # ---- storing -----------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """Everything a rebuilt index needs besides the jobs."""
        self._seat()
        self.list_running()
        return storing.snapshot(self)

    def restore(self, state: dict[str, Any], jobs: Sequence[Job]) -> None:
        """Rebuild lanes from stored keys, so that a fork continues identically."""
        storing.restore(self, state, jobs)
