"""Which machines are fit for new work, and what their tenants see of it.

A machine that was closed, or of which others use devices, is bad: its cells are bound no more, and
what tenants own on it is closed in their views.
"""

from __future__ import annotations

from dovetail.model.allocation import Allocation
from dovetail.tenancy.cells.atlas import Atlas
from dovetail.tenancy.cells.cell import Virtual
from dovetail.tenancy.cells.commands import Break, Repair
from dovetail.tenancy.cells.lending import Lending
from dovetail.tenancy.cells.state import Cells


class Health:
    """All machines of a cluster."""

    def __init__(self, cells: Cells, atlas: Atlas, lending: Lending) -> None:
        self._cells, self._atlas, self._lending = cells, atlas, lending
        #: nodes on which others than us hold devices, with how many times
        self._foreign: dict[int, int] = {}
        #: nodes that take nothing new, and why
        self._closed: dict[int, str] = {}

    def drawn(self, allocation: Allocation, sign: int) -> set[int]:
        """Others than us use something (1), or no longer (-1); domains whose views changed."""
        touched: set[int] = set()
        for part in allocation.parts:
            self._lending.draw(part, sign)
            if part.devices:
                self._foreign[part.node] = self._foreign.get(part.node, 0) + sign
                touched |= self._judge(part.node)
        return touched

    def close(self, node: int, reason: str) -> set[int]:
        """A machine is bad, and doomed cells are shown; domains whose views changed."""
        self._closed[node] = reason
        return self._judge(node)

    def open(self, node: int) -> set[int]:
        """A machine is healthy again, unless others use it; domains whose views changed."""
        self._closed.pop(node, None)
        return self._judge(node)

    def _judge(self, node: int) -> set[int]:
        """Is a machine fit for new work?"""
        reason = self._closed.get(node) or ("others use it" if self._foreign.get(node) else "")
        name = self._atlas.cluster.nodes[node].name
        if reason:
            self._lending.view.close(node, reason)
            self._cells.apply(Break(name))
        else:
            self._lending.view.open(node)
            self._cells.apply(Repair(name))
        return self.look(always=True)

    def look(self, always: bool = False) -> set[int]:
        """Close what is bound to bad hardware in the views, and open what is not any more."""
        touched: set[int] = set()
        if not (always or self._cells.bad_nodes):
            return touched
        for domain, machines in enumerate(self._atlas.leaves):
            view = self._atlas.views[domain]
            for node, leaves in enumerate(machines):
                # Machines are bad as a whole, and then all of them is bound.
                bad = is_bad(leaves[0])
                if bad and node not in view.closed:
                    view.close(node, "bad hardware")
                    touched.add(domain)
                elif not bad and node in view.closed:
                    view.open(node)
                    touched.add(domain)
        return touched


def is_bad(leaf: Virtual) -> bool:
    """Does a tenant's device stand for bad hardware?"""
    return leaf.twin is not None and not leaf.twin.healthy
