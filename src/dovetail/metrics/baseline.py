"""What sharing costs each tenant: its jobs' waits against the same jobs in a private cluster.

Compares two runs, job by job: only jobs that finished in both count. Knows nothing of how either
came about.
"""

from __future__ import annotations

from dovetail.metrics.columns import sample
from dovetail.metrics.records import Run


def excess(run: Run, alone: Run) -> dict[str, dict[str, float]]:
    """By tenant: mean wait of its jobs alone, how much more it was here, and the worst of them."""
    private, shared = _waits(alone), _waits(run)
    pairs: dict[str, list[tuple[float, float]]] = {}
    for name, (tenant, wait) in private.items():
        if name in shared:
            pairs.setdefault(tenant, []).append((wait, shared[name][1]))
    return {
        tenant: {
            "private_wait": sum(own for own, _ in waits) / len(waits),
            "excess_wait": sum(here - own for own, here in waits) / len(waits),
            "worst_excess": max(here - own for own, here in waits),
        }
        for tenant, waits in pairs.items()
    }


def _waits(run: Run) -> dict[str, tuple[str, float]]:
    counted, records = sample(run), run.records
    return {
        records.name[row]: (records.tenant[row], float(wait))
        for row, wait in zip(counted.rows.tolist(), counted.wait, strict=True)
    }
