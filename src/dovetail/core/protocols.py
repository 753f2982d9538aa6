"""The seams of the core: what a plug-in of each kind must offer.

Orderings are the one kind with a base class of their own (`core.ordering`); everything else is
structural, so a plug-in needs to import nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from dovetail.core.claims import Arrangement, Curve, Occasion
from dovetail.model.allocation import Allocation, Part
from dovetail.model.cluster import Cluster
from dovetail.model.job import Job, JobSpec
from dovetail.model.plan import Action, Reason
from dovetail.model.request import WHOLE, Replica
from dovetail.model.tenants import Overview


@dataclass(slots=True)
class Ask:
    """What a placement must find: equal units, each whole on one node, on a range of nodes.

    A value by agreement. It has slots, because it is made once and read for every job.
    """

    units: int
    #: devices of one unit
    gpus: int
    #: nodes start to stop-1 are acceptable
    start: int
    stop: int
    #: thousandths of a core and MiB of one unit
    cpu: int = 0
    memory: int = 0
    share: int = WHOLE
    gpu_memory: int = 0
    #: parts that were made for all units on one node, by node and devices: they come again
    made: dict[tuple[int, int], tuple[Part, ...]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )


class Placement(Protocol):
    """Where. Pure: the answer depends on the arguments alone."""

    @property
    def relaxed(self) -> bool:
        """Does it find a place whenever enough devices are free, wherever they are?"""

    def place(self, cluster: Cluster, ask: Ask) -> tuple[Part, ...] | None:
        """Parts for all units, or None: does not fit. `ask` is for whole devices."""


class Allocator(Protocol):
    """How much CPU and memory each replica of an admitted job gets."""

    @property
    def by_model(self) -> bool:
        """Does the amount depend on the job's model?"""

    def grant(
        self, cluster: Cluster, node: int, each: Replica, gpus: int, curve: Curve | None
    ) -> tuple[int, int]:
        """Thousandths of a core and MiB that one replica must find free on nodes like this one.

        `gpus` is the size of its whole group; `curve` is what is known of the model there.
        """


@runtime_checkable
class JointAllocator(Allocator, Protocol):
    """One that shares out CPU and memory among all jobs of a node, and says where they sit."""

    def arrange(self, occasion: Occasion) -> Arrangement:
        """Pieces for those who come, and new pieces for those who should change."""


class Predictor(Protocol):
    """What we believe about a job's length."""

    def expect(self, spec: JobSpec) -> float:
        """Believed work in seconds at rate 1."""

    def quantiles(self, spec: JobSpec, levels: Sequence[float]) -> list[float]:
        """Work that is not exceeded with each of the given probabilities."""

    def knows(self, spec: JobSpec) -> bool:
        """Is what it expects of this job more than a default?"""

    def learn(self, spec: JobSpec, work: float) -> None:
        """A job of known length is done."""

    def snapshot(self) -> Any:
        """What was learned, as plain values."""

    def restore(self, state: Any) -> None:
        """Take back what `snapshot` gave."""


class Speed(Protocol):
    """The rate of progress of a job on an allocation, 1 being the rate its work is counted in."""

    def rate(self, spec: JobSpec, allocation: Allocation, cluster: Cluster) -> float:
        """Work per second; neighbours are what `cluster` shows on the same devices."""


class Bound(NamedTuple):
    """A virtual allocation made physical, and the jobs that must go first."""

    allocation: Allocation
    victims: tuple[int, ...] = ()
    #: where it is in the view; None: where it was asked for
    virtual: Allocation | None = None


class Held(NamedTuple):
    """What a job holds: on the nodes of its domain's view, and in fact."""

    spec: JobSpec
    domain: int
    virtual: Allocation
    physical: Allocation


class Seat(NamedTuple):
    """The domain a job is at home in, and what it holds there, on the nodes of the view."""

    domain: int
    virtual: Allocation


