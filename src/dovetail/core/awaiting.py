"""Why a job that has its devices does not run yet: others have not let go of them.

Who is asked to leave may be of the same queue, or have been lent what the job's tenant owns.
"""

from __future__ import annotations

from dovetail.core.accounts import Accounts
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
        mine, verb = _devices(job.allocation, books.cluster)
        named = " and ".join(f"job {other} ({books.jobs[other].spec.name})" for other in borrowed)
        text = f"{mine} {verb} lent to {named}, which must leave first"
        return Reason("lent", text, others, f"the stop of {named}")
    names = " and ".join(books.jobs[other].spec.name for other in others)
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
