"""Why a job that has its devices does not run yet: others have not let go of them.

Who is asked to leave may be of the same queue, or have been lent what the job's tenant owns.
"""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.core.accounts import Accounts
from dovetail.core.naming import names_of
from dovetail.model.allocation import Allocation
from dovetail.model.cluster import Cluster
from dovetail.model.job import Job
from dovetail.model.plan import Reason


def explain(books: Accounts, job: Job) -> Reason:
    """Whom it waits for, and whether they only borrowed what it is to have."""
    others = tuple(sorted(job.awaits))
    borrowed = [other for other in others if books.jobs[other].home != job.home]
    if borrowed:
        assert job.allocation is not None
        lent = _shared(job.allocation, [books.releasing.get(other) for other in borrowed])
        mine, verb = _devices(job.allocation, books.cluster)
        if 0 < lent < job.allocation.gpus:
            mine, verb = f"{lent} of its {job.allocation.gpus} GPUs", "is" if lent == 1 else "are"
        named = names_of(books.jobs, borrowed)
        text = f"{mine} {verb} lent to {named}, which must leave first"
        return Reason("lent", text, others, f"the stop of {named}")
    names = names_of(books.jobs, others)
    text = f"it has its GPUs as soon as {names} ha{'ve' if len(others) > 1 else 's'} left them"
    return Reason("releasing", text, others, f"the stop of {names}")


def _devices(held: Allocation, cluster: Cluster) -> tuple[str, str]:
    """`its 8-GPU node`, `its 2 GPUs`; and the verb that goes with it."""
    part = held.parts[0]
    if len(held.parts) == 1 and part.devices.bit_count() == cluster.nodes[part.node].gpus:
        return f"its {held.gpus}-GPU node", "is"
    if held.gpus == 1:
        return "its GPU", "is"
    return (f"its {held.gpus} GPUs", "are") if held.gpus else ("what it needs", "is")


def _shared(mine: Allocation, others: Sequence[Allocation | None]) -> int:
    """How many devices are in somebody else's hands still."""
    held: dict[int, int] = {}
    for part in (part for other in others if other is not None for part in other.parts):
        held[part.node] = held.get(part.node, 0) | part.devices
    return sum((part.devices & held.get(part.node, 0)).bit_count() for part in mine.parts)
