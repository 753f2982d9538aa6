"""Who is first to have what its tenant owns, when a tenancy takes over jobs that run."""

from __future__ import annotations

from dovetail.model.allocation import Allocation
from dovetail.model.job import JobSpec


def first_in(running: tuple[JobSpec, Allocation]) -> tuple[bool, float]:
    """Who would lose its work as a borrower comes first, then higher priorities."""
    spec = running[0]
    return spec.resumable, -spec.priority
