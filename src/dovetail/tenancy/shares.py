"""Numbers of GPUs instead of cells: soft, so that what is idle can be borrowed and reclaimed.

The lighter choice. A tenant may use as many GPUs as it owns, anywhere, and more while others leave
theirs idle. Who has less than its number, what it borrows counted in, may take devices back from
those who borrow: from who can resume before who cannot, then latest first.
Numbers nest: what `org/team` uses counts for `org` too, where that is listed. Tenants whose use
over time is small against their number are asked first, group by group; what was used long ago
counts less. A number says nothing about where: with others' jobs spread over all nodes, a tenant
can own 8 GPUs and find no node with 8 free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dovetail.core.holding import occupy
from dovetail.core.protocols import Bound, Held, Seat
from dovetail.model.allocation import Allocation
from dovetail.model.cluster import Cluster
from dovetail.model.errors import OverCommitted, UserError
from dovetail.model.job import Job, JobSpec
from dovetail.model.plan import Reason
from dovetail.model.tenants import Overview
from dovetail.tenancy.contracts import LENT
from dovetail.tenancy.limited import Limited
from dovetail.tenancy.paths import listed, unlisted
from dovetail.tenancy.reclaiming import first_to_go, is_free, leaving, spared
from dovetail.tenancy.standing import Number, Taken, beyond, never, overview, worded
from dovetail.tenancy.taking_over import first_in

HALF_LIFE = 7 * 86400.0
"""Seconds after which past use counts half."""
NO_LINES: Mapping[str, str] = {}
"""Where tenants are listed, for errors, if they are in no file."""


class Shares:
    """GPUs per tenant, by number."""

    whole = False
    lends = False

    def __init__(
        self, cluster: Cluster, gpus: Mapping[str, int], lines: Mapping[str, str] = NO_LINES
    ) -> None:
        self.domains: Sequence[str] = (*gpus, LENT)
        self.touched: set[int] = set()
        self._index = {name: index for index, name in enumerate(gpus)}
        self._lent = len(self._index)
        self._check(cluster, gpus, lines)
        #: thousandths of GPUs: owned, in use within that, borrowed, and use over time
        self._own = [*(1000 * number for number in gpus.values()), 0]
        self._used = [0] * len(self._own)
        self._borrows = [0] * len(self._own)
        self._served = [0.0] * len(self._own)
        self._counted = 0.0
        #: each domain with the domains it counts for: itself and its groups, the largest last
        self._counts_for = [*(self._groups(name) for name in gpus), [self._lent]]
        self._largest = [groups[-1] for groups in self._counts_for]
        capabilities = {pool.type: pool.capabilities for pool in cluster.pools}
        self._all = Cluster(cluster.nodes, capabilities)
        shown = Limited(cluster.nodes, capabilities)
        self._views = [shown.copy() for _ in self._own]
        #: how often what views show has changed, and up to which change each of them shows it
        self._changes = 0
        self._shown = [0] * len(self._own)
        self._held: dict[int, Taken] = {}
        #: those of them that borrow, first come first
        self._borrowers: dict[int, Taken] = {}
        #: jobs that had to go and have not been told yet
        self._evicted: set[int] = set()
        #: domains that wanted to reclaim more than is theirs, with what was left to them then
        self._modest: dict[int, int] = {}
        #: domains that wanted to borrow for who cannot resume and can do with less, likewise
        self._within: dict[int, int] = {}
        self._show()

    def _check(self, cluster: Cluster, gpus: Mapping[str, int], lines: Mapping[str, str]) -> None:
        """Tenants that are in no group own no more than there is."""
        left, before = cluster.gpus, list[str]()
        for name in (name for name in gpus if len(self._groups(name)) == 1):
            if gpus[name] > left:
                asked = f"{gpus[name]} GPU{'' if gpus[name] == 1 else 's'}"
                rest = f"{left} {'is' if left == 1 else 'are'} left"
                after = f" after {', '.join(before)}" if before else ""
                raise UserError(f"{lines.get(name, '')}{name} asks for {asked}; {rest}{after}")
            left -= gpus[name]
            before.append(f"{name} ({gpus[name]})")

    def _groups(self, name: str) -> list[int]:
        words = name.split("/")
        paths = ["/".join(words[:count]) for count in range(len(words), 0, -1)]
        return [self._index[path] for path in paths if path in self._index]

    def domain(self, spec: JobSpec) -> int | str:
        """The tenant's own, by the longest path that is listed."""
        home = self._home(spec)
        if isinstance(home, str) or spec.resumable:
            return home
        asked, own = spec.request.least, min(self._own[each] for each in self._counts_for[home])
        return home if asked <= own else never(self.domains[home], asked, own)

    def _home(self, spec: JobSpec) -> int | str:
        """Where it counts if it runs already, within its tenant's number or not."""
        if path := listed(spec.tenant, self._index):
            return self._index[path]
        return unlisted(spec.tenant, self.domains[:-1])

    def turns(self, domains: list[int], now: float) -> Sequence[int]:
        """Least use over time first, against what is owned: of the groups, then inside them."""
        if now > self._counted and (self._modest or self._within):
            # What a tenant wanted too much of may be gone from its queue.
            self._modest.clear()
            self._within.clear()
            self._show()
        self._count(now)
        return sorted(domains, key=lambda domain: (self._ratios(domain), domain))

    def _ratios(self, domain: int) -> list[float]:
        """Use over time for each GPU that is owned, from the largest group down to the tenant."""
        groups = reversed(self._counts_for[domain])
        return [self._served[each] / max(self._own[each], 1) for each in groups]

    def _count(self, now: float) -> None:
        passed, self._counted = now - self._counted, now
        fade = 0.5 ** (passed / HALF_LIFE)
        held = list(self._used)
        for domain, milli in enumerate(self._borrows):
            for counted in self._counts_for[domain] if milli else ():
                held[counted] += milli
        self._served = [
            served * fade + milli * passed for served, milli in zip(self._served, held, strict=True)
        ]

    def view(self, domain: int) -> Cluster:
        """All nodes, with what the tenant may take there, brought up to date."""
        view = self._views[domain]
        if self._shown[domain] != self._changes:
            self._shown[domain] = self._changes
            self._renew(domain, view)
        return view

    def apart(self, domain: int) -> bool:
        """Tenants borrow from each other, and find less room where others are."""
        return False

    # ---- binding -----------------------------------------------------------------------------

    def bind(
        self, domain: int, allocation: Allocation, spec: JobSpec, at: Allocation | None = None
    ) -> Bound | str:
        """Views speak of the same nodes; those who borrowed what is needed must go."""
        borrowed = allocation.milli_gpus > self.left(domain)
        if borrowed and not spec.resumable:
            return self._keep_within(domain, spec)
        victims: Sequence[int] = ()
        if not is_free(self._all, allocation):
            reclaimed = self._reclaim(domain, allocation)
            if isinstance(reclaimed, str):
                return reclaimed
            allocation, victims = reclaimed
        for victim in victims:
            self._drop(victim)
            self._evicted.add(victim)
            # It may have had more than is needed: everybody can have the rest.
            self.touched.update(range(len(self.domains)))
        self._take(spec.id, Taken(domain, allocation, borrowed, spec.resumable))
        self._show()
        if borrowed and self.left(domain) >= 1000:
            # What was idle is gone; what it may still reclaim was not in its view.
            self.touched.add(domain)
        return Bound(allocation, tuple(victims), allocation)

    def _reclaim(self, domain: int, wanted: Allocation) -> tuple[Allocation, list[int]] | str:
        """The same, maybe on other devices, and who must go for it; or why it cannot be had."""
        others = {job: held for job, held in self._borrowers.items() if held.domain != domain}
        wanted = spared(self._all, others, wanted)
        victims = leaving(self._all, others, wanted)
        if victims is None:
            return "CPU or memory there is in use by those who are within their number"
        if victims and wanted.milli_gpus > self.due(domain):
            return self._decline(domain)
        if not self._fits(wanted, victims):
            self.touched.add(domain)
            return "who borrowed it is within its number by now"
        return wanted, victims

    def _fits(self, wanted: Allocation, victims: Sequence[int]) -> bool:
        """Is it free once these are gone? What a tenant stops first may have let others in."""
        room = self._all.copy()
        for victim in victims:
            room.release(self._held[victim].allocation)
        try:
            occupy(room, wanted)
        except OverCommitted:
            return False
        return True

    def _take(self, job: int, use: Taken) -> None:
        occupy(self._all, use.allocation)
        self._held[job] = use
        if use.borrowed:
            self._borrowers[job] = use
        self._charge(use, 1)

    def _charge(self, use: Taken, sign: int) -> None:
        if use.borrowed:
            self._borrows[use.domain] += sign * use.allocation.milli_gpus
            return
        for counted in self._counts_for[use.domain]:
            self._used[counted] += sign * use.allocation.milli_gpus

    def adopt(self, running: Sequence[tuple[JobSpec, Allocation]]) -> list[Seat]:
        """Views speak of the same nodes; some are first to be within their number."""
        seats: dict[int, Seat] = {}
        for spec, physical in sorted(running, key=first_in):
            home = self._home(spec)
            domain = self._lent if isinstance(home, str) else home
            borrowed = physical.milli_gpus > self.left(domain)
            self._take(spec.id, Taken(domain, physical, borrowed, spec.resumable))
            seats[spec.id] = Seat(domain, physical)
        self._show()
        return [seats[spec.id] for spec, _ in running]

    def _decline(self, domain: int) -> str:
        """Only who stays within its number reclaims: ask again with what is idle in fact."""
        self._modest[domain] = self.due(domain)
        self._show()
        self.touched.add(domain)
        return "it would borrow what others borrowed before"

    def _keep_within(self, domain: int, spec: JobSpec) -> str:
        """Who cannot resume may not borrow: if it can do with less, ask again with what is left."""
        left = self.left(domain)
        if spec.request.least <= left and self._within.get(domain) != left:
            self._within[domain] = left
            self._show()
            self.touched.add(domain)
        return "it cannot be stopped and come back, so it may not borrow"

    def left(self, domain: int) -> int:
        """Thousandths of GPUs that a tenant owns and does not use."""
        own, used = self._own, self._used
        return min([own[each] - used[each] for each in self._counts_for[domain]])

    def due(self, domain: int) -> int:
        """Thousandths of GPUs that a tenant may reclaim.

        What it borrows counts: it could give them to those who wait within its number. Otherwise
        tenants that displace their own jobs for larger ones could reclaim from each other for ever.
        """
        return self.left(domain) - self._borrows[domain]

    def release(self, domain: int, allocation: Allocation, job: int) -> None:
        """What was in use can be had by everybody."""
        if job in self._evicted:
            self._evicted.discard(job)
            return
        self._drop(job)
        self._show()
        self.touched.update(range(len(self.domains)))

    def _drop(self, job: int) -> None:
        held = self._held.pop(job)
        self._borrowers.pop(job, None)
        self._all.release(held.allocation)
        self._charge(held, -1)
        if not held.borrowed:
            self._promote(self._largest[held.domain])

    def _promote(self, group: int) -> None:
        """Who borrowed first is first to be within its number, where less of it is in use."""
        for job, held in list(self._borrowers.items()):
            mine = self._largest[held.domain] == group
            if mine and held.allocation.milli_gpus <= self.left(held.domain):
                self._charge(held, -1)
                held.borrowed = False
                self._charge(held, 1)
                del self._borrowers[job]

    def _show(self) -> None:
        """All views are to be brought up to date, each when somebody looks at it."""
        self._changes += 1

    def _renew(self, domain: int, view: Limited) -> None:
        view.look_at(self._all)
        due = self.due(domain)
        if view.idle < due // 1000 and self._modest.get(domain) != due:
            self._show_borrowed(domain, view, due // 1000)
        if domain in self._within:
            view.idle = min(view.idle, max(self.left(domain), 0) // 1000)

    def _show_borrowed(self, domain: int, view: Limited, wanted: int) -> None:
        """Show what others borrowed as free, in turn, until the tenant's number is there."""
        view.look_away()
        for job in first_to_go(self._borrowers):
            held = self._borrowers[job]
            if view.idle >= wanted:
                break
            if held.domain != domain:
                view.release(held.allocation)
        view.idle = min(view.idle, wanted)

    def loosen(self, domain: int, allocation: Allocation, job: int) -> None:
        """Free its amounts everywhere."""
        self._all.release(allocation)

    def resize(self, domain: int, allocation: Allocation, job: int) -> Sequence[int]:
        """Take its new amounts everywhere."""
        occupy(self._all, allocation)
        self._held[job].allocation = allocation
        self._show()
        return ()

    def explain(self, job: Job, reason: Reason) -> Reason:
        """Whose number is used up; or that it runs on what is borrowed."""
        if job.allocation is not None:
            return beyond(reason, job) if self._held[job.id].borrowed else reason
        name, asked = self.domains[job.home], job.spec.request.milli_gpus
        others = [n for n, held in self._held.items() if held.domain != job.home]
        lent = any(number in self._borrowers for number in others)
        left = max(self.left(job.home), 0)
        return worded(reason, name, asked, left, job.spec.resumable, others, lent)

    def overview(self) -> Overview:
        """All tenants with their numbers, and all GPUs with who is on them."""
        pairs = enumerate(zip(self._index, self._own, self._used, strict=False))
        numbers = [Number(*each, top=len(self._counts_for[at]) == 1) for at, each in pairs]
        return overview(self._all, numbers, self._held)

    # ---- hardware ----------------------------------------------------------------------------

    def hold(self, allocation: Allocation) -> None:
        """Others occupy something."""
        occupy(self._all, allocation)
        self._show()

    def free(self, allocation: Allocation) -> None:
        """They let go of it."""
        self._all.release(allocation)
        self._show()

    def close(self, node: int, reason: str) -> None:
        """A node takes nothing new, in any view."""
        self._all.close(node, reason)
        self._show()

    def open(self, node: int) -> None:
        """A node takes work again."""
        self._all.open(node)
        self._show()

    def validate(self) -> None:
        """Check that sums and views follow from who holds what."""
        self._all.validate()
        used = [0] * len(self._own)
        for held in self._held.values():
            if not held.borrowed:
                for counted in self._counts_for[held.domain]:
                    used[counted] += held.allocation.milli_gpus
        assert used == self._used, (used, self._used)
        assert self._borrowers == {job: held for job, held in self._held.items() if held.borrowed}
        assert all(use <= own for use, own in zip(used, self._own, strict=True))
        for domain in range(len(self._views)):
            self.view(domain).validate()

    def snapshot(self) -> Any:
        """Use over time, and who borrows, in the order they came."""
        return {
            "served": list(self._served),
            "counted": self._counted,
            "held": [[job, held.borrowed] for job, held in self._held.items()],
            "modest": [list(each) for each in self._modest.items()],
            "within": [list(each) for each in self._within.items()],
        }

    def dissolve(self) -> None:
        """Nothing points in circles."""

    def restore(self, state: Any, held: Sequence[Held]) -> None:
        """As it was."""
        self._served, self._counted = list(state["served"]), state["counted"]
        self._modest, self._within = dict(state["modest"]), dict(state.get("within", ()))
        known = {each.spec.id: each for each in held}
        for job, borrowed in state["held"]:
            if job in known:
                spec, domain, virtual, _ = known[job]
                self._take(job, Taken(domain, virtual, borrowed, spec.resumable))
        if len(known) < len(state["held"]):
            # A fork may have been told to forget a job.
            for group in set(self._largest):
                self._promote(group)
        self._show()
