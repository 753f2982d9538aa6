"""Virtual clusters behind the core's interface: each tenant plans on the cells it owns.

Binding gives the devices of a tenant's view hardware, which buddy allocation chooses; jobs that
were lent it must go. One more domain, for all jobs of negative priority, sees the hardware itself,
without what owners use. A cell owns its share of its machine's CPU and memory: owners have it
while they use the cell, and what is lent of it goes with the devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dovetail.core import releasing
from dovetail.core.holding import occupy
from dovetail.core.protocols import Bound, Held, Seat
from dovetail.model.allocation import Allocation
from dovetail.model.cluster import Cluster
from dovetail.model.errors import OverCommitted
from dovetail.model.job import Job, JobSpec
from dovetail.model.plan import Reason
from dovetail.model.tenants import Overview
from dovetail.tenancy.cells import reasons, storing
from dovetail.tenancy.cells.adopting import adopt
from dovetail.tenancy.cells.atlas import Atlas
from dovetail.tenancy.cells.cell import Physical, Virtual, places_of
from dovetail.tenancy.cells.commands import Lend, Occupy, Vacate
from dovetail.tenancy.cells.health import Health, is_bad
from dovetail.tenancy.cells.layout import Layout
from dovetail.tenancy.cells.lending import Lending, has_gpus_throughout
from dovetail.tenancy.cells.overview import overview
from dovetail.tenancy.cells.searching import Places, Searching
from dovetail.tenancy.cells.state import Cells
from dovetail.tenancy.contracts import LENT
from dovetail.tenancy.paths import listed, unlisted
from dovetail.tenancy.taking_over import first_in

GPULESS = "what tenants own are GPUs: a job without any runs on what is lent, so it must resume"


class Holding(NamedTuple):
    """What a job holds, in the terms of its view and in fact."""

    domain: int
    allocation: Allocation
    on: list[Physical]
    at: Allocation


class VirtualClusters:
    """Tenants with cells, and lending between them."""

    whole = False
    lends = True

    def __init__(self, cluster: Cluster, layout: Layout) -> None:
        self.cells = Cells(layout)
        self.cluster = cluster
        self.domains: Sequence[str] = (*self.cells.forest.estates, LENT)
        self.touched: set[int] = set()
        self._index = {name: index for index, name in enumerate(self.domains)}
        self._lent = len(self.domains) - 1
        self._atlas = Atlas(cluster, self.cells.forest)
        self.lending = Lending(cluster)
        self._health = Health(self.cells, self._atlas, self.lending)
        self._searching = Searching(self.cells, self._atlas, self.lending)
        self._views = [*self._atlas.views, self.lending.view]
        #: by device: the jobs on it, with what each of them holds and where
        self._on: dict[Physical, list[int]] = {}
        self._held: dict[int, Holding] = {}
        #: jobs that cannot resume and were not put here by us: they would lose their work
        self._fixed: set[int] = set()
        #: what people were shown, as long as it holds
        self._shown: Overview | None = None
        #: jobs that had to go and have not been told yet
        self._evicted: set[int] = set()
        #: domains for whose devices there was no hardware
        self._refused: set[int] = set()

    # ---- whose it is -------------------------------------------------------------------------

    def domain(self, spec: JobSpec) -> int | str:
        """The tenant's own, by the longest path that has one; what is lent for low priorities."""
        if spec.priority < 0:
            return self._lent if spec.resumable else "what is lent is taken back: it must resume"
        if not has_gpus_throughout(spec):
            return self._lent if spec.resumable else GPULESS
        path = listed(spec.tenant, self._index)
        if path and path != LENT:
            return self._index[path]
        return unlisted(spec.tenant, self.domains[:-1])

    def turns(self, domains: list[int], now: float) -> Sequence[int]:
        """Owners first, then who lives on what they leave."""
        return sorted(domains, key=self._lent.__eq__)

    def view(self, domain: int) -> Cluster:
        """A private cluster of the tenant's shape, or the hardware without what owners use."""
        return self._views[domain]

    def apart(self, domain: int) -> bool:
        """Cells are as good as private clusters while there is healthy hardware for all of them.

        What is lent is what owners leave.
        """
        return domain != self._lent and all(s.suffices() for s in self.cells.stocks.values())

    # ---- binding -----------------------------------------------------------------------------

    def bind(
        self, domain: int, allocation: Allocation, spec: JobSpec, at: Allocation | None = None
    ) -> Bound | str:
        """Give devices of the view hardware; who was lent it must go."""
        if domain == self._lent:
            self.lending.view.take(allocation, closed_too=True)
            self._lend(spec.id, allocation)
            return Bound(allocation)
        mine = self._atlas.mine(domain, allocation)
        if not mine:
            assert at is not None, "only what a suspended job keeps has no devices"
            return self._keep(domain, allocation, spec.id, at)
        places = self._places(mine, allocation, at)
        if places is None:
            self._refused.add(domain)
            return reasons.NO_HARDWARE
        on = [places[leaf] for leaf in mine]
        physical = at or self._atlas.physical(allocation, on)
        self._views[domain].take(allocation, closed_too=True)
        fresh = [leaf for leaf in mine if leaf.charged is None]
        pairs = [(places[leaf], leaf) for leaf in fresh]
        devices = tuple((own.address, leaf.nodes[0], leaf.devices[0]) for leaf, own in pairs)
        # Whoever leaves may be an owner whose cells were bound elsewhere: that changes bindings.
        with self.cells.promised(pairs):
            victims = self._make_room([leaf for leaf, _ in pairs], physical)
            self.cells.apply(Occupy(self.domains[domain], devices))
        self._note(domain, spec.id, allocation, on, physical)
        self.touched |= self._health.look()
        return Bound(physical, tuple(victims))

    def _keep(self, domain: int, allocation: Allocation, job: int, at: Allocation) -> Bound:
        """What a suspended job keeps goes with no cell: it has it as if lent."""
        self._views[domain].take(allocation, closed_too=True)
        occupy(self.lending.view, at)
        self._note(domain, job, allocation, [], at)
        return Bound(at)

    def _places(
        self, mine: list[Virtual], wanted: Allocation, at: Allocation | None
    ) -> Places | None:
        if at is not None:
            return self._searching.exactly(mine, at)
        fixed = [held for job in self._fixed if (held := self._held[job]).domain == self._lent]
        spared = {leaf for held in fixed for leaf in held.on}
        return self._searching.places(mine, wanted, spared | self.cells.stranded())

    def _used_by(self, domain: int, virtual: Allocation) -> list[Physical]:
        """Where devices of a view that are in use are in fact."""
        mine = self._atlas.mine(domain, virtual)
        return [leaf.charged.device for leaf in mine if leaf.charged is not None]

    def _note(
        self, domain: int, job: int, allocation: Allocation, on: list[Physical], at: Allocation
    ) -> None:
        self._held[job] = Holding(domain, allocation, on, at)
        self._shown = None
        for leaf in on:
            self._on.setdefault(leaf, []).append(job)

    def _lend(self, job: int, allocation: Allocation) -> None:
        on = self._atlas.all_on(allocation)
        self.cells.apply(Lend(places_of(leaf for leaf in dict.fromkeys(on) if leaf.user is None)))
        self._note(self._lent, job, allocation, on, allocation)

    def _make_room(self, wanted: list[Physical], physical: Allocation) -> list[int]:
        """Take hardware from the lent view; returns the jobs that must leave for it."""
        victims = list(dict.fromkeys(job for leaf in wanted for job in self._on.get(leaf, ())))
        for job in victims:
            self._evict(job)
        for node, mask in self._atlas.masks(wanted).items():
            self.lending.take(node, mask)
        self.lending.hold(physical.parts, 1)
        return victims + self._settle_amounts(physical)

    def _settle_amounts(self, physical: Allocation) -> list[int]:
        """Who was lent what owners hold now must go, the latest first."""
        victims = []
        for node in dict.fromkeys(part.node for part in physical.parts):
            while self.lending.overdrawn(node) and (lent := self._lent_on(node)):
                victims.append(max(lent))
                self._evict(victims[-1])
        return victims

    def _lent_on(self, node: int) -> list[int]:
        return [
            job
            for job, held in self._held.items()
            if (held.domain == self._lent or not held.on)
            and any(part.node == node for part in held.at.parts)
        ]

    def _evict(self, job: int) -> None:
        self._drop(job)
        self._evicted.add(job)

    # ---- letting go --------------------------------------------------------------------------

    def release(self, domain: int, allocation: Allocation, job: int) -> None:
        """Give devices back; those of an owner can be lent from now on."""
        if job in self._evicted:
            self._evicted.discard(job)
            return
        self._drop(job)
        if domain != self._lent:
            self.touched.add(self._lent)
        self.touched |= self._refused
        self._refused.clear()
        self.touched |= self._health.look()

    def _drop(self, job: int) -> None:
        domain, allocation, on, at = self._held.pop(job)
        self._fixed.discard(job)
        self._shown = None
        self._views[domain].release(allocation)
        left: list[Physical] = []
        for leaf in dict.fromkeys(on):
            jobs = self._on[leaf]
            jobs.remove(job)
            if not jobs:
                del self._on[leaf]
                left.append(leaf)
        self.cells.apply(Vacate(places_of(left)))
        if domain == self._lent:
            return
        if not on:
            self.lending.view.release(at)
            return
        for node, mask in self._atlas.masks(left).items():
            self.lending.give_back(node, mask)
        self.lending.hold(at.parts, -1)

    def loosen(self, domain: int, allocation: Allocation, job: int) -> None:
        """Free its amounts in the view."""
        self._views[domain].release(allocation)

    def resize(self, domain: int, allocation: Allocation, job: int) -> Sequence[int]:
        """Take its new amounts in the view, and from those who were lent them."""
        occupy(self._views[domain], allocation)
        held = self._held[job]
        at = releasing.on_same(held.allocation, held.at, allocation)
        self._held[job] = held._replace(allocation=allocation, at=at)
        if domain == self._lent:
            return ()
        self.lending.hold(held.at.parts, -1)
        self.lending.hold(at.parts, 1)
        return self._settle_amounts(at)

    # ---- taking over who runs already --------------------------------------------------------

    def adopt(self, running: Sequence[tuple[JobSpec, Allocation]]) -> list[Seat]:
        """Among the tenant's cells if they fit there; else as if lent.

        First of all come those who would lose their work, then higher priorities.
        """
        for spec, physical in sorted(running, key=first_in):
            home = self.domain(spec)
            if isinstance(home, str) or not self._adopt(home, spec.id, physical):
                self._adopt_as_lent(spec.id, physical)
        self._fixed |= {spec.id for spec, _ in running if not spec.resumable}
        self.touched |= self._health.look()
        return [Seat(*self._held[spec.id][:2]) for spec, _ in running]

    def _adopt(self, domain: int, job: int, physical: Allocation) -> bool:
        """Find a job's devices among those its tenant owns; False: it cannot be."""
        if domain == self._lent or not all(part.devices for part in physical.parts):
            return False
        parts = [self._atlas.on(part) for part in physical.parts]
        idle = [leaf for part in parts for leaf in part if leaf.user is None]
        places = self._atlas.devices[domain]
        found = adopt(self.cells, self.domains[domain], parts, lambda leaf: places[leaf][0])
        if found is None:
            return False
        virtual = self._atlas.virtual(domain, physical, found)
        try:
            self._views[domain].take(virtual, closed_too=True)
        except OverCommitted:
            self.cells.apply(Vacate(places_of(idle)))
            return False
        for node, mask in self._atlas.masks(idle).items():
            self.lending.take(node, mask)
        self.lending.hold(physical.parts, 1)
        self._note(domain, job, virtual, self._used_by(domain, virtual), physical)
        return True

    def _adopt_as_lent(self, job: int, physical: Allocation) -> None:
        """A job runs on as if lent its devices, and so does who shares one of them with it."""
        on = self._atlas.all_on(physical)
        for other in dict.fromkeys(each for leaf in on for each in self._on.get(leaf, ())):
            held = self._held[other]
            if held.domain != self._lent:
                self._drop(other)
                self._adopt_as_lent(other, held.at)
        occupy(self.lending.view, physical)
        self._lend(job, physical)

    def explain(self, job: Job, reason: Reason) -> Reason:
        """Whose cells are full, and with whom; or that it runs on what is lent to it."""
        if job.allocation is not None:
            return reasons.of_running(reason, job.allocation) if job.home == self._lent else reason
        if job.home != self._lent:
            return reasons.of_owner(reason, self.domains[job.home], self.cells.bad_nodes)
        owners = {number for number, held in self._held.items() if held.domain != self._lent}
        used = sum(not owners.isdisjoint(jobs) for jobs in self._on.values())
        return reasons.of_borrower(reason, sorted(owners), used, self.cluster.gpus)

    def overview(self) -> Overview:
        """All tenants with what they own, and all GPUs with who has them.

        Many people look at the same, and nothing is decided meanwhile.
        """
        if self._shown is None:
            self._shown = overview(self.cells, self._on)
        return self._shown

    # ---- hardware that is not there ----------------------------------------------------------

    def _noticed(self, touched: set[int]) -> None:
        self.touched |= touched
        self._shown = None

    def hold(self, allocation: Allocation) -> None:
        """Others use devices of a machine: none of its cells is bound for new work."""
        self._noticed(self._health.drawn(allocation, 1))

    def free(self, allocation: Allocation) -> None:
        """They let go of it."""
        self._noticed(self._health.drawn(allocation, -1))

    def close(self, node: int, reason: str) -> None:
        """A machine is bad: its cells are bound no more, and doomed ones are shown."""
        self._noticed(self._health.close(node, reason))

    def open(self, node: int) -> None:
        """A machine is healthy again, unless others use it."""
        self._noticed(self._health.open(node))

    def validate(self) -> None:
        """Check the cells, the views, and that both say the same."""
        self.cells.validate()
        for view in self._views:
            view.validate()
        for domain, machines in enumerate(self._atlas.leaves):
            for node, leaves in enumerate(machines):
                assert len({is_bad(leaf) for leaf in leaves}) == 1, f"half of {leaves} is bad"
                for device, leaf in enumerate(leaves):
                    used = self._views[domain].share_of(node, device)[0] < 1000
                    assert used == (leaf.charged is not None), f"{leaf} differs from its view"

    def snapshot(self) -> Any:
        """How the cells came to be as they are, and in which order jobs came."""
        return {
            "cells": storing.snapshot(self.cells),
            "held": list(self._held),
            "refused": sorted(self._refused),
        }

    def dissolve(self) -> None:
        """Cells know what they are part of, made of and bound to."""
        self.cells.dissolve()

    def restore(self, state: Any, held: Sequence[Held]) -> None:
        """As it was; what others hold and which machines are closed is told afterwards."""
        storing.restore(self.cells, state["cells"])
        self._refused = set(state["refused"])
        known, owners = {each.spec.id: each for each in held}, list[Physical]()
        for job in (job for job in state["held"] if job in known):
            _, domain, virtual, physical = known[job]
            occupy(self._views[domain], virtual)
            lent = domain == self._lent
            on = self._atlas.all_on(physical) if lent else self._used_by(domain, virtual)
            if not lent and not on:
                occupy(self.lending.view, physical)
            elif not lent:
                owners += [leaf for leaf in on if leaf not in self._on]
                self.lending.hold(physical.parts, 1)
            self._note(domain, job, virtual, on, physical)
        for node, mask in self._atlas.masks(owners).items():
            self.lending.take(node, mask)
        self._fixed = {job for job in self._held if not known[job].spec.resumable}
        # A fork may have been told to forget a job.
        self.cells.apply(Vacate(places_of(storing.nobodys(self.cells, self._on))))
