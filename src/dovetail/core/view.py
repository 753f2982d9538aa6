"""What an ordering may read besides the job: time, costs, capacity and who holds how much.

Kept current by the planner; read-only for everyone else by agreement.
"""

from __future__ import annotations

from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.model.job import RUNNING, Job

Amounts = tuple[int, int, int]
"""Thousandths of GPUs and of cores, MiB."""


class View:
    """The domain an ordering ranks in, at one moment."""

    __slots__ = ("capacity", "cluster", "costs", "free", "gpus", "held", "jobs", "now", "of")

    def __init__(self, cluster: Cluster, costs: Costs) -> None:
        self.now = 0.0
        self.cluster = cluster
        self.costs = costs
        #: devices of the domain, used or not
        self.gpus = cluster.gpus
        #: all there is, used or not; 0 of what is not limited
        self.capacity: Amounts = (
            cluster.gpus * 1000,
            sum(node.cpu or 0 for node in cluster.nodes),
            sum(node.memory or 0 for node in cluster.nodes),
        )
        #: jobs waiting or running, by id
        self.jobs: dict[int, Job] = {}
        #: what each tenant holds, and what of it is each job's
        self.held: dict[str, Amounts] = {}
        self.of: dict[int, Amounts] = {}
        #: what was free when the latest decision began, for orders by what is free
        self.free: Amounts = (0, 0, 0)

    @property
    def running(self) -> dict[int, Job]:
        """Jobs that hold devices, by id."""
        return {number: job for number, job in self.jobs.items() if job.virtual is not None}

    def time_left(self, job: Job) -> float:
        """Believed seconds to the end if the job held devices from now on, restart included."""
        if job.status is RUNNING:
            return job.time_left(self.now)
        restart, left = self.costs.first_start, job.expected - job.attained
        if job.starts:
            restart = self.costs.start(job.spec[6], job.starts)
        return restart + (left if left > 0.0 else 0.0)

    def look_what_is_free(self) -> None:
        """Add up what is free on nodes that take work."""
        cluster, closed = self.cluster, self.cluster.closed
        nodes = [node for node in range(len(cluster.nodes)) if node not in closed]
        cpu = sum(cluster.cpu[node] for node in nodes) if cluster.limits_cpu else 0
        memory = sum(cluster.memory[node] for node in nodes) if cluster.limits_memory else 0
        # Others may have drawn more than there was.
        self.free = (cluster.idle * 1000, max(cpu, 0), max(memory, 0))

    def hold(self, job: Job, sign: int) -> None:
        """Add (1) a job's allocation to what its tenant holds, or subtract (-1) what was added."""
        if sign > 0:
            held = job.virtual
            assert held is not None
            self.of[job.id] = (held.milli_gpus, held.cpu, held.memory)
        own = self.of[job.id] if sign > 0 else self.of.pop(job.id)
        tenant = job.lane.tenant
        gpus, cpu, memory = self.held.get(tenant, (0, 0, 0))
        self.held[tenant] = (
            gpus + sign * own[0],
            cpu + sign * own[1],
            memory + sign * own[2],
        )
