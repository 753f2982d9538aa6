"""From settings as a person types them to a scheduler for some machines.

The live counterpart of the simulator's composition: nobody knows true lengths here, so what a
recipe leaves to an oracle is left to what owners declare.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from dovetail.allocators import ALLOCATORS
from dovetail.controller.machines import Machines
from dovetail.core.claims import Curves
from dovetail.core.protocols import JointAllocator
from dovetail.core.scheduler import Scheduler
from dovetail.model.cluster import Cluster
from dovetail.model.costs import Costs
from dovetail.model.errors import UserError
from dovetail.model.quota import read_quotas
from dovetail.placements import PLACEMENTS
from dovetail.planners import planner_for
from dovetail.predictors import PREDICTORS
from dovetail.profiles import catalogue
from dovetail.recipes import Policy, policy
from dovetail.speed.locality import Locality
from dovetail.speed.sensitivity import Sensitivity
from dovetail.tenancy.kinds import read_tenants, tenancy_of

KNOWING = ("oracle", "noisy")
"""Predictors that need the truth, which only a simulation has."""


DEFAULT_POLICY = "shared"
"""What suits a box that people share."""


@dataclass(frozen=True)
class Parts:
    """What decides, as text and numbers."""

    policy: str = "fifo"
    #: None: what the policy's recipe suggests
    placement: str | None = None
    allocator: str | None = None
    predictor: str | None = None
    #: a file of sensitivity profiles, over the published ones
    profiles: str | None = None
    #: what users and groups may hold at one time: see `model.quota`
    quotas: str | None = None
    #: who owns what, with all contracts: see `tenancy.kinds.Tenants.written`
    tenancy: str | None = None
    span_penalty: float = 0.0
    type_factors: dict[str, float] = field(default_factory=dict)
    costs: Costs = field(default_factory=Costs)

    def written(self) -> str:
        """For the data base, which remembers what decided."""
        return json.dumps(asdict(self), sort_keys=True)


def read_parts(text: str) -> Parts:
    """The parts a data base remembers."""
    plain = json.loads(text)
    return Parts(**{**plain, "costs": Costs(**plain["costs"])})


def cluster_of(machines: Machines) -> Cluster:
    """The machines, of an engine say, with nothing on them."""
    return Cluster(machines.nodes, dict(machines.capabilities))


def believed(parts: Parts, chosen: Policy, told: bool = False) -> str:
    """The predictor: where nobody is told the truth, none that needs it."""
    text = parts.predictor or chosen.predictor
    if told or text.partition(":")[0] not in KNOWING:
        return text
    if parts.predictor is not None:
        raise UserError(f"predictor {parts.predictor} knows the future: choose another one")
    return "history"


def composer(
    parts: Parts, machines: Machines, told: Callable[[int], float] | None = None
) -> Callable[[], Scheduler]:
    """Makes new schedulers of these parts; `told` is the truth, for tests that know it."""
    chosen = policy(parts.policy)
    allocator_text = parts.allocator or chosen.allocator
    predictor_text = believed(parts, chosen, told is not None)
    profiles = catalogue(parts.profiles)
    quotas = read_quotas(parts.quotas)
    tenants = read_tenants(parts.tenancy)
    plain = Locality(parts.span_penalty, parts.type_factors)

    def make() -> Scheduler:
        cluster = cluster_of(machines)
        stated = cluster.limits_cpu and cluster.limits_memory
        allocator = ALLOCATORS.create(allocator_text)
        if not stated and (allocator.by_model or isinstance(allocator, JointAllocator)):
            raise UserError(f"allocator {allocator_text} needs nodes that state CPU and memory")
        placement = PLACEMENTS.create(parts.placement or chosen.placement)
        predictor: Any = PREDICTORS.create(predictor_text)
        if told is not None and hasattr(predictor, "told"):
            predictor.told = told

        def make_planner(view: Cluster) -> Any:
            curves = Curves(view, profiles, plain.span_penalty)
            fallback = ALLOCATORS.create("proportional")
            return planner_for(
                view, chosen.ordering(), placement, allocator, parts.costs, curves, fallback, quotas
            )

        speed = Sensitivity(profiles, plain) if stated else plain
        tenancy = tenancy_of(tenants, cluster)
        return Scheduler(cluster, tenancy, make_planner, predictor, speed, parts.costs)

    return make
