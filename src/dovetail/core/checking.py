"""Do the books agree with themselves? What is free must follow from who holds what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dovetail.core import holding
from dovetail.core.lifecycle import FINAL
from dovetail.model.job import Status

if TYPE_CHECKING:
    from dovetail.core.books import Books


def validate(books: Books) -> None:
    """Count everything anew and compare."""
    books.cluster.validate()
    fresh = books.cluster.emptied()
    for job in books.jobs.values():
        assert job.status not in FINAL, f"{job} ended but is still listed"
        holds = job.status in (Status.RUNNING, Status.STARTING)
        assert (job.allocation is not None) == holds, f"{job} holds {job.allocation}"
        for held in (job.allocation, job.residual and job.residual[0]):
            if held is not None:
                fresh.take(held)
    for held in books.holdings.values():
        holding.occupy(fresh, held)
    _check_overdrawn(books)
    assert fresh.masks == books.cluster.masks, "devices are lost or counted twice"
    assert fresh.shared == books.cluster.shared, "device shares do not add up"
    assert not books.cluster.limits_cpu or fresh.cpu == books.cluster.cpu, "CPU is lost"
    assert not books.cluster.limits_memory or fresh.memory == books.cluster.memory
    leaving = {number for number in books.leaving if number in books.releasing}
    assert leaving == books.leaving, "a job that was given up holds nothing and is still listed"
    books.tenancy.validate()


def _check_overdrawn(books: Books) -> None:
    """Only what others use without asking may exceed what a node has."""
    drawn = {part.node for held in books.holdings.values() for part in held.parts}
    cluster = books.cluster
    for node in range(len(cluster.nodes)):
        if node not in drawn:
            assert not cluster.limits_cpu or cluster.cpu[node] >= 0, "more CPU is given than there"
            assert not cluster.limits_memory or cluster.memory[node] >= 0, "more memory is given"
