"""The state that the books are about, with its two links to plug-ins: planners and the tenancy.

Knows what is kept and how a run is counted; what changes it, and when, is in `core.books`.
"""

from __future__ import annotations

from collections.abc import Callable

from dovetail.core.protocols import Planner, Predictor, Speed, Tenancy
from dovetail.model.allocation import NOTHING, Allocation, Part
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.model.job import Job
from dovetail.model.plan import Action, Resume, Start


class Accounts:
    """Who holds what, who waits, and what was served."""

    # With this many attributes, methods are found quickly only where attributes have slots.
    __slots__ = (
        *("cluster", "tenancy", "predictor", "speed", "costs", "planners", "jobs", "ended"),
        *("holdings", "contested", "releasing", "leaving", "reserved", "now", "running"),
        *("preemptions", "moves", "served", "wakes", "_whole", "_instant", "_direct", "_sole"),
        *("_due", "_owed", "_evicted", "_again", "_places"),
        *("_even", "_learns", "_expect", "_first_start"),
    )

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
        #: devices they use that are theirs once our jobs let go of them
        self.contested: dict[str, Allocation] = {}
        #: what stopping jobs have not let go of yet
        self.releasing: dict[int, Allocation] = {}
        #: stopping jobs that are over once they let go, because their owners gave them up
        self.leaving: set[int] = set()
        #: starts and resumes that wait for such devices, by job
        self.reserved: dict[int, type[Start] | type[Resume]] = {}
        self.now = 0.0
        #: how many jobs hold devices
        self.running = 0
        #: stops and moves of running jobs so far
        self.preemptions = self.moves = 0
        #: what runs that ended have held: thousandths of GPUs and of cores, MiB, times seconds
        self.served = [0.0, 0.0, 0.0]
        self.wakes: list[float | None] = [None] * len(self.planners)
        #: views are the cluster itself: nothing needs binding
        self._whole = tenancy.whole
        self._first_start = costs.first_start
        self._instant = all(pool.capabilities.start_latency is None for pool in cluster.pools)
        #: is a start as it was planned once the books have it?
        self._direct = self._whole and self._instant
        #: the one planner there is, if all jobs share the whole cluster
        self._sole = self.planners[0] if tenancy.whole else None
        #: planners to be asked at the end of the step: the only one always, of many the touched
        self._due = {0: self.planners[0]} if tenancy.whole else dict[int, Planner]()
        self._owed: list[Action] = []
        #: stops of jobs in other domains that this plan caused
        self._evicted: list[Action] = []
        #: domains to be asked once more, because others changed their views
        self._again: dict[int, None] = {}
        #: where jobs are to be bound because they were then, while a recorded plan is followed
        self._places: dict[int, Allocation] = {}
        # What a plug-in says it does not do is not asked for: this is the hot path.
        self._even = getattr(speed, "even", False)
        self._learns = getattr(predictor, "learns", True)
        self._expect = predictor.expect

    def _planner(self, domain: int) -> Planner:
        """A planner brought to the present, and due for a plan at the end of the step."""
        planner = self._due.get(domain)
        if planner is None:
            planner = self._due[domain] = self.planners[domain]
            if planner.timed:
                planner.advance(self.now)
        return planner

    def _count(self, job: Job, held: Allocation) -> None:
        """Add the present run to a job's counters."""
        now, overhead = self.now, job.overhead
        ran = now - job.since
        job.since = now
        job.run_time += ran
        if not overhead:
            job.attained += ran * job.rate
        elif ran > overhead:
            job.attained += (ran - overhead) * job.rate
            job.overhead = 0.0
        else:
            job.overhead = overhead - ran
        served = self.served
        served[0] += ran * held[3]
        if self.cluster.limited:
            served[1] += ran * held.cpu
            served[2] += ran * held.memory

    def parts(self, job: Job) -> tuple[Part, ...]:
        """Everything a job occupies in fact: held, kept while suspended, or being released."""
        kept = job.residual[0].parts if job.residual else ()
        releasing = self.releasing.get(job.spec.id, NOTHING).parts
        return (job.allocation or NOTHING).parts + kept + releasing

    def _tell_touched(self) -> None:
        """What others have done changed the views of these domains."""
        touched = self.tenancy.touched
        for domain in sorted(touched):
            self._planner(domain).capacity_changed()
            self._again[domain] = None
        touched.clear()