class Tenancy(Protocol):
    """Who owns what: the outermost layer. Each domain plans on its own view of the cluster."""

    @property
    def whole(self) -> bool:
        """Is there one domain whose view is the cluster itself? Then nothing needs binding."""

    @property
    def lends(self) -> bool:
        """May jobs of negative priority run on what its owners leave idle?"""

    @property
    def domains(self) -> Sequence[str]:
        """Names of the domains; a domain has one queue and one view."""

    def domain(self, spec: JobSpec) -> int | str:
        """The domain a job plans in, or the reason why it has none."""

    def turns(self, domains: list[int], now: float) -> Sequence[int]:
        """The order in which domains are asked for their plans at one moment."""

    def view(self, domain: int) -> Cluster:
        """The cluster as this domain sees it; planners read it, only the tenancy changes it.

        Brought up to date by asking for it, which happens before every plan.
        """

    def apart(self, domain: int) -> bool:
        """Is what its jobs get the same whatever others of ours do, with the hardware there is?"""

    @property
    def touched(self) -> set[int]:
        """Domains whose views changed through what others did; who reads it empties it."""

    def bind(
        self, domain: int, allocation: Allocation, spec: JobSpec, at: Allocation | None = None
    ) -> Bound | str:
        """Take an allocation of the view for a job and give its physical form, or say why not.

        `at`: where it goes, because that was decided before.
        """

    def adopt(self, running: Sequence[tuple[JobSpec, Allocation]]) -> list[Seat]:
        """Take in jobs that run, or keep something, where others than this tenancy put them.

        They stay there: on what their tenants own if it can be so, else as if lent.
        """

    def release(self, domain: int, allocation: Allocation, job: int) -> None:
        """Give a job's allocation, in the terms of the view, back to the view."""

    def loosen(self, domain: int, allocation: Allocation, job: int) -> None:
        """A job's CPU and memory are free in its view for the moment; its devices stay its own."""

    def resize(self, domain: int, allocation: Allocation, job: int) -> Sequence[int]:
        """It has these amounts on its devices; returns the jobs that must go for it."""

    def hold(self, allocation: Allocation) -> None:
        """Someone outside our control occupies a physical allocation."""

    def free(self, allocation: Allocation) -> None:
        """They let go of it."""

    def close(self, node: int, reason: str) -> None:
        """A physical node takes nothing new."""

    def open(self, node: int) -> None:
        """A physical node takes work again."""

    def explain(self, job: Job, reason: Reason) -> Reason:
        """A planner's reason in the words of who owns what; or whose it is that a job runs on."""

    def overview(self) -> Overview:
        """What each tenant owns, and who is on it; for people, not for decisions."""

    def validate(self) -> None:
        """Check that views and whatever else is kept are in order."""

    def snapshot(self) -> Any:
        """What cannot be rebuilt from who holds what, as plain values."""

    def restore(self, state: Any, held: Sequence[Held]) -> None:
        """Be as when `snapshot` was taken, with the jobs that held something then."""


class Planner(Protocol):
    """Decides for one domain. `plan` changes nothing; the other calls keep its index current."""

    def submitted(self, job: Job, now: float) -> str | None:
        """A new job waits from now on, unless the answer says why it can never run."""

    def waits(self, job: Job, now: float) -> None:
        """A job that was submitted before waits again."""

    def started(self, job: Job, now: float) -> None:
        """A waiting job holds devices."""

    def left(self, job: Job, now: float, done: bool) -> None:
        """A job no longer waits or runs: it is done, or ended or paused in some other way."""

    def changed(self, job: Job, now: float) -> None:
        """What we believe of a job changed."""

    def resized(self, job: Job, now: float) -> None:
        """A job has other amounts of CPU and memory on the devices it had before."""

    def capacity_changed(self) -> None:
        """Nodes came or went, or holdings changed, outside of this planner's decisions."""

    @property
    def waiting(self) -> int:
        """How many jobs wait."""

    @property
    def timed(self) -> bool:
        """Does time alone change what it would do now? Then `advance` is called in every batch.

        It may change from call to call: an order matters only while somebody waits.
        """

    def advance(self, now: float) -> None:
        """Time has come this far."""

    def settled(self) -> None:
        """The plan was carried out."""

    def plan(self, now: float) -> list[Action]:
        """The actions wanted now."""

    def follow(self, now: float, actions: Sequence[Action]) -> None:
        """Actions it wanted then are about to be carried out again: be as if `plan` was asked."""

    def wake_at(self) -> float | None:
        """When to be asked again even if nothing happens; read after a plan was carried out."""

    def explain(self, job: Job, now: float) -> Reason:
        """Why the job waits."""

    def report(self) -> dict[str, Any]:
        """Figures the policy tells about itself."""

    def snapshot(self) -> Any:
        """The state that cannot be rebuilt from the jobs, as plain values."""

    def restore(self, state: Any, jobs: Sequence[Job]) -> None:
        """Rebuild the index from `snapshot` and the live jobs."""
